"""Vocabularies of users and of items, whose ids may be anything hashable.

Whole numbers are kept as an int64 array and looked up by arithmetic, everything else as Python
objects in a dictionary.
"""

from collections.abc import Hashable, Iterable
from contextlib import suppress
from difflib import get_close_matches
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np

from marginmf._utils.ids import as_id_column, as_objects, shown
from marginmf._utils.parameters import warn
from marginmf._utils.saved import SAVED
from marginmf._utils.types import Array, IntArray
from marginmf.backends.rows import BLOCK
from marginmf.ratings.tables import column_of

#: The code of an id that is not in the vocabulary.
UNKNOWN = -1

# A table over the whole range of integer ids is worth it up to this many slots per id.
_MAX_SLOTS_PER_ID = 64
#: How many unknown ids messages name, and how many that are close to one.
NAMED = 3
#: Among more ids than this, close ones are looked for where the first letter is the same.
MANY = 20_000


class IdIndex:
    """A vocabulary: ids to codes 0..n-1 and back.

    Parameters
    ----------
    values : sequence
        Ids, repeats allowed.
    what : str
        What the ids are of, for messages: "user" or "item".

    Examples
    --------
    >>> index = IdIndex(["b", "a", "b"])
    >>> index.encode(["a", "b", "zebra"])
    array([ 0,  1, -1], dtype=int32)
    >>> index.ids[[1, 0]].tolist()
    ['b', 'a']
    """

    def __init__(self, values: Any, what: str = "id") -> None:
        self.what = what
        column = id_column(values, what)
        if _is_whole(column):
            self.ids = _distinct(column)
        else:
            self.ids = as_objects(_sort_ids(dict.fromkeys(column.tolist())))

    # Look-ups take more memory than the ids: they are made when an id is first looked up.

    @cached_property
    def _table(self) -> IntArray | None:
        """The code of every whole number from the first id to the last, unless these are sparse."""
        if len(self) == 0 or int(self.ids[-1]) - int(self.ids[0]) >= _MAX_SLOTS_PER_ID * len(self):
            return None
        table: IntArray = np.full(int(self.ids[-1] - self.ids[0]) + 1, UNKNOWN, np.int32)
        table[self.ids - self.ids[0]] = np.arange(len(self), dtype=np.int32)
        return table

    @cached_property
    def _codes(self) -> dict[Any, int]:
        return self._make_codes()

    def _make_codes(self) -> dict[Any, int]:
        """Return the code of every id by its value in Python."""
        return {value: code for code, value in enumerate(self.ids.tolist())}

    def __getstate__(self) -> dict[str, Any]:
        return {"ids": self.ids, "what": self.what}

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"IdIndex({len(self)} {self.what}s)"

    def encode(self, values: Any, *, quiet: bool = False) -> IntArray:
        """Return the code of every id, `UNKNOWN` for ids that are not in the vocabulary.

        If none is known, and they are of another type, a warning says so, unless ``quiet``.
        """
        column = id_column(values, self.what)
        if len(self) == 0:
            return np.full(len(column), UNKNOWN, np.int32)
        if _is_whole(column) and self.ids.dtype == np.int64:
            codes: IntArray = np.empty(len(column), np.int32)
            for block, out in zip(_blocks(column), _blocks(codes), strict=True):
                out[:] = self._encode_integers(block.astype(np.int64, copy=False))
            return codes
        # Whole numbers are rarely looked up by other values, and there may be millions.
        known = self._codes if self.ids.dtype != np.int64 else self._make_codes()
        found = (known.get(value, UNKNOWN) for value in column.tolist())
        codes = np.fromiter(found, np.int32, len(column))
        if not quiet and len(codes) and column.dtype != self.ids.dtype and (codes < 0).all():
            warn(
                f"None of the {self.what}s given is known, and their ids are of another type: "
                f"{shown(column[0])} now, {shown(self.ids[0])} in training.",
            )
        return codes

    def meant(self, value: Any) -> str:
        """Return the ids that an unknown one may stand for as a question, or nothing.

        >>> IdIndex(["ann", "bob"], "user").meant("anna"), IdIndex([7, 42], "user").meant("42")
        ("did you mean 'ann'?", 'did you mean the number 42?')
        """
        others: list[tuple[str, Any]] = []
        if isinstance(value, str):
            with suppress(ValueError):
                others.append(("number", int(value)))
        else:
            others.append(("text", str(value)))
        for kind, other in others:
            if self.encode([other], quiet=True)[0] >= 0:
                return f"did you mean the {kind} {other!r}?"
        if self.ids.dtype == np.int64:  # as many numbers are close to any other one
            return ""
        written = {str(one): one for one in self.ids.tolist()}
        candidates = list(written)
        if len(candidates) > MANY:
            first = str(value)[:1]
            candidates = [one for one in candidates if one[:1] == first][:MANY]
        close = get_close_matches(str(value), candidates, NAMED, cutoff=0.6)
        listed = " or ".join(shown(written[one]) for one in close)
        return f"did you mean {listed}?" if close else ""

    def hint(self, value: Any) -> str:
        """Return a sentence that helps whoever asked for an unknown id.

        >>> IdIndex([7, 42], "user").hint(43)
        "The model's users are numbers from 7 to 42."
        """
        question = self.meant(value)
        if question:
            return f"D{question[1:]}"
        if len(self) == 0:
            return f"The model knows no {self.what}s at all."
        if self.ids.dtype == np.int64:
            return f"The model's {self.what}s are numbers from {self.ids[0]} to {self.ids[-1]}."
        return f"The model's {self.what}s are such as {shown(self.ids[0])}."

    def name_unknown(self, ids: Array) -> str:
        """Return the first of some unknown ids as messages list them.

        >>> IdIndex(["ann", "bob"], "user").name_unknown(as_objects(["anna", 7, 8, 9]))
        "'anna' (did you mean 'ann'?), 7, 8 and 1 more"
        """
        named = [(shown(one), self.meant(one)) for one in ids[:NAMED].tolist()]
        listed = ", ".join(f"{one} ({question})" if question else one for one, question in named)
        return f"{listed} and {len(ids) - NAMED:,} more" if len(ids) > NAMED else listed

    def union(self, other: "IdIndex") -> "IdIndex":
        """Return a vocabulary of both; it is this one if the other has nothing new."""
        new = other.ids[self.encode(other.ids) < 0]
        if len(new) == 0:
            return self
        if self.ids.dtype == new.dtype:
            return IdIndex(np.concatenate([self.ids, new]), self.what)
        # Of two types: NumPy's numbers become Python's own first, as ids are kept.
        return IdIndex(as_objects([*self.ids.tolist(), *new.tolist()]), self.what)

    def _encode_integers(self, column: IntArray) -> IntArray:
        if self._table is not None:
            first, last = self.ids[0], self.ids[-1]
            if len(column) and column.min() >= first and column.max() <= last:
                return self._table[column - first]
            inside = (column >= first) & (column <= last)
            slots = np.where(inside, column - first, 0)
            return np.where(inside, self._table[slots], UNKNOWN).astype(np.int32, copy=False)
        codes = np.minimum(np.searchsorted(self.ids, column), len(self) - 1)
        return np.where(self.ids[codes] == column, codes, UNKNOWN).astype(np.int32)


SAVED["ids"] = IdIndex  # in a form of its own, not by the parameters of its constructor


def id_column(values: Any, what: str = "id") -> Array:
    """Return ids as a column; whole numbers stay as they are, because a copy may be large."""
    return values if _is_whole(values) else as_id_column(values, what)


def _is_whole(values: Any) -> TypeGuard[IntArray]:
    """Whether this is a column of whole numbers already."""
    return isinstance(values, np.ndarray) and values.dtype.kind in "ib" and values.ndim == 1


def _distinct(column: IntArray) -> IntArray:
    """Return the whole numbers of a column, each once, ascending."""
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    if high - low >= len(column):
        found = [np.unique(block).astype(np.int64) for block in _blocks(column)]
        return np.unique(np.concatenate(found))
    # They lie close together: a mark for each takes no sorting.
    occurs = np.zeros(high - low + 1, bool)
    for block in _blocks(column):
        occurs[block.astype(np.int64, copy=False) - low] = True
    return np.flatnonzero(occurs) + low


def _blocks(column: IntArray) -> list[IntArray]:
    """Return a column in blocks, for work that takes wide temporary arrays."""
    return [column[first : first + BLOCK] for first in range(0, max(len(column), 1), BLOCK)]


def _sort_ids(values: Iterable[Any]) -> list[Any]:
    """Sort by type, then by value or, where values cannot be compared, by how they are written."""
    try:
        return sorted(values, key=lambda value: (type(value).__qualname__, value))
    except TypeError:
        return sorted(values, key=lambda value: (type(value).__qualname__, repr(value)))


def as_ids(values: Any, index: IdIndex) -> Array:
    """Return the ids that a caller asks about, each once, in the order asked.

    A string, what is not iterable, and what the vocabulary knows (a tuple, say) are one id; other
    iterables hold many, and so does a frame: in its column of that name, or in its only one.
    """
    column = column_of(values, index.what)
    if column is not None:
        values = column
    elif not isinstance(values, np.ndarray):
        one = not isinstance(values, Iterable) or isinstance(values, str | bytes)
        values = as_objects([values] if one or _knows(index, values) else values)
    if values.ndim > 1:
        raise ValueError(
            f"The {index.what}s must be one id or one column of ids, but their shape is "
            f"{values.shape}."
        )
    ids = as_id_column(values.reshape(-1), index.what)
    if ids.dtype == np.int64:
        return ids[np.sort(np.unique(ids, return_index=True)[1])]
    return as_objects(dict.fromkeys(ids.tolist()))


def known_codes(ids: Array, index: IdIndex, role: str) -> IntArray:
    """Return the codes of ids, or raise a ValueError that names the first unknown one."""
    codes = index.encode(ids, quiet=True)
    unknown = ids[codes < 0]
    if len(unknown):
        first, hint = shown(unknown[0]), index.hint(unknown[0])
        if len(ids) == 1:
            raise ValueError(f"The {index.what} {first} was not seen in training. {hint}")
        raise ValueError(
            f"{len(unknown):,} of {len(ids):,} {role} were not seen in training; the first is "
            f"{first}. {hint}"
        )
    return codes


def _knows(index: IdIndex, value: Any) -> bool:
    if not isinstance(value, Hashable):
        return False
    try:
        return bool((index.ids == as_objects([value])).any())
    except (TypeError, ValueError):
        return False
