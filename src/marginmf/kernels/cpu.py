"""The kernels on the processor: compiled functions, split over threads."""

from collections.abc import Callable
from typing import Any

import numpy as np

from marginmf._typing import FloatArray, IntArray
from marginmf.kernels import compiled, ranking
from marginmf.kernels.interface import Best
from marginmf.kernels.threads import even_bounds, one_blas_thread, row_bounds, run
from marginmf.losses import RealLoss, TwoLevelLoss
from marginmf.solvers.vector import NumpyVectors

# Rows whose least-squares problems are solved in one call.
_SOLVE_BLOCK = 64


class CpuKernels(NumpyVectors):
    """The Numba implementation of `marginmf.kernels.Kernels`, over a number of threads."""

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads

    def _over_rows(
        self, kernel: Callable[..., Any], indptr: IntArray, work: int, *args: Any
    ) -> None:
        def task(start: int, stop: int) -> None:
            kernel(start, stop, indptr, *args)

        run(task, row_bounds(indptr, self.n_threads, work), self.n_threads)

    def _over_range(self, kernel: Callable[..., Any], n: int, work: int, *args: Any) -> None:
        def task(start: int, stop: int) -> None:
            kernel(start, stop, *args)

        run(task, even_bounds(n, self.n_threads, work), self.n_threads)

    def scores(self, rows: IntArray, columns: IntArray, U: FloatArray, V: FloatArray) -> FloatArray:
        """Return ``U[rows[k]] . V[columns[k]]`` for every k."""
        out = np.empty(len(rows), U.dtype)
        self._over_range(compiled.scores, len(rows), U.shape[1], rows, columns, U, V, out)
        return out

    def accumulate(
        self,
        indptr: IntArray,
        indices: IntArray,
        weights: FloatArray,
        factors: FloatArray,
        out: FloatArray,
    ) -> None:
        """Fill every row of ``out`` with the sum of ``weights[k] * factors[indices[k]]``."""
        n_factors = factors.shape[1]
        self._over_rows(compiled.accumulate, indptr, n_factors, indices, weights, factors, out)

    def gather(self, values: FloatArray, order: IntArray) -> FloatArray:
        """Return ``values[order]``."""
        out = np.empty(len(order), values.dtype)
        self._over_range(compiled.gather, len(order), 1, values, order, out)
        return out

    def two_level_rows(
        self, indptr: IntArray, scores: FloatArray, levels: IntArray, cut: int, loss: TwoLevelLoss
    ) -> tuple[FloatArray, FloatArray]:
        """Loss of the question "is the level above ``cut``?", answered by the score's sign."""
        kernel = compiled.for_loss(compiled.make_two_level_rows, loss)
        losses, weights = _outputs(indptr, scores)
        self._over_rows(kernel, indptr, 1, scores, levels, cut, losses, weights)
        return losses, weights

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
        kernel = compiled.for_loss(compiled.make_threshold_rows, loss)
        losses, weights = _outputs(indptr, scores)
        by_threshold = np.empty_like(thresholds)
        arguments = (scores, levels, thresholds, reach, losses, weights, by_threshold)
        self._over_rows(kernel, indptr, thresholds.shape[1], *arguments)
        return losses, weights, by_threshold

    def proximal_rows(
        self,
        indptr: IntArray,
        scores: FloatArray,
        levels: IntArray,
        n_levels: int,
        loss: TwoLevelLoss,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Loss against each row's level means; returns also those means (NaN where unused)."""
        kernel = compiled.for_loss(compiled.make_proximal_rows, loss)
        losses, weights = _outputs(indptr, scores)
        means = np.empty((len(losses), n_levels), scores.dtype)
        self._over_rows(kernel, indptr, n_levels, scores, levels, losses, weights, means)
        return losses, weights, means

    def real_rows(
        self, indptr: IntArray, scores: FloatArray, targets: FloatArray, loss: RealLoss
    ) -> tuple[FloatArray, FloatArray]:
        """Loss of real scores against real targets."""
        kernel = compiled.for_loss(compiled.make_real_rows, loss)
        losses, weights = _outputs(indptr, scores)
        self._over_rows(kernel, indptr, 1, scores, targets, losses, weights)
        return losses, weights

    def label_rows(
        self, indptr: IntArray, indices: IntArray, scores: FloatArray, loss: TwoLevelLoss
    ) -> FloatArray:
        """Loss of rows with a score for every label; the scores become derivatives, in place."""
        kernel = compiled.for_loss(compiled.make_label_rows, loss)
        losses = np.empty(len(scores))
        self._over_range(kernel, *scores.shape, indptr, indices, scores, losses)
        return losses

    def solve_rows(
        self,
        indptr: IntArray,
        indices: IntArray,
        targets: FloatArray,
        factors: FloatArray,
        ridge: float,
    ) -> FloatArray:
        """Return, for every row, the ridge regression of its targets on its columns' factors."""
        n_factors = factors.shape[1]
        out = np.empty((len(indptr) - 1, n_factors), factors.dtype)
        with one_blas_thread():
            self._over_rows(
                _solve_rows, indptr, n_factors**2, indices, targets, factors, ridge, out
            )
        return out

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
        """Return the expected ratings of a block of users and items, and what breaks their ties."""
        _, n_rows, n_columns = scores.shape
        expected, ties = np.empty((2, n_rows, n_columns), np.float32)
        arguments = (scores, offsets, bounds, weights, user_terms, item_terms, steps)
        self._over_range(ranking.expected_ratings, n_rows, n_columns, *arguments, expected, ties)
        return expected, ties

    def top_n(
        self,
        scores: FloatArray,
        ties: FloatArray,
        indptr: IntArray,
        excluded: IntArray,
        best: Best,
        first: int = 0,
    ) -> None:
        """Improve, in place, the best columns of every row that were found so far."""
        n_rows, n_columns = scores.shape
        arguments = (scores, ties, indptr, excluded, first)
        self._over_range(ranking.top_n, n_rows, n_columns, *arguments, *best)

    def dot(self, a: FloatArray, b: FloatArray) -> float:
        """Return the inner product of two vectors, summed in float64."""
        parts = np.empty(-(-len(a) // compiled.DOT_BLOCK))
        self._over_range(
            compiled.dot, len(parts), compiled.DOT_BLOCK, a, b, compiled.DOT_BLOCK, parts
        )
        return float(parts.sum())

    def axpy(self, scale: float, a: FloatArray, b: FloatArray) -> None:
        """Add ``scale * a`` to ``b`` in place."""
        self._over_range(compiled.axpy, len(a), 1, a.dtype.type(scale), a, b)


def _outputs(indptr: IntArray, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return empty arrays for the loss of each row and the weight of each entry."""
    return np.empty(len(indptr) - 1), np.empty_like(scores)


def _solve_rows(
    start: int,
    stop: int,
    indptr: IntArray,
    indices: IntArray,
    targets: FloatArray,
    factors: FloatArray,
    ridge: float,
    out: FloatArray,
) -> None:
    # The work is matrix products, which BLAS does best and without the interpreter lock; there
    # is nothing to compile here.
    n_factors = factors.shape[1]
    diagonal = np.arange(n_factors)
    for first in range(start, stop, _SOLVE_BLOCK):
        block = range(first, min(first + _SOLVE_BLOCK, stop))
        grams = np.empty((len(block), n_factors, n_factors), factors.dtype)
        right = np.empty((len(block), n_factors, 1), factors.dtype)
        for k, i in enumerate(block):
            entries = slice(indptr[i], indptr[i + 1])
            rows = factors[indices[entries]]
            np.dot(rows.T, rows, out=grams[k])
            np.dot(targets[entries], rows, out=right[k, :, 0])
        grams[:, diagonal, diagonal] += ridge
        out[first : block.stop] = np.linalg.solve(grams, right)[:, :, 0]
