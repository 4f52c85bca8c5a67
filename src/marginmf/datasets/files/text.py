"""Read delimited text in batches: quickly where that is safe, carefully everywhere else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter

from marginmf.datasets.files import cells, fast_text
from marginmf.datasets.files.blocks import Batch, CellFault, make_batch, said
from marginmf.datasets.files.delimited import SAMPLE_CHARACTERS, Row, iterate_rows, sniff_separator
from marginmf.datasets.files.headers import Layout, Wanted, find_layout
from marginmf.datasets.files.pieces import Piece, lines_of, read_pieces, skip_lines
from marginmf.datasets.files.sources import Source

#: Rows to convert at once. They are taken apart in smaller lots, because many rows held at once
#: double the time in the garbage collector.
BLOCK_ROWS = 1 << 17
LOT_ROWS = 500
#: In a file smaller than this the quick reader, which has to be imported, gains nothing.
FAST_CHARACTERS = 1 << 20


@dataclass(frozen=True)
class Form:
    """The form of a text: how to cut a line, and what the columns are."""

    where: str
    separator: str | None
    layout: Layout
    roles: tuple[str, ...]
    width: int
    lines_before: int


def text_batches(source: Source, wanted: Wanted, encoding: str) -> Iterator[Batch]:
    """Yield the rows of a text; `UnicodeDecodeError` means that it has another encoding."""
    form = _find_form(source, wanted, encoding)
    pieces = skip_lines(read_pieces(source, encoding), form.lines_before)
    n_rows = 0
    for batch in _batches(pieces, form):
        n_rows += len(batch)
        yield batch
    if not n_rows:
        raise ValueError(
            f"{form.where} has no {source.content} after its header line; add lines of "
            f"{source.content}."
        )


def _find_form(source: Source, wanted: Wanted, encoding: str) -> Form:
    """Look at the first lines."""
    samples = read_pieces(source, encoding, 4 * SAMPLE_CHARACTERS)
    sample = next((one for one in samples if one.text.strip()), None)
    if sample is None:
        *most, last = (f"{'an' if role == 'item' else 'a'} {role}" for role in wanted.roles)
        raise ValueError(
            f"{source.where} is empty; it needs lines with {', '.join(most)} and {last}."
        )
    separator = sniff_separator(sample.text, len(wanted.roles))
    number, first = next(
        iterate_rows(lines_of([sample]), separator, source.where, sample.lines_before)
    )
    layout = find_layout(first, f"{source.where}, line {number}", wanted)
    lines_before = number if layout.header else 0
    return Form(source.where, separator, layout, wanted.roles, len(first), lines_before)


def _batches(pieces: Iterator[Piece], form: Form) -> Iterator[Batch]:
    for number, piece in enumerate(pieces):
        if number == 0 and len(piece.text) < FAST_CHARACTERS:
            batch = None
        else:
            batch = fast_text.read_batch(piece.text, form.separator, form.width, form.layout)
        if batch is None:  # from here on carefully: a quoted value may go on in the next piece
            rows = iterate_rows(
                lines_of(chain([piece], pieces)), form.separator, form.where, piece.lines_before
            )
            yield from _careful_batches(rows, form)
            return
        yield batch


def _careful_batches(rows: Iterator[tuple[int, Row]], form: Form) -> Iterator[Batch]:
    layout = form.layout
    block = _Block(layout)
    for lines, lot in _lots(rows):
        widths = list(map(len, lot))
        narrowest = min(widths)
        if narrowest < layout.width:
            short = next(k for k, width in enumerate(widths) if width < layout.width)
            # What stands before the fault is looked at first.
            block.add(lines[:short], lot[:short], narrowest)
            if block.lines:
                yield block.convert(form.where)
            raise _too_narrow(lines[short], widths[short], form)
        block.add(lines, lot, narrowest)
        if len(block.lines) >= BLOCK_ROWS:
            yield block.convert(form.where)
            block = _Block(layout)
    if block.lines:
        yield block.convert(form.where)


class _Block:
    """The columns that matter of some rows, as text."""

    def __init__(self, layout: Layout) -> None:
        places = dict(layout.places)
        if layout.perhaps_time is not None:
            places["perhaps_time"] = layout.perhaps_time
        self.places = places
        self.lines: list[int] = []
        self.columns: dict[str, list[str]] = {role: [] for role in places}

    def add(self, lines: Sequence[int], lot: Sequence[Row], narrowest: int) -> None:
        if narrowest <= self.places.get("perhaps_time", 0):
            # Without a name to go by, a column is the time only if every line has it.
            del self.columns["perhaps_time"], self.places["perhaps_time"]
        self.lines.extend(lines)
        for role, column in self.columns.items():
            column.extend(map(itemgetter(self.places[role]), lot))

    def convert(self, where: str) -> Batch:
        try:
            return make_batch(self.columns, cells)
        except CellFault as fault:
            raise said(fault, where, "line", self.lines[fault.row]) from None


def _lots(rows: Iterator[tuple[int, Row]]) -> Iterator[tuple[Sequence[int], Sequence[Row]]]:
    """Yield some rows at a time, and the numbers of their lines."""
    fault: ValueError | None = None
    while fault is None:
        lot: list[tuple[int, Row]] = []
        try:
            lot.extend(islice(rows, LOT_ROWS))
        except ValueError as error:  # quotes that do not match
            fault = error  # what stands before, which the list has kept, is looked at first
        if not lot:
            break
        lines, split = zip(*lot, strict=True)
        yield lines, split
    if fault is not None:
        raise fault


def _too_narrow(line: int, width: int, form: Form) -> ValueError:
    return ValueError(
        f"{form.where}, line {line}: {width} column(s) found where {form.layout.width} are "
        f"needed ({', '.join(form.roles)}, separated by comma, tab, '::', semicolon or blanks); "
        f"complete or remove this line."
    )
