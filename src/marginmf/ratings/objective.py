"""Value and gradient of every ratings factorisation, at a point, for given ratings.

    J(U, V, thresholds) = sum over users of row_loss(scores, ratings, thresholds)
                          + reg / 2 (|U|^2 + |V|^2)

What differs between the methods is the light row loss alone.  `FactorObjective` is J as a function
of everything; `RowObjective` is what single rows of one side add to it, the other side given.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

import numpy as np

from marginmf._typing import Float64Array, FloatArray, IntArray
from marginmf.backends import Kernels
from marginmf.backends.interface import Entries, Sides
from marginmf.losses import RealLoss, TwoLevelLoss
from marginmf.ratings.data import Ratings
from marginmf.ratings.rows import Rows
from marginmf.thresholds import ProximalLoss, ThresholdLoss


class Parameters(NamedTuple):
    """Views of one parameter vector: user factors, item factors, users' thresholds."""

    users: FloatArray
    items: FloatArray
    thresholds: FloatArray


class RowLosses(NamedTuple):
    """The loss of every row, and its derivatives by every score and every threshold."""

    losses: FloatArray
    by_score: FloatArray
    by_threshold: FloatArray | None = None


class Pass(NamedTuple):
    """One evaluation of a gradient: by whom, of what, where, and where it goes."""

    kernels: Kernels
    data: Rows
    factors: Sides
    thresholds: FloatArray
    gradients: Sides

    def in_blocks(self) -> tuple[Entries, IntArray]:
        """Return the entries and their codes in the order that suits the kernels.

        Dealing entries into blocks pays where many passes follow, as they do where both sides are
        learned.
        """
        data, (n_columns, n_factors) = self.data, self.factors.columns.shape
        if not len(self.gradients.columns):
            return data.entries, data.codes
        row_length = len(data) / max(data.n_rows, 1)
        return data.in_blocks(n_columns, self.kernels.n_blocks(n_columns, n_factors, row_length))


class RowGradient(NamedTuple):
    """The loss of every row, and its derivatives by every threshold."""

    losses: FloatArray
    by_threshold: FloatArray | None = None


class RowLoss(Protocol):
    """Turns each row's scores into a loss; the rows are users unless new items are placed."""

    def n_thresholds(self, data: Rows) -> int:
        """Return how many thresholds are learned for each row."""

    def take(self, entries: IntArray) -> "RowLoss":
        """Return the loss of some entries alone, in the order given."""

    def __call__(
        self, kernels: Kernels, data: Rows, scores: FloatArray, thresholds: FloatArray
    ) -> RowLosses:
        """Return the losses of all rows."""

    def gradient(self, at: Pass) -> RowGradient:
        """Return the losses of all rows, and add the derivatives by the factors to gradients."""


class _Plain:
    """Nothing is learned beside the factors, and nothing is known of single entries."""

    def n_thresholds(self, data: Rows) -> int:
        """Return 0: nothing is learned beside the factors."""
        return 0

    def take(self, entries: IntArray) -> Self:
        """Return this loss: it is the same for all entries."""
        return self

    def gradient(self: "RowLoss", at: Pass) -> RowGradient:
        """Return the losses, and add the derivatives by the factors: step by step."""
        kernels, data = at.kernels, at.data
        scores = kernels.scores(data.rows, data.indices, *at.factors)
        rows = self(kernels, data, scores, at.thresholds)
        kernels.spread(data.entries, rows.by_score, at.factors, at.gradients)
        return RowGradient(rows.losses, rows.by_threshold)


@dataclass(frozen=True)
class TwoLevelRows(_Plain):
    """Is the level above ``cut``?  The score's sign should say so (BMMMF, one stage of HMF)."""

    loss: TwoLevelLoss
    cut: int = 0

    def __call__(
        self, kernels: Kernels, data: Rows, scores: FloatArray, thresholds: FloatArray
    ) -> RowLosses:
        """Return the losses of all rows."""
        return RowLosses(
            *kernels.two_level_rows(data.indptr, scores, data.codes, self.cut, self.loss)
        )

    def gradient(self, at: Pass) -> RowGradient:
        """Return the losses, and add the derivatives by the factors: in one pass."""
        return RowGradient(
            at.kernels.two_level_gradient(
                *at.in_blocks(), self.cut, self.loss, at.factors, at.gradients
            )
        )


@dataclass(frozen=True)
class ThresholdRows(_Plain):
    """Scores against learned thresholds of each user (MMMF)."""

    loss: TwoLevelLoss
    reach: float = np.inf

    def n_thresholds(self, data: Rows) -> int:
        """Return one less than there are levels."""
        return data.n_levels - 1

    def __call__(
        self, kernels: Kernels, data: Rows, scores: FloatArray, thresholds: FloatArray
    ) -> RowLosses:
        """Return the losses of all rows."""
        return RowLosses(
            *kernels.threshold_rows(
                data.indptr, scores, data.codes, thresholds, self.reach, self.loss
            )
        )

    def gradient(self, at: Pass) -> RowGradient:
        """Return the losses, and add the derivatives by the factors: in one pass."""
        return RowGradient(
            *at.kernels.threshold_gradient(
                *at.in_blocks(), at.thresholds, self.reach, self.loss, at.factors, at.gradients
            )
        )


@dataclass(frozen=True)
class ProximalRows(_Plain):
    """Scores against the means of each user's levels, which follow the scores (PMMMF)."""

    loss: TwoLevelLoss

    def __call__(
        self, kernels: Kernels, data: Rows, scores: FloatArray, thresholds: FloatArray
    ) -> RowLosses:
        """Return the losses of all rows."""
        losses, by_score, _ = kernels.proximal_rows(
            data.indptr, scores, data.codes, data.n_levels, self.loss
        )
        return RowLosses(losses, by_score)


@dataclass(frozen=True, eq=False)
class RealRows(_Plain):
    """Scores against real targets, one for each rating (PMF)."""

    loss: RealLoss
    targets: FloatArray

    def __call__(
        self, kernels: Kernels, data: Rows, scores: FloatArray, thresholds: FloatArray
    ) -> RowLosses:
        """Return the losses of all rows."""
        return RowLosses(*kernels.real_rows(data.indptr, scores, self.targets, self.loss))

    def gradient(self, at: Pass) -> RowGradient:
        """Return the losses, and add the derivatives by the factors: in one pass."""
        return RowGradient(
            at.kernels.real_gradient(
                at.data.entries, self.targets, self.loss, at.factors, at.gradients
            )
        )

    def take(self, entries: IntArray) -> Self:
        """Return the loss of some entries alone, in the order given."""
        return replace(self, targets=self.targets[entries])


@dataclass(frozen=True, eq=False)
class AnchoredRows(_Plain):
    """Scores against thresholds or prototypes that are given for each rating.

    The rows are items here, and the anchors are those of the users who rated them: what MMMF and
    PMMMF ask of a new item while the users stay as they are.
    """

    loss: ThresholdLoss | ProximalLoss
    anchors: FloatArray

    def __call__(
        self, kernels: Kernels, data: Rows, scores: FloatArray, thresholds: FloatArray
    ) -> RowLosses:
        """Return the losses of all rows."""
        losses = self.loss.value(scores, data.codes, self.anchors)
        by_score, _ = self.loss.derivatives(scores, data.codes, self.anchors)
        totals: Float64Array = np.bincount(data.rows, losses, data.n_rows).astype(np.float64)
        return RowLosses(totals, by_score.astype(scores.dtype))

    def take(self, entries: IntArray) -> Self:
        """Return the loss of some entries alone, in the order given."""
        return replace(self, anchors=self.anchors[entries])


class FactorObjective:
    """The objective of one factorisation, as a function of one flat parameter vector.

    Parameters
    ----------
    data : Ratings
        What was observed.
    row_loss : RowLoss
        What the method asks of a user's scores.
    reg : float
        The weight of the penalty.
    n_factors : int
        The rank of the factorisation.
    kernels : Kernels
        Who does the arithmetic.
    dtype : dtype
        Of the parameters; sums over them are made in float64.
    """

    def __init__(
        self,
        data: Ratings,
        row_loss: RowLoss,
        reg: float,
        n_factors: int,
        kernels: Kernels,
        dtype: type[np.floating] = np.float32,
    ) -> None:
        self.data = data
        self.row_loss = row_loss
        self.reg = float(reg)
        self.kernels = kernels
        self.dtype = np.dtype(dtype)
        self._user_shape = (data.n_users, n_factors)
        self._item_shape = (data.n_items, n_factors)
        self._threshold_shape = (data.n_users, row_loss.n_thresholds(data))

    @property
    def n_factor_parameters(self) -> int:
        """How many parameters are factors; the thresholds come after them."""
        return int(np.prod(self._user_shape) + np.prod(self._item_shape))

    def join(self, users: FloatArray, items: FloatArray, thresholds: FloatArray) -> FloatArray:
        """Return one parameter vector."""
        parts = (users, items, thresholds)
        return np.concatenate([np.ravel(part) for part in parts], dtype=self.dtype)

    def split(self, point: FloatArray) -> Parameters:
        """Return the parameter vector's parts, as views of it."""
        n_users, n_factors = int(np.prod(self._user_shape)), self.n_factor_parameters
        return Parameters(
            users=point[:n_users].reshape(self._user_shape),
            items=point[n_users:n_factors].reshape(self._item_shape),
            thresholds=point[n_factors:].reshape(self._threshold_shape),
        )

    def __call__(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient at a point."""
        kernels, n_factors = self.kernels, self.n_factor_parameters
        users, items, thresholds = self.split(point)
        factors = point[:n_factors]
        # What the penalty gives; the losses are added to it, and the thresholds' part is theirs.
        gradient = kernels.combine((self.reg,), (point,))
        penalty = 0.5 * self.reg * kernels.dot(factors, factors)
        by_users, by_items, by_thresholds = self.split(gradient)
        rows = self.row_loss.gradient(
            Pass(kernels, self.data, Sides(users, items), thresholds, Sides(by_users, by_items))
        )
        if rows.by_threshold is not None:
            by_thresholds[:] = rows.by_threshold
        return float(rows.losses.sum()) + penalty, gradient


class RowObjective:
    """The objective of every row of one side, each on its own, while the other side is given.

        J_i(u, thresholds) = row_loss(scores, ratings, thresholds) + reg / 2 |u|^2

    A point has a row for each row of the data: its factors, then its thresholds.  Every J_i is
    convex.  See `marginmf.solvers.rowwise.RowProblems`.

    Parameters
    ----------
    data : Rows
        What was observed, with the side that is learned in the rows.
    row_loss : RowLoss
        What the method asks of a row's scores.
    reg : float
        The weight of the penalty.
    given : array of shape (n_columns, n_factors)
        The factors of the other side.
    kernels : Kernels
        Who does the arithmetic.
    """

    def __init__(
        self, data: Rows, row_loss: RowLoss, reg: float, given: FloatArray, kernels: Kernels
    ) -> None:
        self.data = data
        self.row_loss = row_loss
        self.reg = float(reg)
        self.given = given
        self.kernels = kernels

    def split(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the factors and the thresholds of every row."""
        n_factors = self.given.shape[1]
        factors, thresholds = points[:, :n_factors], points[:, n_factors:]
        return np.ascontiguousarray(factors), np.ascontiguousarray(thresholds)

    def take(self, which: IntArray) -> "RowObjective":
        """Return the objective of some rows."""
        row_loss = self.row_loss.take(self.data.entries_of(which))
        return RowObjective(self.data.take(which), row_loss, self.reg, self.given, self.kernels)

    def __call__(self, points: FloatArray) -> tuple[Float64Array, FloatArray]:
        """Return the value of every row, and the gradient by every row."""
        factors, thresholds = self.split(points)
        by_factors = factors.dtype.type(self.reg) * factors
        sides, gradients = Sides(factors, self.given), Sides(by_factors, by_factors[:0])
        rows = self.row_loss.gradient(Pass(self.kernels, self.data, sides, thresholds, gradients))
        penalty = 0.5 * self.reg * np.einsum("ip,ip->i", factors, factors)
        parts = [by_factors] if rows.by_threshold is None else [by_factors, rows.by_threshold]
        return rows.losses + penalty, np.hstack(parts)


def first_thresholds(rows: Rows, row_loss: RowLoss) -> FloatArray:
    """Return thresholds to start from: one apart, around zero, the same for every row."""
    n = row_loss.n_thresholds(rows)
    return np.tile(np.arange(n) - (n - 1) / 2.0, (rows.n_rows, 1))
