"""Lists of ids: from a file to a model, and ranked lists from a model to people and programs."""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from marginmf._utils.ids import as_id_column
from marginmf._utils.types import Array
from marginmf.cli.printing import new_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: Columns of one length, by name.
Columns = dict[str, Array]
#: Lists of more owners than this are printed as CSV: nobody reads so many tables.
MOST_TABLES = 20
#: How the numbers of a list are written for people.
NUMBERS = {
    "rank": "{}",
    "rating": "{:g}",
    **dict.fromkeys(("score", "take", "like", "similarity"), "{:.4f}"),
}
#: A character that no id has, so that each line is one cell, with quotes around it or without.
NO_SEPARATOR = "\x1f"


def read_ids(path: Path, what: str) -> list[str]:
    """Read the ids of users or items from a text file, one a line, each once.

    A first line such as ``user`` or ``movieId`` is a header.
    """
    from marginmf.datasets.files.columns import is_column_name

    lines = csv.reader(_lines(path, what), delimiter=NO_SEPARATOR)
    found = [cells[0].strip() for cells in lines if cells and cells[0].strip()]
    ids = found[1:] if found and is_column_name(found[0], what) else found
    if not ids:
        raise ValueError(f"{path} names no {what}; write one id a line.")
    return list(dict.fromkeys(ids))


def _lines(path: Path, what: str) -> list[str]:
    from marginmf.datasets.files.source import Source

    source = Source(path, f"{what}s")
    with source.open() as file:
        data = file.read()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace").splitlines()
    if b"\0" in data:
        raise ValueError(f"{path} is not a text file; write one {what} id a line.")
    try:
        return data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        return data.decode("latin-1").splitlines()


def as_columns(frame: Any) -> Columns:
    """Return a frame of any library, or a dictionary of columns, as arrays."""
    if isinstance(frame, dict):
        columns = frame
    else:
        table = nw.from_native(frame, eager_only=True)
        columns = {name: table.get_column(name).to_numpy() for name in table.columns}
    return {
        name: np.asarray(column) if name in NUMBERS else as_id_column(column, name)
        for name, column in columns.items()
    }


def in_parts(ids: Array, at_a_time: int) -> Iterator[Array]:
    """Yield some of the ids at a time."""
    for start in range(0, len(ids), at_a_time):
        yield ids[start : start + at_a_time]


def show_lists(console: "Console", pieces: Iterable[Columns], n_owners: int) -> None:
    """Print a table for each owner of a list, the first column; or CSV where there are many."""
    if n_owners > MOST_TABLES:
        from marginmf.datasets import write_columns

        write_columns("-", pieces)
        return
    for piece in pieces:
        what, *others = piece
        for owner in dict.fromkeys(piece[what].tolist()):
            own = np.array([one == owner for one in piece[what].tolist()])
            console.print(f"{what} {owner}", style="bold", markup=False)
            console.print(_table({name: piece[name][own] for name in others}))


def records(pieces: Iterable[Columns]) -> list[dict[str, Any]]:
    """Return every row as a dictionary that JSON can hold; ids of other kinds become text."""
    return [
        dict(zip(piece, map(_storable, row), strict=True))
        for piece in pieces
        for row in zip(*(column.tolist() for column in piece.values()), strict=True)
    ]


def _storable(value: Any) -> Any:
    return value if isinstance(value, int | float | str) else str(value)


def _table(columns: Columns) -> "Table":
    order = ["rank", *(name for name in columns if name != "rank")]
    table = new_table(*order)
    for place, name in enumerate(order):
        table.columns[place].justify = "left" if columns[name].dtype == object else "right"
    for row in zip(*(columns[name].tolist() for name in order), strict=True):
        cells = zip(order, row, strict=True)
        table.add_row(*(NUMBERS.get(name, "{}").format(value) for name, value in cells))
    return table
