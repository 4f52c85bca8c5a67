"""Read a user's own file of features: all its columns, whatever the kind of file."""

from itertools import chain
from os import PathLike
from typing import Any

import numpy as np

from marginmf._utils.ids import as_objects
from marginmf.datasets.files.cells import ids, parse_number
from marginmf.datasets.files.delimited import SAMPLE_CHARACTERS, Row, iterate_rows, sniff_separator
from marginmf.datasets.files.headers import listed
from marginmf.datasets.files.kinds import COLUMNAR, Kind, recognise
from marginmf.datasets.files.pieces import (
    OTHER_ENCODING,
    likely_encoding,
    lines_of,
    read_pieces,
)
from marginmf.datasets.files.sources import Source
from marginmf.datasets.table import Columns


def read_features(path: str | PathLike[str]) -> Columns:
    r"""Read a file of features, one user or item a line or row.

    The file is of any kind that `read_ratings` reads: delimited text, JSON lines, Parquet, Arrow
    or Feather.  Its columns need names: the first line of a text holds them.  Columns without a
    name, such as the row numbers that pandas writes, are left out.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    dict of arrays
        The columns by name, as ``fit(..., item_features=)`` takes them.  A column of text that
        holds only numbers becomes one of numbers; empty cells are missing, NaN among numbers and
        None among texts.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        As for `read_ratings`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "films.csv")
    ...     _ = path.write_text("movieId,genres,year\n7,Crime|Drama,1995\n9,Drama,\n")
    ...     columns = read_features(path)
    >>> {name: cells.tolist() for name, cells in columns.items()}
    {'movieId': [7, 9], 'genres': ['Crime|Drama', 'Drama'], 'year': [1995.0, nan]}
    """
    source = Source(path, "features")
    kind = recognise(source)
    if kind in COLUMNAR:
        return _columnar(source, kind)
    read = _json_lines if kind is Kind.JSON_LINES else _text
    try:
        return read(source, likely_encoding(source))
    except UnicodeDecodeError:  # its end shows what its beginning did not
        return read(source, OTHER_ENCODING)


def _text(source: Source, encoding: str) -> Columns:
    pieces = read_pieces(source, encoding)
    first = next((piece for piece in pieces if piece.text.strip()), None)
    if first is None:
        raise ValueError(f"{source.where} is empty; it needs a line of names, and lines below it.")
    separator = sniff_separator(first.text[:SAMPLE_CHARACTERS], cells=2)
    lines = lines_of(chain([first], pieces))
    rows = iterate_rows(lines, separator, source.where, first.lines_before)
    _, header = next(rows)
    names = [name.strip() for name in header]
    if not any(names) or any(map(_is_number, names)):
        raise ValueError(
            f"{source.where}: the first line, {listed(names)}, holds no names of columns; add a "
            "line of names, such as item,genres,year."
        )
    cells = [_row(number, row, names, source.where) for number, row in rows]
    if not cells:
        raise ValueError(f"{source.where} has no features after its line of names; add lines.")
    columns = [_typed(list(column)) for column in zip(*cells, strict=True)]
    return _named(names, columns, source.where)


def _named(names: list[str], columns: list[Any], where: str) -> Columns:
    """Return columns by their names; those without one are left out."""
    repeated = [name for name in names if name and names.count(name) > 1]
    if repeated:
        raise ValueError(f"{where}: two columns are called {repeated[0]!r}; rename one of them.")
    return {name: column for name, column in zip(names, columns, strict=True) if name}


def _row(number: int, row: Row, names: list[str], where: str) -> Row:
    if len(row) != len(names):
        raise ValueError(
            f"{where}, line {number}: {len(row)} column(s) found where there are {len(names)} "
            f"names ({listed(names)}); complete the line, or put cells that hold the separator "
            "into quotes."
        )
    return [cell.strip() for cell in row]


def _typed(cells: Row) -> Any:
    """Return whole numbers, or numbers with NaN for empty cells, or texts with None for them."""
    filled = [cell for cell in cells if cell]
    if len(filled) == len(cells):
        whole = ids(cells, "")
        if isinstance(whole, np.ndarray):
            return whole
    # A number with a zero before it, such as a post code, is a name.
    if filled and all(_is_number(cell) and not _is_name(cell) for cell in filled):
        return np.array([float(cell) if cell else np.nan for cell in cells])
    return as_objects(cell or None for cell in cells)


def _is_number(cell: str) -> bool:
    try:
        parse_number(cell)
    except ValueError:
        return False
    return True


def _is_name(cell: str) -> bool:
    return len(cell) > 1 and cell[0] == "0" and cell.isdecimal()


def _json_lines(source: Source, encoding: str) -> Columns:
    from marginmf.datasets.files.jsonlines import records

    found = [record for _, record in records(source, encoding)]
    names = dict.fromkeys(name for record in found for name in record)
    return {name: as_objects(record.get(name) for record in found) for name in names}


def _columnar(source: Source, kind: Kind) -> Columns:
    from marginmf.datasets.files.arrow import require_pyarrow
    from marginmf.datasets.files.columnar import blocks_of, opened, schema_of

    require_pyarrow(f"Reading {source.where}, which is of the kind {kind.value},")
    with opened(source, kind) as file:
        schema = schema_of(file, kind)
        cells: list[list[Any]] = [[] for _ in schema.names]
        for block in blocks_of(file, kind, schema, range(len(schema.names))):
            for place, column in block.items():
                cells[place].extend(column.to_pylist())
    if not cells or not cells[0]:
        raise ValueError(f"{source.where} has no rows; add some.")
    return _named(list(schema.names), list(map(as_objects, cells)), source.where)
