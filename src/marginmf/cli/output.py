"""What commands write: tables and JSON for the terminal, and files, whole or not at all."""

import codecs
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from marginmf._utils.files import atomic_write, check_path
from marginmf._utils.ids import as_id_column, as_objects, shown
from marginmf._utils.printable import (
    HIDDEN,
    LONGEST_CELL,
    LONGEST_MESSAGE,
    LONGEST_QUOTE,
    printable,
    spreadsheet_cell,
)
from marginmf._utils.types import Array
from marginmf.datasets.table import Columns

DELIMITED = (".csv", ".tsv")
PICTURES = (".png", ".svg", ".pdf")
#: Lists of more owners than this are printed as CSV: nobody reads that many tables.
MOST_TABLES = 20
#: How the numbers of a list are written for people.
NUMBERS = {
    "rank": "{}",
    "known": "{}",
    "rating": "{:g}",
    "expected": "{:.2f}",
    **dict.fromkeys(("score", "take", "like", "chance_of_top", "similarity"), "{:.4f}"),
    **dict.fromkeys(("contribution", "to_take"), "{:+.4f}"),
    **dict.fromkeys(("from_ratings", "from_raters", "from_features"), "{:+.4f}"),
}
#: What a narrow terminal leaves out of a list, the first of these first; and the width of a title
#: that it should have room for.
LEFT_OUT, TITLE_WIDTH = ("chance_of_top", "like", "take", "expected"), 30


def check_destination(
    path: Path,
    what: str,
    option: str = "--out",
    formats: Sequence[str] = (),
    *,
    overwrite: bool = True,
    streams: bool = False,
) -> None:
    """Raise an error if nothing can be written to a path: better now than after the work.

    Messages name ``what`` it will hold and the option that named it.  With ``formats``, the name
    must have one of these endings; with ``streams``, it may be a pipe or a device.
    """
    if formats and not path.name.lower().endswith(tuple(formats)):
        raise ValueError(f"The {what} {path} must end in one of {', '.join(formats)}.")
    check_path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file for the {what}.")
    if path.exists() and not path.is_file() and not streams:
        raise ValueError(f"{path} is a pipe or a device; name a file for the {what}.")
    folder = path.resolve().parent
    another = f"name another with {option}"
    if not folder.is_dir():
        raise FileNotFoundError(
            f"There is no folder {folder} for the {what}; make it or {another}."
        )
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"The folder {folder} cannot be written to; {another}.")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} is there already; {another}, or replace it with --force.")


def check_picture(path: Path | None) -> None:
    """Raise an error if a picture cannot be drawn into a file."""
    if path is not None:
        from marginmf.plots.style import require_matplotlib

        check_destination(path, "picture", "--picture", PICTURES)
        require_matplotlib()


def check_columns(path: Path | None, *read: str | Path | None, also: tuple[str, ...] = ()) -> None:
    """Raise an error if columns cannot be written to a file in the format of its name.

    ``read`` are files that it must not be, ``also`` endings of formats that only this command
    writes; None is standard output.
    """
    if path is None:
        return
    from marginmf.datasets.files.arrow import require_pyarrow
    from marginmf.datasets.files.formats import BY_ENDING, FORMATS

    refuse_same(path, *read)
    columnar = tuple(ending for ending, kind in BY_ENDING.items() if FORMATS[kind].columnar)
    text = tuple(ending for ending in BY_ENDING if ending not in columnar)
    formats = (*text, *(f"{ending}.gz" for ending in text), *columnar, *also)
    streams = not path.name.lower().endswith(also)
    check_destination(path, "table", formats=formats, streams=streams)
    if path.name.lower().endswith(columnar):
        require_pyarrow(f"The table {path}")


def refuse_same(out: Path | None, *read: str | Path | None) -> None:
    """Raise an error if the output would replace a file that is read; None is no file."""
    if out is None or not out.exists():
        return
    for file in read:
        if file is not None and Path(file).exists() and out.samefile(file):
            raise ValueError(
                f"{out} is read by this command, which would replace it; name another file with "
                "--out."
            )


def save_model(model: Any, out: Path) -> tuple[dict[str, Any], str]:
    """Save a model; return where and how large it is, for programs and as a sentence."""
    model.save(out)
    n_bytes = out.stat().st_size
    return {"out": str(out), "bytes": n_bytes}, f"Saved to {out} ({format_size(n_bytes)})."


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format that the ending of the name says."""
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix.lower().removeprefix("."))


def write_batches(
    batches: Iterable[Columns], out: Path | None, as_json: bool, key: str, raw: bool
) -> dict[str, Any]:
    """Write columns to a file or standard output, and return the end of the JSON result.

    If JSON is wanted and no file, the rows are part of the result.
    """
    if as_json and out is None:
        return {"out": None, key: records(batches)}
    n_escaped = write_cells(batches, out, raw)
    return {"out": None if out is None else str(out), "n_escaped": n_escaped}


def write_cells(batches: Iterable[Columns], out: Path | None, raw: bool) -> int:
    """Write columns to a file or, as CSV, to standard output; return how many cells are escaped.

    In CSV and TSV, unless they are wanted raw, those are that a spreadsheet or a terminal would
    obey. The other formats have types, and text is nothing but text there.
    """
    from marginmf._utils.parameters import warn
    from marginmf.datasets import write_columns
    from marginmf.datasets.files.formats import ending

    cells = _Cells()
    if not raw and (out is None or ending(out.name) in DELIMITED):
        batches = map(cells.escape, batches)
    write_columns("-" if out is None else out, batches)
    if cells.n_escaped:  # also with --quiet: an id that changes silently would be missed by a join
        warn(
            f"Cells that a spreadsheet or a terminal would obey are escaped ({cells.n_escaped:,}; "
            f"the first is {cells.example}): they differ from the data. Add --raw to keep them."
        )
    return cells.n_escaped


class _Cells:
    """Escapes the cells and the names of columns, and counts those that it changed."""

    def __init__(self) -> None:
        self.n_escaped, self.example, self._names = 0, "", dict[str, str]()

    def escape(self, batch: Columns) -> Columns:
        """Return columns of which no text is a formula, or has a control character."""
        if not self._names:  # those of all batches
            self._names = self._escaped(batch)
            self.n_escaped += len(self._names)
        return {self._names.get(name, name): self._column(own) for name, own in batch.items()}

    def _column(self, column: Array) -> Array:
        if column.dtype.kind not in "OU":
            return column
        values = column.tolist()
        texts = dict.fromkeys(value for value in values if isinstance(value, str))
        changed = self._escaped(texts)
        if not changed:
            return column
        self.n_escaped += sum(isinstance(value, str) and value in changed for value in values)
        # A tuple may be an id, and of what it holds not all need be hashable.
        return as_objects(
            changed.get(value, value) if isinstance(value, str) else value for value in values
        )

    def _escaped(self, texts: Iterable[str]) -> dict[str, str]:
        """Return what becomes of those texts that are changed."""
        written = ((text, spreadsheet_cell(text)) for text in texts)
        changed = {text: cell for text, cell in written if cell != text}
        if changed and not self.example:
            text, cell = next(iter(changed.items()))
            self.example = f"{shown(text)}, written {printable(cell, LONGEST_QUOTE)}"
        return changed


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


def records(batches: Iterable[Columns]) -> list[dict[str, Any]]:
    """Return every row as a dictionary that JSON can hold; ids of other kinds become text."""
    return [
        {
            name: value if isinstance(value, int | float | str) else str(value)
            for name, value in zip(batch, row, strict=True)
        }
        for batch in batches
        for row in zip(*(column.tolist() for column in batch.values()), strict=True)
    ]


def show_lists(
    console: Console,
    batches: Iterable[Columns],
    n_owners: int,
    raw: bool,
    title_of: Callable[[Any], str] = lambda owner: "",
) -> None:
    """Print a table for each owner of a list, the first column; or CSV where there are many.

    Owners may have titles.
    """
    if n_owners > MOST_TABLES:
        write_cells(batches, None, raw)
        return
    for batch in batches:
        what, *others = batch
        order = sorted(others, key="rank".__ne__)
        while set(order).intersection(LEFT_OUT) and _width(batch, order) > console.width:
            order.remove(next(name for name in LEFT_OUT if name in order))
        for owner in dict.fromkeys(batch[what].tolist()):
            own = np.array([one == owner for one in batch[what].tolist()])
            console.print(heading(what, owner, title_of(owner)), style="bold")
            show_columns(console, {name: batch[name][own] for name in order})


def show_columns(console: Console, columns: Columns) -> None:
    """Print columns of numbers and ids as a table."""
    table = new_table(*(name.replace("_", " ") for name in columns))
    for column, values in zip(table.columns, columns.values(), strict=True):
        column.justify = "left" if values.dtype == object else "right"
    cells = ([_cell(name, one) for one in columns[name].tolist()] for name in columns)
    for row in zip(*cells, strict=True):
        table.add_row(*row)
    console.print(table)


def heading(what: str, owner: Any, title: str) -> str:
    """Write an id, and what it is, with its title if it has one."""
    words = [f"{what} {printable(str(owner), LONGEST_CELL)}", printable(title, LONGEST_CELL)]
    return ": ".join(filter(None, words))


def _cell(name: str, value: Any) -> str:
    return printable(NUMBERS.get(name, "{}").format(value), LONGEST_CELL)


def _width(columns: Columns, names: Iterable[str]) -> int:
    """Return how wide a table of some columns is; long titles are broken into lines."""
    widths = []
    for name in names:
        cells = max((len(_cell(name, one)) for one in columns[name].tolist()), default=0)
        widths.append(max(len(name), min(cells, TITLE_WIDTH) if name == "title" else cells))
    return sum(width + 3 for width in widths)


def new_table(*columns: str, numbers: int = 0) -> Table:
    """Return an empty table whose last ``numbers`` columns hold numbers."""
    table = Table(box=SIMPLE_HEAD, header_style="none", pad_edge=False)
    for index, heading in enumerate(columns):
        table.add_column(heading, justify="right" if index >= len(columns) - numbers else "left")
    return table


def show_facts(console: Console, title: str, facts: Mapping[str, str]) -> None:
    """Print a title, and under it a line for every fact."""
    console.print(printable(title, LONGEST_CELL), style="bold", soft_wrap=True)
    table = Table.grid(padding=(0, 2))
    for name, text in facts.items():
        table.add_row(f"  {printable(name, LONGEST_CELL)}", printable(text, LONGEST_MESSAGE))
    console.print(table)


def to_json(value: Any, encoding: str | None = None) -> str:
    """Return a value as JSON; numbers that it does not have are null, and objects are text.

    Letters are written as they are if the encoding, by default that of standard output, is UTF-8;
    otherwise all of it is ASCII, so that none is lost. What a terminal would obey is escaped.

    >>> print(to_json({"a": [1, float("nan")]}).replace(chr(10), ""))
    {  "a": [    1,    null  ]}
    """
    encoding = encoding or getattr(sys.stdout, "encoding", None) or "utf-8"
    plain = partial(json.dumps, _finite(value), indent=2, allow_nan=False, default=str)
    text = HIDDEN.sub(_escape, plain(ensure_ascii=False))
    try:
        text.encode(encoding)
        kept = codecs.lookup(encoding).name.startswith("utf-8")
    except (UnicodeEncodeError, LookupError):
        kept = False
    return text if kept else plain(ensure_ascii=True)


def _escape(match: re.Match[str]) -> str:
    # The newlines are those between the parts of the object.
    kept = match["flag"] or match[0] == "\n"
    return match[0] if kept else json.dumps(match[0])[1:-1]


def format_size(n_bytes: int) -> str:
    """Write the size of a file.

    >>> format_size(900), format_size(51_200), format_size(3_000_000)
    ('900 bytes', '51.2 kB', '3.0 MB')
    """
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    return f"{n_bytes / 1e3:.1f} kB" if n_bytes < 1e6 else f"{n_bytes / 1e6:.1f} MB"


def _finite(value: Any) -> Any:
    """Return a value with null in place of numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
