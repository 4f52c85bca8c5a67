"""Read a user's own file of ratings, whatever its separator, header and encoding."""

import math
import re
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from marginmf.datasets.delimited import Row, iterate_rows, read_text, sniff_separator
from marginmf.datasets.headers import Layout, find_layout
from marginmf.datasets.table import IdArray, RatingsTable

# "007", "+7" and "-0" are names, not numbers: as int64 they could not be told from 7 and 0.
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]*")
INT64_DIGITS = 18  # any whole number of so many fits
BATCH = 500


def read_ratings(path: str | PathLike[str]) -> RatingsTable:
    r"""Read a text file of ratings, one rating a line.

    The separator (comma, tab, ``::``, semicolon or blanks) is found by looking at the first lines.
    A header is recognised, in any case and with or without ``_``, by names such as ``user_id``,
    ``movieId``, ``rating`` and ``timestamp``; without one, or with names that say nothing, the
    first three columns are user, item and rating, and a fourth that holds only whole numbers is
    the timestamp. Files may be compressed with gzip. Blanks around values are dropped.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    RatingsTable
        Ids are ``int64`` where a whole column of them are whole numbers, else strings.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is empty or a line cannot be read; the message names the line and the value.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "films.csv")
    ...     _ = path.write_text("userId,movieId,rating\nann,50,4.5\nbob,50,3\n")
    ...     table = read_ratings(path)
    >>> table.users.tolist(), table.items.tolist(), table.ratings.tolist()
    (['ann', 'bob'], [50, 50], [4.5, 3.0])
    """
    path = Path(path)
    return parse_ratings(read_text(path), name=path.name, where=str(path))


def parse_ratings(text: str, name: str, where: str) -> RatingsTable:
    """Make a table of the text of a file; `where` names the file in error messages."""
    source = _Source(text, sniff_separator(text), where)
    rows = source.rows()
    first = next(rows, None)
    if first is None:
        raise ValueError(f"{where} is empty; it needs lines with a user, an item and a rating.")
    layout = find_layout(first, where)
    columns = _Columns(source, layout, rows if layout.header else chain([first], rows))
    if not columns.n_rows:
        raise ValueError(f"{where} has no ratings after its header line; add lines of ratings.")
    return RatingsTable(
        name,
        columns.ids("user", layout.user),
        columns.ids("item", layout.item),
        columns.numbers("rating", layout.rating, _rating),
        timestamps=columns.timestamps(),
        source=f"read from {where}",
    )


@dataclass(frozen=True)
class _Source:
    """The text of a file, and how to name a line of it."""

    text: str
    separator: str | None
    where: str

    def rows(self) -> Iterator[Row]:
        return map(itemgetter(1), iterate_rows(self.text, self.separator, self.where))

    def fault(self, row: int, message: str) -> NoReturn:
        rows = iterate_rows(self.text, self.separator, self.where)
        line, _ = next(islice(rows, row, None))
        raise ValueError(f"{self.where}, line {line}: {message}")


class _Columns:
    """The columns of a file that matter, as text, and their conversion.

    A column holds far fewer different cells than lines, so each different cell is parsed once.
    """

    def __init__(self, source: _Source, layout: Layout, rows: Iterator[Row]) -> None:
        self.source = source
        self.layout = layout
        self.n_rows = 0
        needed = {layout.user, layout.item, layout.rating}
        if layout.timestamp is not None:
            needed.add(layout.timestamp)
        self.columns: dict[int, list[str]] = {index: [] for index in needed}
        # Without a name to go by, the fourth column is the time if every line has one.
        fourth: list[str] | None = None if layout.named else []
        # In batches, because a million rows held at once double the time in the garbage collector.
        while batch := list(islice(rows, BATCH)):
            narrowest = min(map(len, batch))
            if narrowest < layout.width:
                self._too_narrow(batch)
            for index, cells in self.columns.items():
                cells.extend(map(itemgetter(index), batch))
            if narrowest < 4:
                fourth = None
            if fourth is not None:
                fourth.extend(map(itemgetter(3), batch))
            self.n_rows += len(batch)
        self.fourth = fourth

    def _too_narrow(self, batch: list[Row]) -> NoReturn:
        short = next(k for k, row in enumerate(batch) if len(row) < self.layout.width)
        self._fault(
            self.n_rows + short,
            f"{len(batch[short])} column(s) found where {self.layout.width} are needed (user, "
            f"item, rating, separated by comma, tab, '::', semicolon or blanks); complete or "
            f"remove this line.",
        )

    def ids(self, what: str, index: int) -> IdArray:
        cells = self.columns[index]
        names = {cell: cell.strip() for cell in set(cells)}
        empty = {cell for cell, name in names.items() if not name}
        if empty:
            self._fault(
                _first(cells, empty), f"the {what} id is empty; fill it in or remove this line."
            )
        if _all_whole(names.values()):
            numbers = {cell: int(name) for cell, name in names.items()}
            return np.fromiter(map(numbers.__getitem__, cells), np.int64, len(cells))
        ids = np.empty(len(cells), dtype=object)
        ids[:] = list(map(names.__getitem__, cells))
        return ids

    def numbers(
        self, what: str, index: int, parse: Callable[[str], float]
    ) -> npt.NDArray[np.float64]:
        cells = self.columns[index]
        numbers: dict[str, float] = {}
        faults: dict[str, str] = {}
        for cell in set(cells):
            try:
                numbers[cell] = parse(cell.strip())
            except ValueError as error:
                faults[cell] = str(error)
        if faults:
            first = _first(cells, faults)
            self._fault(
                first,
                f"the {what} {cells[first].strip()!r} {faults[cells[first]]}; "
                f"correct or remove this line.",
            )
        return np.fromiter(map(numbers.__getitem__, cells), np.float64, len(cells))

    def timestamps(self) -> npt.NDArray[np.int64] | None:
        named = self.layout.timestamp
        column = self.fourth if named is None else self.columns[named]
        if column is None:
            return None
        cells = list(map(str.strip, column))
        if all(map(str.isdecimal, cells)) and max(map(len, cells)) <= INT64_DIGITS:
            return np.fromiter(map(int, cells), np.int64, self.n_rows)
        if named is None:
            return None
        return self.numbers("timestamp", named, _timestamp).astype(np.int64)

    def _fault(self, row: int, message: str) -> NoReturn:
        self.source.fault(row + self.layout.header, message)


def _all_whole(names: Iterable[str]) -> bool:
    """Whether all of these are whole numbers that int64 holds and gives back as they were."""
    return all(len(name) <= INT64_DIGITS and WHOLE_NUMBER.fullmatch(name) for name in names)


def _first(cells: list[str], wanted: Container[str]) -> int:
    return next(k for k, cell in enumerate(cells) if cell in wanted)


def _rating(cell: str) -> float:
    try:
        number = float(cell.replace("_", "?"))  # Python reads 1_0 as ten; a file does not
    except ValueError:
        raise ValueError("is not a number") from None
    if not math.isfinite(number):
        raise ValueError("is not a finite number")
    return number


def _timestamp(cell: str) -> float:
    """Seconds since 1970, from a number or from a date such as 1998-04-22 or 1998-04-22T10:00."""
    try:
        number = _rating(cell)
    except ValueError:
        pass
    else:
        if abs(number) >= 2.0**63:
            raise ValueError("is too large a number for a time")
        return number
    try:
        moment: np.datetime64 = np.datetime64(cell, "s")
    except ValueError:
        moment = np.datetime64("NaT", "s")
    if np.isnat(moment):  # also what an empty cell gives
        raise ValueError("is neither a number nor a date such as 1998-04-22")
    return float(moment.astype(np.int64))
