"""Read an ARFF file whole: its header, then its rows some at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from marginmf.datasets.files.source import (
    OTHER_ENCODING,
    Chunk,
    Source,
    likely_encoding,
    lines_of,
    read_chunks,
    skip_lines,
)
from marginmf.datasets.labels.arff.blocks import Block, RowFault, dense_block, joined, sparse_block
from marginmf.datasets.labels.arff.columns import Columns
from marginmf.datasets.labels.arff.dense_rows import raw_rows
from marginmf.datasets.labels.arff.header import read_header
from marginmf.datasets.labels.arff.labels import Chooser
from marginmf.datasets.labels.arff.sparse_rows import raw_entries
from marginmf.datasets.labels.choice import IgnoredChoice, ignored_places

#: Characters of rows to take apart at once, which may need a text for each value.
LOT_CHARACTERS = 1 << 21


@dataclass(frozen=True)
class Relation:
    """What an ARFF file holds."""

    columns: Columns
    X: Any
    Y: Any


def read_relation(source: Source, choose: Chooser, ignore: IgnoredChoice = ()) -> Relation:
    """Read a file; `choose` says which of its attributes are labels."""
    try:
        return _read(source, choose, ignore, likely_encoding(source))
    except UnicodeDecodeError:
        return _read(source, choose, ignore, OTHER_ENCODING)


def _read(source: Source, choose: Chooser, ignore: IgnoredChoice, encoding: str) -> Relation:
    header = read_header(lines_of(read_chunks(source, encoding)), source.where)
    columns = Columns(
        header.attributes,
        choose(header),
        ignored_places(header.names, ignore, source.where),
        source.where,
    )
    pieces = skip_lines(read_chunks(source, encoding), header.lines)
    blocks = list(_blocks(pieces, columns, source.where))
    if not blocks:
        raise ValueError(f"{source.where} has no rows after @data; add some.")
    block = joined(blocks)
    return Relation(columns, block.X, block.Y)


def _blocks(pieces: Iterator[Chunk], columns: Columns, where: str) -> Iterator[Block]:
    is_sparse: bool | None = None
    for numbers, lines in _lots(pieces):
        starts = [line.startswith("{") for line in lines]
        is_sparse = starts[0] if is_sparse is None else is_sparse
        try:
            if not all(start is is_sparse for start in starts):
                odd = starts.index(not is_sparse)
                kinds = ("dense", "sparse") if is_sparse else ("sparse", "dense")
                raise RowFault(odd, f"a {kinds[0]} row among {kinds[1]} ones; write all alike")
            if is_sparse:
                yield sparse_block(len(lines), *raw_entries(lines, columns), columns)
            else:
                yield dense_block(raw_rows(lines, columns), columns)
        except RowFault as fault:
            raise ValueError(f"{where}, line {numbers[fault.row]}: {fault}.") from None


def _lots(pieces: Iterator[Chunk]) -> Iterator[tuple[list[int], list[str]]]:
    """Yield the numbers and the text of some rows at a time, without comments and blank lines."""
    for piece in pieces:
        numbers: list[int] = []
        lines: list[str] = []
        length = 0
        for number, line in enumerate(piece.text.split("\n"), piece.lines_before + 1):
            line = line.strip()
            if not line or line.startswith("%"):
                continue
            numbers.append(number)
            lines.append(line)
            length += len(line)
            if length >= LOT_CHARACTERS:
                yield numbers, lines
                numbers, lines, length = [], [], 0
        if lines:
            yield numbers, lines
