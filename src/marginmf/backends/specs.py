"""What backends are asked, and what they must be able to do.

A method says *what* it minimises with a `Spec`, the loss of a row's scores as plain data; a
`Backend` knows *how*, and where memory is.  A row is a user, unless items are learned while the
users stay.  Solvers see opaque vectors and the operations of `marginmf.solvers.Vectors`; estimators
see host arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike

from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends.rows import Coordinates, FeatureMatrices, Rows
from marginmf.losses import RealLoss, TwoLevelLoss
from marginmf.solvers.vectors import Vector, Vectors
from marginmf.thresholds import ProximalLoss, ThresholdLoss


class Spec:
    """What a method asks of a row's scores."""

    def n_thresholds(self, n_levels: int) -> int:
        """Return how many thresholds each row learns beside its factors."""
        return 0

    def take(self, entries: IntArray) -> Self:
        """Return the same question about some of the entries, in the order given."""
        return self


@dataclass(frozen=True)
class TwoLevel(Spec):
    """Is the level above ``cut``?  The sign of the score answers (BMMMF, a stage of HMF)."""

    loss: TwoLevelLoss
    cut: int = 0


@dataclass(frozen=True)
class Thresholds(Spec):
    """Scores against learned thresholds of each row (MMMF); see `marginmf.thresholds`."""

    loss: TwoLevelLoss
    reach: float = np.inf

    def n_thresholds(self, n_levels: int) -> int:
        """Return one less than there are levels."""
        return n_levels - 1


@dataclass(frozen=True)
class Proximal(Spec):
    """Scores against the means of each row's levels, which follow the scores (PMMMF)."""

    loss: TwoLevelLoss


@dataclass(frozen=True, eq=False)
class Real(Spec):
    """Scores against real targets, one for each entry (PMF, ALS)."""

    loss: RealLoss
    targets: FloatArray

    def take(self, entries: IntArray) -> Self:
        """Return the same question about some of the entries, in the order given."""
        return replace(self, targets=self.targets[entries])


@dataclass(frozen=True, eq=False)
class Anchored(Spec):
    """Scores of an item against the given thresholds or prototypes of the users who rated it.

    That is what MMMF and PMMMF ask of a new item while the users stay as they are.
    """

    loss: ThresholdLoss | ProximalLoss
    anchors: FloatArray

    def take(self, entries: IntArray) -> Self:
        """Return the same question about some of the entries, in the order given."""
        return replace(self, anchors=self.anchors[entries])


class RowLosses(NamedTuple):
    """The loss of every row, and its derivatives by every score and every threshold.

    ``means`` has each row's mean score of each level, where the loss is against those.
    """

    losses: FloatArray
    by_score: FloatArray
    by_threshold: FloatArray | None = None
    means: FloatArray | None = None


class RowGradients(NamedTuple):
    """The loss of every row, and its derivatives by the row's factors and thresholds."""

    losses: FloatArray
    by_factors: FloatArray
    by_threshold: FloatArray | None = None


class Layout(Protocol):
    """How several matrices lie in one vector of a backend."""

    def zeros(self) -> Vector:
        """Return a vector of zeros."""

    def join(self, parts: Sequence[FloatArray]) -> Vector:
        """Return a vector that holds these host arrays."""

    def split(self, vector: Vector) -> list[FloatArray]:
        """Return the parts of a vector as host arrays; they may be views of it."""


class Resident(Protocol):
    """One factorisation's data where the backend wants them."""

    @property
    def layout(self) -> Layout:
        """How the parameters lie in a vector: row factors, column factors, thresholds.

        Where factors are built from features, their weights follow: the rows', the columns'.
        """

    def asking(
        self, spec: Spec, reg: float, coordinates: Sequence[Coordinates] | None = None
    ) -> Self:
        """Return the same data with another question; they are not placed again.

        ``coordinates`` are those of the weights of features, of rows and of columns; by default
        parameters are the weights.
        """


class Backend(Vectors, Protocol):
    """The arithmetic of ratings factorisations, and of the vectors that solvers move.

    Results do not depend on the number of threads.
    """

    def limited(self, n_threads: int) -> "Backend":
        """Return this backend on a number of threads of this machine."""

    def layout(self, shapes: Sequence[tuple[int, int]], dtype: DTypeLike) -> Layout:
        """Return how matrices of these shapes lie in one vector."""

    def place(
        self,
        rows: Rows,
        spec: Spec,
        reg: float,
        shape: tuple[int, int],
        dtype: DTypeLike,
        features: FeatureMatrices | None = None,
    ) -> Resident:
        """Bring data to where they are worked on, once for many gradients.

        The shape is the numbers of columns and of factors; the dtype is that of the parameters,
        over which sums are made in float64.  With features, scores are products of effective
        factors: own ones, and the features times their weights.  The penalty is on own factors and
        on weights alike, up to their scales.
        """

    def gradient(
        self, resident: Any, at: Vector, out: Vector | None = None
    ) -> tuple[float, Vector]:
        """Return the objective at a point, and its gradient.

        The gradient is written over ``out``, or else is a new vector.
        """

    def row_gradients(
        self, rows: Rows, spec: Spec, factors: FloatArray, given: FloatArray, thresholds: FloatArray
    ) -> RowGradients:
        """Return the loss and the gradient of every row, with the columns' factors given."""

    def row_losses(
        self, rows: Rows, spec: Spec, scores: FloatArray, thresholds: FloatArray
    ) -> RowLosses:
        """Return the loss of every row at given scores, and its derivatives."""

    def scores(self, rows: IntArray, columns: IntArray, U: FloatArray, V: FloatArray) -> FloatArray:
        """Return ``U[rows[k]] . V[columns[k]]`` for every k."""

    def solve_rows(self, rows: Rows, spec: Real, given: FloatArray, ridge: float) -> FloatArray:
        """Return, for every row, the ridge regression of its targets on its columns' factors."""

    def improve_rows(
        self,
        rows: Rows,
        spec: Real,
        given: FloatArray,
        ridge: float,
        start: FloatArray,
        n_steps: int,
    ) -> FloatArray:
        """Return rows nearer to those of `solve_rows`, by a few steps of conjugate gradients.

        The preconditioner of a row with n entries is n times ``v v^T``, averaged over all entries,
        plus the ridge.
        """

    def draw_rows(
        self,
        rows: Rows,
        given: FloatArray,
        weights: FloatArray,
        linear: FloatArray,
        precision: Float64Array,
        shift: Float64Array,
        noise: FloatArray,
    ) -> FloatArray:
        """Return a draw of every row's factors from ``N(P^-1 g, P^-1)``.

        With ``v_k`` the factors of an entry's column, ``P = precision + sum weights[k] v_k v_k^T``
        and ``g = shift + sum linear[k] v_k`` over the row's entries.  One weight is that of all.
        ``noise`` is standard normal, of each row or one row of all of them; zeros give the means.
        """
