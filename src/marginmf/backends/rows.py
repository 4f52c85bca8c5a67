"""`Rows`: ratings as one side sees them, without the ids; and what else is known of both sides."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from marginmf._utils.concurrency import Snapshot
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends.threads import row_parts

#: Entries that are worked on at a time where that takes wide temporary arrays.
BLOCK = 1 << 18

#: Whose rows: users and items take the same part, with roles exchanged.
Side = Literal["user", "item"]
SIDES: tuple[Side, Side] = ("user", "item")


class FeatureMatrices(NamedTuple):
    """What factors are built from: sparse matrices with a column for each feature, if any."""

    rows: csr_array
    columns: csr_array


class Coordinates(NamedTuple):
    """How the weights of one side's features lie in a vector.

    Parameters ``x`` stand for ``y = x - (1 - damping) d (d . x)``, on which the penalty is, and for
    the weights ``scales * y``.  It is a change of variables that saves solvers half of their steps:
    along the unit vector d, which nearly all rows have in common, the loss is far more curved than
    along others.  A damping of 1 changes nothing.
    """

    scales: FloatArray
    direction: FloatArray
    damping: float

    @classmethod
    def plain(cls, n_features: int) -> "Coordinates":
        """Return coordinates in which parameters are the weights."""
        return cls(np.ones(n_features), np.zeros(n_features), 1.0)

    def penalised(self, x: FloatArray) -> FloatArray:
        """Return what the penalty is on; also what the gradient by x is, from the one by that."""
        return self._stretched(x, self.damping)

    def weights(self, x: FloatArray) -> FloatArray:
        """Return the weights that parameters stand for."""
        return self._scales(x) * self.penalised(x)

    def parameters(self, weights: FloatArray) -> FloatArray:
        """Return the parameters that stand for some weights; zeros where scales are zero."""
        scales = self._scales(weights)
        y = np.divide(weights, scales, out=np.zeros_like(weights), where=scales > 0)
        return self._stretched(y, 1.0 / self.damping)

    def _scales(self, like: FloatArray) -> FloatArray:
        return self.scales.astype(like.dtype)[:, None]

    def _stretched(self, x: FloatArray, factor: float) -> FloatArray:
        if factor == 1.0:
            return x
        direction = self.direction.astype(x.dtype)
        # Not a matrix product: the threads of BLAS would change the rounding.
        along: FloatArray = np.einsum("f,fp->p", direction, x)
        return x - np.outer(direction, x.dtype.type(1.0 - factor) * along)


@dataclass(frozen=True, eq=False)
class Rows(Snapshot):
    """Ratings in compressed rows: row ``i`` owns the entries ``indptr[i]:indptr[i + 1]``.

    Entry ``k`` is a rating at level ``codes[k]`` between row ``rows[k]`` and column ``indices[k]``.
    Rows are users and columns items, or the other way round; what works on one side's rows works
    on the other's.

    Parameters
    ----------
    levels : array of shape (n_levels,)
        The scale, ascending.
    indptr, indices, codes : array
        The entries; codes are indices into ``levels``.
    """

    levels: Float64Array
    indptr: IntArray
    indices: IntArray
    codes: IntArray

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.indptr) - 1

    @property
    def n_levels(self) -> int:
        """How many levels the scale has."""
        return len(self.levels)

    @property
    def values(self) -> Float64Array:
        """The ratings themselves, in the order of the entries."""
        return self.levels[self.codes]

    def parts(self) -> Iterator[tuple[slice, slice]]:
        """Yield neighbouring rows and where their entries are, about `BLOCK` entries at a time."""
        for first, last in pairwise(row_parts(self.indptr, 1 + len(self) // BLOCK).tolist()):
            yield slice(first, last), slice(int(self.indptr[first]), int(self.indptr[last]))

    @cached_property
    def rows(self) -> IntArray:
        """The row of every entry."""
        return np.repeat(np.arange(self.n_rows, dtype=np.int32), np.diff(self.indptr))

    def entries_of(self, which: IntArray) -> IntArray:
        """Return the indices of some rows' entries, row after row."""
        lengths = np.diff(self.indptr)[which]
        shifts = self.indptr[which] - (np.cumsum(lengths) - lengths)
        return np.repeat(shifts, lengths) + np.arange(lengths.sum())

    def take(self, which: IntArray) -> "Rows":
        """Return some of the rows, in the order given."""
        entries = self.entries_of(which)
        indptr = np.concatenate(([0], np.cumsum(np.diff(self.indptr)[which])))
        return Rows(self.levels, indptr, self.indices[entries], self.codes[entries])
