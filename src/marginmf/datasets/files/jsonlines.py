"""Read JSON lines in batches: one object a line, its keys the names of the columns."""

import io
import json
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from marginmf.datasets.files import values
from marginmf.datasets.files.blocks import Batch, CellFault, make_batch, said
from marginmf.datasets.files.headers import Layout, Wanted, find_layout, refuse_narrow
from marginmf.datasets.files.pieces import read_pieces
from marginmf.datasets.files.sources import Source

BLOCK_ROWS = 1 << 14
SHOWN_CHARACTERS = 40

Record = tuple[int, dict[str, Any]]


def json_batches(source: Source, wanted: Wanted, encoding: str) -> Iterator[Batch]:
    """Yield the rows of a file; `UnicodeDecodeError` means that it has another encoding."""
    lines = records(source, encoding)
    first = next(lines)  # the kind was recognised by an opening bracket, so there is a line
    names = list(first[1])
    layout = find_layout(names, f"{source.where}, line {first[0]}", wanted)
    refuse_narrow(layout, names, f"{source.where}, line {first[0]}")
    lines = chain([first], lines)
    while block := list(islice(lines, BLOCK_ROWS)):
        yield _convert(block, names, layout, source.where)


def records(source: Source, encoding: str) -> Iterator[Record]:
    """Yield the number and the object of each line that is not blank."""
    for piece in read_pieces(source, encoding):
        for number, line in enumerate(io.StringIO(piece.text), piece.lines_before + 1):
            if line.isspace():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            if not isinstance(record, dict):
                shown = line.strip()
                if len(shown) > SHOWN_CHARACTERS:
                    shown = f"{shown[:SHOWN_CHARACTERS]}..."
                raise ValueError(
                    f"{source.where}, line {number}: {shown!r} is not a JSON object; write one "
                    f'object a line, such as {{"user": 1, "item": 2, "rating": 3}}.'
                )
            yield number, record


def _convert(block: list[Record], names: list[str], layout: Layout, where: str) -> Batch:
    keys = {role: names[place] for role, place in layout.places.items()}
    perhaps = layout.perhaps_time
    if perhaps is not None and perhaps < len(names):
        keys["perhaps_time"] = names[perhaps]
    raw = {role: [record.get(key) for _, record in block] for role, key in keys.items()}
    try:
        return make_batch(raw, values)
    except CellFault as fault:
        raise said(fault, where, "line", block[fault.row][0]) from None
