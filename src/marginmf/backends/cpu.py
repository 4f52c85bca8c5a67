"""The kernels on the processor: compiled functions, split over threads."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from marginmf._typing import FloatArray, IntArray
from marginmf.backends import compiled, passes, ranking
from marginmf.backends import gradients as one_pass
from marginmf.backends.interface import Best, Entries, Sides
from marginmf.backends.threads import (
    even_bounds,
    one_blas_thread,
    row_bounds,
    row_parts,
    run,
    useful,
)
from marginmf.losses import RealLoss, TwoLevelLoss
from marginmf.solvers.vector import NumpyVectors

# Factors of columns that stay in the nearest cache, their gradients beside them.
_NUMBERS_AT_A_TIME = 3_000

# What fits into the second cache of most processors, the fewest entries that a row should have in
# a block on average, and the most blocks.
_BLOCK_BYTES, _SHORTEST, _MOST_BLOCKS = 1 << 18, 8, 32

# Ratings a column that are worth a gradient of their own for the columns, and the most of those.
_RATINGS_A_PART, _MOST_PARTS = 64, 32

# Rows whose least-squares problems are solved in one call.
_SOLVE_BLOCK = 64


class CpuKernels(NumpyVectors):
    """The Numba implementation of `marginmf.backends.Kernels`, over a number of threads."""

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
        self._over_range(passes.scores, len(rows), U.shape[1], rows, columns, U, V, out)
        return out

    def n_blocks(self, n_columns: int, n_factors: int, row_length: float) -> int:
        """Return how many blocks of columns suit a matrix with rows of some length."""
        # A block's factors and their gradient, in float32, and a row's entries in it.
        fitting, long_enough = 8 * n_columns * n_factors // _BLOCK_BYTES, row_length // _SHORTEST
        return max(1, int(min(fitting, long_enough, _MOST_BLOCKS)))

    def spread(
        self, entries: Entries, weights: FloatArray, factors: Sides, gradients: Sides
    ) -> None:
        """Add to both sides' gradients what the derivatives by the scores give."""
        self._gradient(passes.spread, entries, factors, gradients, weights)

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
        kernel = compiled.for_loss(one_pass.make_two_level_gradient, loss)
        losses = np.zeros(len(factors.rows))
        self._gradient(kernel, entries, factors, gradients, levels, cut, losses)
        return losses

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
        """Do `scores`, `threshold_rows` and `spread` in one pass."""
        kernel = compiled.for_loss(one_pass.make_threshold_gradient, loss)
        losses, by_threshold = np.zeros(len(factors.rows)), np.zeros_like(thresholds)
        arguments = (levels, thresholds, reach, losses, by_threshold)
        self._gradient(kernel, entries, factors, gradients, *arguments)
        return losses, by_threshold

    def real_gradient(
        self,
        entries: Entries,
        targets: FloatArray,
        loss: RealLoss,
        factors: Sides,
        gradients: Sides,
    ) -> FloatArray:
        """Do `scores`, `real_rows` and `spread` in one pass; return the rows' losses."""
        kernel = compiled.for_loss(one_pass.make_real_gradient, loss)
        losses = np.zeros(len(factors.rows))
        self._gradient(kernel, entries, factors, gradients, targets, losses)
        return losses

    def _gradient(
        self,
        kernel: Callable[..., Any],
        entries: Entries,
        factors: Sides,
        gradients: Sides,
        *args: Any,
    ) -> None:
        """Run a kernel over parts of the rows, and add the columns' gradients of the parts up.

        Which rows make a part depends on the data alone, so threads do not change the sums.
        """
        indptr, indices = entries
        n_columns, n_factors = gradients.columns.shape
        at_a_time = max(_NUMBERS_AT_A_TIME // n_factors, 8)

        def work(start: int, stop: int, by_columns: FloatArray) -> None:
            # A few rows more: threads that write close to each other wait for each other.
            room = np.empty((6, at_a_time), by_columns.dtype)[2:4]
            kernel(start, stop, indptr, indices, *factors, gradients.rows, by_columns, room, *args)

        if not n_columns:
            bounds = row_bounds(entries.row_ends, self.n_threads, n_factors)
            run(lambda start, stop: work(start, stop, gradients.columns), bounds, self.n_threads)
            return
        n_parts = _n_parts(len(indices), n_columns)
        bounds = row_parts(entries.row_ends, n_parts)
        # The first part adds to the gradient itself.
        others = np.empty((n_parts - 1, n_columns, n_factors), gradients.columns.dtype)

        def task(part: int, _: int) -> None:
            by_columns = others[part - 1] if part else gradients.columns
            if part:
                by_columns[:] = 0
            work(int(bounds[part]), int(bounds[part + 1]), by_columns)

        run(task, np.arange(n_parts + 1), useful(self.n_threads, len(indices) * n_factors))
        if n_parts > 1:
            each = (n_parts - 1) * n_factors
            self._over_range(passes.sum_parts, n_columns, each, others, gradients.columns)

    def gather(self, values: FloatArray, order: IntArray) -> FloatArray:
        """Return ``values[order]``."""
        out = np.empty(len(order), values.dtype)
        self._over_range(passes.gather, len(order), 1, values, order, out)
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
        parts = np.empty(-(-len(a) // passes.DOT_BLOCK))
        self._over_range(passes.dot, len(parts), passes.DOT_BLOCK, a, b, passes.DOT_BLOCK, parts)
        return float(parts.sum())

    def dots(self, vectors: Sequence[FloatArray], b: FloatArray) -> list[float]:
        """Return the inner products of several vectors with one, in one pass over it."""
        block = passes.PASS_BLOCK
        parts = np.empty((-(-len(b) // block), len(vectors)))
        arguments = (_addresses(vectors), b, block, parts)
        self._over_range(passes.dots, len(parts), block * len(vectors), *arguments)
        totals: list[float] = parts.sum(axis=0).tolist()
        return totals

    def combine(
        self,
        scales: Sequence[float],
        vectors: Sequence[FloatArray],
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Return the sum of vectors, each times a number; at least one, in one pass."""
        out, block = np.empty_like(vectors[0]) if out is None else out, passes.PASS_BLOCK
        arguments = (np.array(scales, out.dtype), _addresses(vectors), block, out)
        n_blocks = -(-len(out) // block)
        self._over_range(passes.combine, n_blocks, block * len(vectors), *arguments)
        return out

    def axpy(self, scale: float, a: FloatArray, b: FloatArray) -> None:
        """Add ``scale * a`` to ``b`` in place."""
        self._over_range(passes.axpy, len(a), 1, a.dtype.type(scale), a, b)

    def scale(self, scale: float, a: FloatArray) -> None:
        """Multiply ``a`` in place."""
        self._over_range(passes.scale, len(a), 1, a.dtype.type(scale), a)


def _n_parts(n_entries: int, n_columns: int) -> int:
    """Return in how many parts a gradient is made: a power of two, which suits most machines."""
    wanted = min(n_entries // (_RATINGS_A_PART * n_columns), _MOST_PARTS)
    return 1 << max(wanted, 1).bit_length() - 1


def _addresses(vectors: Sequence[FloatArray]) -> IntArray:
    """Return where vectors of one kind and length, without gaps, are in memory."""
    for vector in vectors:
        if not vector.flags.c_contiguous or vector.dtype != vectors[0].dtype:
            raise ValueError("Vectors must be contiguous and of one type.")
    return np.array([vector.ctypes.data for vector in vectors], np.uintp)


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
