"""Columns that arrive block by block: what a block is, and how blocks become whole columns.

Ids are held as numbers or, where they are names, as places in one vocabulary, so that ten million
rows need no ten million strings.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from marginmf._utils.ids import as_objects
from marginmf._utils.types import Float64Array, IntArray
from marginmf.datasets.table import IdArray

Int64Array = npt.NDArray[np.int64]
#: A column that is full grows by one part in so many.
GROWTH = 8


@dataclass(frozen=True)
class Encoded:
    """Ids of some rows: the different ones, and for each row the place of its own among them."""

    values: list[Any]
    codes: IntArray

    def __len__(self) -> int:
        return len(self.codes)


#: Whole numbers are an array; anything else is `Encoded`.
IdBlock = Int64Array | Encoded


@dataclass(frozen=True)
class Batch:
    """Some rows of a file."""

    users: IdBlock
    items: IdBlock
    ratings: Float64Array | None = None
    timestamps: Int64Array | None = None

    def __len__(self) -> int:
        return len(self.users)


class CellFault(ValueError):  # noqa: N818, the file is at fault
    """A cell that cannot be read: its row in the block, what is wrong, and what would mend it."""

    def __init__(self, row: int, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.row, self.problem, self.remedy = row, problem, remedy


class Meaning(Protocol):
    """What the raw columns of a kind of file mean; a module is one of these."""

    def ids(self, column: Any, what: str, /) -> IdBlock:
        """Return ids, or raise a `CellFault`."""

    def ratings(self, column: Any, /) -> Float64Array:
        """Return finite numbers, or raise a `CellFault`."""

    def times(self, column: Any, /) -> Int64Array:
        """Return seconds since 1970, or raise a `CellFault`."""

    def perhaps_times(self, column: Any, /) -> Int64Array | None:
        """Return the column if all of it are whole numbers."""


def make_batch(raw: Mapping[str, Any], meaning: Meaning) -> Batch:
    """Convert the raw columns of some rows; the first row at fault is the one reported."""
    faults: list[CellFault] = []

    def convert(role: str, function: Callable[..., Any], *rest: Any) -> Any:
        if raw.get(role) is None:
            return None
        try:
            return function(raw[role], *rest)
        except CellFault as fault:
            faults.append(fault)

    users = convert("user", meaning.ids, "user")
    items = convert("item", meaning.ids, "item")
    ratings = convert("rating", meaning.ratings)
    times = convert("timestamp", meaning.times)
    if faults:
        raise min(faults, key=lambda fault: fault.row)
    if times is None:
        times = convert("perhaps_time", meaning.perhaps_times)
    return Batch(users, items, ratings, times)


def said(fault: CellFault, where: str, unit: str, number: int) -> ValueError:
    """Return the error for the user: the file, the line or row, what is wrong, what to do."""
    return ValueError(
        f"{where}, {unit} {number}: {fault.problem}; {fault.remedy} or remove this {unit}."
    )


def encode(values: list[Any]) -> Encoded:
    """Encode ids that can be hashed."""
    places = {value: place for place, value in enumerate(dict.fromkeys(values))}
    codes = np.fromiter(map(places.__getitem__, values), np.int32, len(values))
    return Encoded(list(places), codes)


class Column:
    """A column of numbers that grows by blocks, in place so that it is never held twice."""

    def __init__(self, dtype: type[np.generic]) -> None:
        self._array = np.empty(0, dtype=dtype)
        self._length = 0

    def add(self, block: npt.NDArray[Any]) -> None:
        """Add the numbers of some rows."""
        start, self._length = self._length, self._length + len(block)
        if self._length > len(self._array):
            # No views of the array leave this class, so that its memory may move.
            self._array.resize(self._length + self._length // GROWTH, refcheck=False)
        self._array[start : self._length] = block

    def __getitem__(self, row: int) -> Any:
        return self._array[: self._length][row]

    def finish(self) -> npt.NDArray[Any]:
        """Return the whole column, and let go of it."""
        whole, self._array = self._array, self._array[:0]
        whole.resize(self._length, refcheck=False)
        return whole

    def __len__(self) -> int:
        return self._length


class IdColumn:
    """A column of ids that grows by blocks.

    Parameters
    ----------
    text : bool
        Whether the ids are the cells of a text. Then whole numbers are numbers only if all of the
        column are; else they are names like the rest of it.
    """

    def __init__(self, text: bool) -> None:
        self.text = text
        self._numbers = Column(np.int64)
        self._codes: Column | None = None
        # An id that is asked for the first time gets the next place.
        self._vocabulary: dict[Any, int] = defaultdict(count().__next__)

    def add(self, block: IdBlock) -> None:
        """Add the ids of some rows."""
        if isinstance(block, np.ndarray):
            if self._codes is None:
                self._numbers.add(block)
                return
            block = as_encoded(block, self.text)
        if self._codes is None:
            self._codes = Column(np.int32)
            self._encode(as_encoded(self._numbers.finish(), self.text), self._codes)
        self._encode(block, self._codes)

    def _encode(self, block: Encoded, codes: Column) -> None:
        places = map(self._vocabulary.__getitem__, block.values)
        codes.add(np.fromiter(places, np.int32, len(block.values))[block.codes])

    def finish(self) -> IdArray:
        """Return the whole column, and let go of it."""
        if self._codes is None:
            return self._numbers.finish()
        names: IdArray = as_objects(self._vocabulary)[self._codes.finish()]
        return names


def as_encoded(numbers: Int64Array, text: bool) -> Encoded:
    """Encode whole numbers, as the names that they are in a text or as numbers."""
    values, codes = np.unique(numbers, return_inverse=True)
    listed = values.tolist()
    return Encoded(list(map(str, listed)) if text else listed, codes)
