"""What a set of kernels must be able to do."""

from typing import Protocol

from marginmf._typing import FloatArray, IntArray
from marginmf.losses import RealLoss, TwoLevelLoss
from marginmf.solvers.vector import VectorSpace


class Kernels(VectorSpace, Protocol):
    """Array functions that every objective is made of, and the arithmetic that solvers need.

    Rows are given in compressed form: row ``i`` owns the entries ``indptr[i]:indptr[i + 1]``.
    Row losses return ``(losses, weights)``: the loss of every row in float64, and the derivative
    of the loss by every score.  The results do not depend on the number of threads.
    """

    def scores(self, rows: IntArray, columns: IntArray, U: FloatArray, V: FloatArray) -> FloatArray:
        """Return ``U[rows[k]] . V[columns[k]]`` for every k."""

    def accumulate(
        self,
        indptr: IntArray,
        indices: IntArray,
        weights: FloatArray,
        factors: FloatArray,
        out: FloatArray,
    ) -> None:
        """Fill every row of ``out`` with the sum of ``weights[k] * factors[indices[k]]``."""

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

    def solve_rows(
        self,
        indptr: IntArray,
        indices: IntArray,
        targets: FloatArray,
        factors: FloatArray,
        ridge: float,
    ) -> FloatArray:
        """Return, for every row, the ridge regression of its targets on its columns' factors."""
