"""What a set of kernels must be able to do."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike

from marginmf._typing import FloatArray, IntArray
from marginmf.losses import RealLoss, TwoLevelLoss
from marginmf.solvers.vector import VectorSpace


class Best(NamedTuple):
    """The best columns of every row, best first, with their scores and ties.

    Where there are no more, the column is -1, and score and tie are minus infinity.
    """

    columns: IntArray
    scores: FloatArray
    ties: FloatArray

    @classmethod
    def none_yet(cls, n_rows: int, n: int, dtype: DTypeLike) -> "Best":
        """Return room for the n best columns of rows."""
        shape = (n_rows, n)
        return cls(
            np.full(shape, -1, np.int32),
            np.full(shape, -np.inf, dtype),
            np.full(shape, -np.inf, dtype),
        )

    def rows(self, start: int, stop: int) -> "Best":
        """Return a view of some rows."""
        part = slice(start, stop)
        return Best(self.columns[part], self.scores[part], self.ties[part])


class Entries(NamedTuple):
    """Which columns every row has entries in, in one or more blocks of compressed rows.

    Row ``i`` owns the entries ``indptr[b, i]:indptr[b, i + 1]`` of every block ``b``.  Blocks of
    neighbouring columns, whose factors fit into a cache, make passes over large matrices faster.
    """

    indptr: IntArray
    indices: IntArray

    @property
    def row_ends(self) -> IntArray:
        """How many entries the first rows have together, from no row to all of them."""
        if len(self.indptr) == 1:
            first: IntArray = self.indptr[0]
            return first
        ends: IntArray = (self.indptr - self.indptr[:, :1]).sum(axis=0)
        return ends


class Sides(NamedTuple):
    """Factors of rows and of columns, or the gradients by them.

    A gradient without columns (of shape ``(0, n_factors)``) is not wanted.
    """

    rows: FloatArray
    columns: FloatArray


class Kernels(VectorSpace, Protocol):
    """Array functions that every objective is made of, and the arithmetic that solvers need.

    Rows are given in compressed form: row ``i`` owns the entries ``indptr[i]:indptr[i + 1]``.
    Row losses return ``(losses, weights)``: the loss of every row in float64, and the derivative
    of the loss by every score.  The results do not depend on the number of threads.
    """

    def scores(self, rows: IntArray, columns: IntArray, U: FloatArray, V: FloatArray) -> FloatArray:
        """Return ``U[rows[k]] . V[columns[k]]`` for every k."""

    def n_blocks(self, n_columns: int, n_factors: int, row_length: float) -> int:
        """Return how many blocks of columns suit a matrix with rows of some length."""

    def spread(
        self, entries: Entries, weights: FloatArray, factors: Sides, gradients: Sides
    ) -> None:
        """Add to both sides' gradients what the derivatives by the scores give."""

    def two_level_gradient(
        self,
        entries: Entries,
        levels: IntArray,
        cut: int,
        loss: TwoLevelLoss,
        factors: Sides,
        gradients: Sides,
    ) -> FloatArray:
        """Do `scores`, `two_level_rows` and `spread` in one pass; return the rows' losses."""

    def threshold_gradient(
        self,
        entries: Entries,
        levels: IntArray,
        thresholds: FloatArray,
        reach: float,
        loss: TwoLevelLoss,
        factors: Sides,
        gradients: Sides,
    ) -> tuple[FloatArray, FloatArray]:
        """Do `scores`, `threshold_rows` and `spread` in one pass.

        Returns the rows' losses and their derivatives by the thresholds.
        """

    def real_gradient(
        self,
        entries: Entries,
        targets: FloatArray,
        loss: RealLoss,
        factors: Sides,
        gradients: Sides,
    ) -> FloatArray:
        """Do `scores`, `real_rows` and `spread` in one pass; return the rows' losses."""

    def gather(self, values: FloatArray, order: IntArray) -> FloatArray:
        """Return ``values[order]``."""

    def two_level_rows(
        self, indptr: IntArray, scores: FloatArray, levels: IntArray, cut: int, loss: TwoLevelLoss
    ) -> tuple[FloatArray, FloatArray]:
        """Loss of the question "is the level above ``cut``?", answered by the score's sign."""

    def threshold_rows(
        self,
        indptr: IntArray,
        scores: FloatArray,
        levels: IntArray,
        thresholds: FloatArray,
        reach: float,
        loss: TwoLevelLoss,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Loss against each row's thresholds; returns also the derivative by the thresholds."""

    def proximal_rows(
        self,
        indptr: IntArray,
        scores: FloatArray,
        levels: IntArray,
        n_levels: int,
        loss: TwoLevelLoss,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Loss against each row's level means; returns also those means (NaN where unused)."""

    def real_rows(
        self, indptr: IntArray, scores: FloatArray, targets: FloatArray, loss: RealLoss
    ) -> tuple[FloatArray, FloatArray]:
        """Loss of real scores against real targets."""

    def label_rows(
        self, indptr: IntArray, indices: IntArray, scores: FloatArray, loss: TwoLevelLoss
    ) -> FloatArray:
        """Loss of rows with a score for every label; the scores become derivatives, in place.

        ``scores`` is two-dimensional and in C order.  Row ``i`` has the labels
        ``indices[indptr[i]:indptr[i + 1]]`` and no others; ``indptr`` may be a part of a longer
        one.
        """

    def solve_rows(
        self,
        indptr: IntArray,
        indices: IntArray,
        targets: FloatArray,
        factors: FloatArray,
        ridge: float,
    ) -> FloatArray:
        """Return, for every row, the ridge regression of its targets on its columns' factors."""

    def expected_ratings(
        self,
        scores: FloatArray,
        offsets: FloatArray,
        bounds: FloatArray,
        weights: FloatArray,
        user_terms: FloatArray,
        item_terms: FloatArray,
        steps: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the expected ratings of a block of users and items, and what breaks their ties.

        Expected ratings count from the lowest level, and ``steps[q]`` is what level ``q + 1`` is
        above level ``q``.  Margin ``p`` is ``scores[p] + offsets[:, p]``, and a step's log-odds are
        ``user_terms[:, q] + item_terms[q] + sum over p of weights[q, p] * margin p``, margins
        clipped to ``bounds[:, p]``.  Where the chances rise from one step to the next they are held
        down to the lower one.  Ties are broken by the sum of the margins, infinite ones left out.

        All arrays are float32: scores of shape (n_margins, n_users, n_items), or (1, ...) where
        all margins share them; offsets (n_users, n_margins); bounds (2, n_margins); user_terms
        (n_users, n_steps); item_terms (n_steps, n_items).
        """

    def top_n(
        self,
        scores: FloatArray,
        ties: FloatArray,
        indptr: IntArray,
        excluded: IntArray,
        best: Best,
        first: int = 0,
    ) -> None:
        """Improve, in place, the best columns of every row that were found so far.

        The higher score is better, then the higher tie, then the lower column.  Column ``j`` of
        the scores has the number ``first + j``, which is higher than those found so far; row
        ``i`` leaves out the numbers ``excluded[indptr[i]:indptr[i + 1]]``, which ascend, and
        scores that are minus infinity or not a number.
        """
