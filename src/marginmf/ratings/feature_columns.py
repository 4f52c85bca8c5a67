"""How the columns of a table of features become columns of numbers, now and for tables to come.

A number belongs to the two knots around it, a cell of categories to each of them, and every row to
"any": all are memberships with weights.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from marginmf._utils.ids import is_missing
from marginmf._utils.parameters import warn
from marginmf._utils.saved import saved
from marginmf._utils.types import Array, Float64Array, FloatArray, IntArray
from marginmf.datasets.files.columns import listed

#: Numbers get this many knots at most, at the quantiles of the column.
MOST_KNOTS = 5
#: A category of fewer ids than this says nothing of another id.
FEWEST_IDS = 2
#: A column is left out if this share of its cells, or less, has a category in common with another.
HARDLY_SHARED = 0.1
#: A matrix of weights may have this many columns: each needs memory even where it is empty.
MOST_WEIGHTS = 1 << 22
#: What separates several categories in a cell of text.
BETWEEN = "|"
#: The column that every row with features has.
ANY = "any"
#: What a cell with several categories may be, beside text.
SEVERAL = (list, tuple, set, frozenset, np.ndarray)
KINDS = ("number", "category", "categories", "weights")


class _Weights(NamedTuple):
    """Entries of some columns of the matrix, and the categories that are not known."""

    rows: IntArray
    columns: IntArray
    weights: FloatArray
    unknown: tuple[str, ...] = ()


@saved
@dataclass(frozen=True)
class FeatureColumn:
    """How one column of a table, of a kind among `KINDS`, becomes columns of numbers.

    Its values are the knots of numbers, ascending; the categories; or how many weights there are.
    """

    _saved: ClassVar[dict[str, Any]] = {"name": str, "kind": str, "values": tuple}
    name: str
    kind: str
    values: tuple[Any, ...]

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        wanted = {"number": float, "weights": int}.get(self.kind, str)
        if self.kind not in KINDS or not all(type(value) is wanted for value in self.values):
            yield f" is of the kind {self.kind!r:.60}, with other values"
        elif self.kind == "weights" and (
            len(self.values) != 1 or not 1 <= self.values[0] <= MOST_WEIGHTS
        ):
            yield " has no number of weights"
        elif self.kind == "number" and not (
            len(self.values) >= 2
            and np.isfinite(self.values).all()
            and (np.diff(self.values) > 0).all()
        ):
            yield " has knots that are not in rising order"
        elif not self.values or len(set(self.values)) < len(self.values):
            yield " has no categories, or one of them twice"

    def __len__(self) -> int:
        """How many columns of numbers it becomes."""
        return int(self.values[0]) if self.kind == "weights" else len(self.values)

    @property
    def names(self) -> list[str]:
        """What these are called."""
        if self.kind == "weights":
            return [str(k) for k in range(len(self))]
        if self.kind == "number":
            return [f"{self.name}~{knot:.6g}" for knot in self.values]
        return [f"{self.name}={category}" for category in self.values]

    def __str__(self) -> str:
        n = len(self)
        if self.kind == "weights":
            return f"{n} weights"
        if self.kind == "number":
            return f"{self.name} (number)"
        several = ", several a cell" if self.kind == "categories" else ""
        return f"{self.name} ({n} {'category' if n == 1 else 'categories'}{several})"

    def encode(self, cells: Array) -> _Weights:
        """Return the weights of cells."""
        if self.kind == "number":
            return _knot_weights(as_numbers(cells, self.name), np.array(self.values))
        rows, found = _memberships(cells, self.kind)
        codes = {category: code for code, category in enumerate(self.values)}
        columns = np.fromiter((codes.get(one, -1) for one in found), np.int64, len(found))
        known = columns >= 0
        unknown = tuple(found[k] for k in np.flatnonzero(~known))
        return _Weights(rows[known], columns[known], np.ones(known.sum()), unknown)


@saved
@dataclass(frozen=True)
class Encoder:
    """How columns of a table become numbers, for tables to come, and why others are left out."""

    _saved: ClassVar[dict[str, Any]] = {"columns": tuple, "left_out": dict}
    columns: tuple[FeatureColumn, ...]
    left_out: dict[str, str] = field(default_factory=dict)

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        if not self.columns or not all(type(one) is FeatureColumn for one in self.columns):
            yield " has no columns, or others than those of features"
        elif len({one.name for one in self.columns}) < len(self.columns):
            yield " has two columns of one name"
        elif any(one.kind == "weights" for one in self.columns) and len(self.columns) > 1:
            yield " has columns beside a matrix"
        elif not all(type(one) is str for pair in self.left_out.items() for one in pair):
            yield ".left_out has other reasons than text"

    @property
    def n_columns(self) -> int:
        """How many columns of numbers there are, "any" among them."""
        return sum(map(len, self.columns)) + 1

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called, such as "genres=Comedy", "year~1995" and, last, "any"."""
        return (*(name for column in self.columns for name in column.names), ANY)

    def __str__(self) -> str:
        left_out = (f"{name} left out: {why}" for name, why in self.left_out.items())
        return ", ".join([*map(str, self.columns), *left_out])

    def encode(self, table: Any, *, quiet: bool = False) -> sparse.csr_array:
        """Return a row of unit length for each row of a `FeatureTable`, old or new.

        A missing column is a ValueError, and so is text for a number; unknown categories and
        columns are a warning, unless ``quiet``.
        """
        if self.columns[0].kind == "weights":
            n_columns, weights = len(self.columns[0]), table.weights
            if weights is None or weights.shape[1] != n_columns:
                raise ValueError(
                    f"The features of {table.what}s were a matrix with {n_columns} columns in "
                    "training: give the ids and such a matrix."
                )
            stored = weights.tocoo()
            parts = [_Weights(stored.row, stored.col, stored.data.astype(np.float64))]
        else:
            self._check_columns(table, quiet)
            parts = [column.encode(table.columns[column.name]) for column in self.columns]
        unknown = Counter(one for part in parts for one in part.unknown)
        if unknown and not quiet:
            named = ", ".join(repr(one) for one, _ in unknown.most_common(3))
            warn(
                f"Features of {table.what}s have categories that were not known in training, and "
                f"which are ignored ({len(unknown)}): {named}{', ...' * (len(unknown) > 3)}.",
            )
        everyone = np.arange(len(table))
        parts.append(_Weights(everyone, np.zeros_like(everyone), np.ones(len(table))))
        first = np.cumsum([0, *map(len, self.columns)])
        rows = np.concatenate([part.rows for part in parts])
        columns = np.concatenate([k + part.columns for k, part in zip(first, parts, strict=True)])
        weights = np.concatenate([part.weights for part in parts])
        # In two steps, because squares of large weights would be infinite.
        largest = np.ones(len(table))
        np.maximum.at(largest, rows, np.abs(weights))
        weights = weights / largest[rows]
        weights /= np.sqrt(np.bincount(rows, weights**2, len(table)))[rows]
        shape = (len(table), self.n_columns)
        matrix = sparse.coo_array((weights.astype(np.float32), (rows, columns)), shape).tocsr()
        matrix.eliminate_zeros()
        return matrix

    def _check_columns(self, table: Any, quiet: bool) -> None:
        if table.weights is not None:
            raise ValueError(
                f"The features of {table.what}s are a matrix, but were columns in training: give "
                f"the columns {listed(column.name for column in self.columns)}."
            )
        known = {column.name for column in self.columns}
        missing = [name for name in known if name not in table.columns]
        if missing:
            raise ValueError(
                f"The features of {table.what}s lack the column {min(missing)!r}, which they had "
                f"in training; there are {listed(table.columns)}."
            )
        extra = [name for name in table.columns if name not in known | self.left_out.keys()]
        if extra and not quiet:
            warn(
                f"The features of {table.what}s have columns that they had not in training, and "
                f"which are ignored: {listed(extra)}.",
            )


def fitted_column(name: str, cells: Array) -> FeatureColumn | str:
    """Return how a column becomes numbers, or why it is left out."""
    n = len(cells) - n_missing(cells)
    if n == 0:
        return "it is empty"
    if cells.dtype != object:
        there = cells[~np.isnan(cells)]
        quantiles = np.linspace(0.0, 1.0, MOST_KNOTS)
        knots = np.unique(np.quantile(there, quantiles, method="inverted_cdf"))
        if len(knots) == 1:
            return "every value is the same"
        return FeatureColumn(name, "number", tuple(knots.tolist()))
    if any(isinstance(cell, date) for cell in cells):
        return "it holds dates: give years or days as numbers"
    several = any(isinstance(cell, SEVERAL) for cell in cells) or any(
        BETWEEN in cell for cell in cells if isinstance(cell, str)
    )
    kind = "categories" if several else "category"
    rows, found = _memberships(cells, kind)
    counts = Counter(found)
    kept = sorted(one for one, n_ids in counts.items() if n_ids >= FEWEST_IDS)
    if len(counts) == 1 and len(found) == (len(cells) if several else n):
        return "every value is the same"
    known = set(kept)
    shared = {row for row, one in zip(rows.tolist(), found, strict=True) if one in known}
    if len(shared) <= HARDLY_SHARED * n:
        return "every value differs" if not kept else "nearly every value differs"
    return FeatureColumn(name, kind, tuple(kept))


def _memberships(cells: Array, kind: str) -> tuple[IntArray, list[str]]:
    pairs = [
        (row, one) for row, cell in enumerate(cells) for one in dict.fromkeys(_parts(cell, kind))
    ]
    return np.array([row for row, _ in pairs], np.int64), [one for _, one in pairs]


def _parts(cell: Any, kind: str) -> list[str]:
    if isinstance(cell, SEVERAL):
        return [one for part in cell for one in _parts(part, "category")]
    if is_missing(cell):
        return []
    if isinstance(cell, float | np.floating) and float(cell).is_integer():
        cell = int(cell)  # a column of whole numbers may have become one of floats
    parts = str(cell).split(BETWEEN) if kind == "categories" else [str(cell)]
    return [part.strip() for part in parts if part.strip()]


def _knot_weights(numbers: Float64Array, knots: Float64Array) -> _Weights:
    """Return weights of the two knots around each number, which add up to one."""
    rows = np.flatnonzero(~np.isnan(numbers))
    position = np.interp(numbers[rows], knots, np.arange(len(knots)))
    below = np.minimum(position.astype(np.int64), len(knots) - 2)
    above = position - below
    weights = np.concatenate([1.0 - above, above])
    return _Weights(np.tile(rows, 2), np.concatenate([below, below + 1]), weights)


def as_numbers(cells: Array, name: str) -> Float64Array:
    """Return cells as numbers, NaN where missing, or say which one is not a number."""
    if cells.dtype != object:
        return cells.astype(np.float64)
    numbers = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        try:
            numbers[row] = np.nan if cell is None else float(cell)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                f"The column {name!r} holds numbers, but {cell!r:.60} in row {row} is none."
            ) from None
    return numbers


def n_missing(cells: Array) -> int:
    """Return how many cells are missing."""
    if cells.dtype == object:
        return sum(cell is None for cell in cells)
    return int(np.isnan(cells).sum())
