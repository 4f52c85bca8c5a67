"""The backend of the processor: compiled functions, split over threads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_array

from marginmf._utils.types import Array, Float64Array, FloatArray, IntArray
from marginmf.backends.cpu import gradients, linear_algebra
from marginmf.backends.cpu.gradients import RatingBlocks, over_blocks
from marginmf.backends.cpu.losses import for_loss, make_proximal_rows
from marginmf.backends.reference import HostLayout, parameter_shapes, row_losses, threshold_shape
from marginmf.backends.rows import Coordinates, FeatureMatrices, Rows
from marginmf.backends.specs import (
    Anchored,
    Proximal,
    Real,
    RowGradients,
    RowLosses,
    Spec,
    Thresholds,
    TwoLevel,
)
from marginmf.backends.threads import even_bounds, one_blas_thread, row_bounds, run
from marginmf.solvers.vectors import NumpyVectors

# How many factors the inner loops take in one pass over a row's entries, most first, and how many
# factors a pass costs as much as.
_STEPS, _PASS = (32, 16, 8, 4), 8


@dataclass(frozen=True, eq=False)
class PlacedFeatures:
    """What one side's factors are built from: a sparse matrix in rows, and turned round."""

    matrix: csr_array
    turned: csr_array
    coordinates: Coordinates

    @property
    def scales(self) -> FloatArray:
        """What weights are multiplied with, in a column."""
        return self.coordinates.scales.astype(self.matrix.dtype)[:, None]

    @classmethod
    def of(cls, matrix: csr_array, dtype: DTypeLike) -> "PlacedFeatures":
        """Bring a matrix into the form that kernels are compiled for."""
        placed = [csr_array(each, dtype=dtype) for each in (matrix, matrix.T)]
        for each in placed:
            each.indptr, each.indices = each.indptr.astype(np.int64), each.indices.astype(np.int32)
        return cls(*placed, Coordinates.plain(matrix.shape[1]))


@dataclass(frozen=True, eq=False)
class CpuResident:
    """Ratings in blocks, and what is asked of them: labels are codes of levels, or real targets."""

    rows: Rows
    blocks: RatingBlocks
    codes: IntArray
    labels: Array
    spec: Spec
    reg: float
    layout: HostLayout
    features: tuple[PlacedFeatures, ...] = ()

    def asking(
        self, spec: Spec, reg: float, coordinates: Sequence[Coordinates] | None = None
    ) -> Self:
        """Return the same blocks with another question."""
        labels: Array = self.codes
        if isinstance(spec, Real):
            labels = self.blocks.deal(self.rows, spec.targets)
        features = self.features
        if coordinates is not None:
            pairs = zip(features, coordinates, strict=True)
            features = tuple(replace(placed, coordinates=own) for placed, own in pairs)
        layout = self.layout.with_thresholds(threshold_shape(self.rows, spec))
        return replace(
            self, labels=labels, spec=spec, reg=float(reg), layout=layout, features=features
        )


class CpuBackend(NumpyVectors):
    """The Numba implementation of `marginmf.backends.Backend`, over a number of threads."""

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads

    def limited(self, n_threads: int) -> "CpuBackend":
        """Return this backend on another number of threads."""
        return CpuBackend(n_threads)

    def layout(self, shapes: Sequence[tuple[int, int]], dtype: DTypeLike) -> HostLayout:
        """Return how matrices of these shapes lie in one vector, padded but for the last one."""
        widths = [padded_width(width) for _, width in shapes[:-1]]
        return HostLayout(tuple(shapes), np.dtype(dtype), (*widths, shapes[-1][1]))

    def place(
        self,
        rows: Rows,
        spec: Spec,
        reg: float,
        shape: tuple[int, int],
        dtype: DTypeLike,
        features: FeatureMatrices | None = None,
    ) -> CpuResident:
        """Deal the ratings into blocks."""
        blocks = RatingBlocks.suited(rows, *shape)
        codes = blocks.deal(rows, rows.codes)
        shapes = parameter_shapes(rows, spec, shape, features)
        widths = tuple(padded_width(width) for _, width in shapes)
        layout = HostLayout(tuple(shapes), np.dtype(dtype), widths)
        built = tuple(PlacedFeatures.of(matrix, dtype) for matrix in features or ())
        placed = CpuResident(rows, blocks, codes, codes, spec, float(reg), layout, built)
        return placed.asking(spec, reg)

    def gradient(
        self, resident: CpuResident, at: FloatArray, out: FloatArray | None = None
    ) -> tuple[float, FloatArray]:
        """Return the objective at a point, and its gradient."""
        out = np.empty_like(at) if out is None else out
        parts, by_parts = resident.layout.padded(at), resident.layout.padded(out)
        if not resident.features:
            return self._fill_gradient(resident, resident.reg, parts, by_parts), out
        sides = list(zip(resident.features, parts[3:], by_parts[3:], strict=True))
        penalised = [features.coordinates.penalised(x) for features, x, _ in sides]
        effective = [*map(self._built, resident.features, parts[:2], penalised), parts[2]]
        # The penalty is on what factors are built from, not on these.
        value = self._fill_gradient(resident, 0.0, effective, by_parts[:3])
        for (features, _, by_x), y, by_own in zip(sides, penalised, by_parts[:2], strict=True):
            by_x[:] = 0
            linear_algebra.add_sparse_product(
                features.turned, features.turned.data, by_own, by_x, self.n_threads
            )
            by_x *= features.scales
            value += self._add_penalty(resident.reg, y, by_x)
            by_x[:] = features.coordinates.penalised(by_x)
        end = parts[0].size + parts[1].size
        return value + self._add_penalty(resident.reg, at[:end], out[:end]), out

    def row_gradients(
        self, rows: Rows, spec: Spec, factors: FloatArray, given: FloatArray, thresholds: FloatArray
    ) -> RowGradients:
        """Return the loss and the gradient of every row, with the columns' factors given."""
        blocks = RatingBlocks(rows.indptr[None], rows.indices, np.array([0, len(given)]))
        by_factors = np.zeros_like(factors)
        sides = (factors, given, by_factors, by_factors[:0])
        if isinstance(spec, Anchored | Proximal):
            scores = self._block_scores(blocks, factors, given)
            losses, weights = self.row_losses(rows, spec, scores, thresholds)[:2]
            self._scatter(blocks, weights, *sides)
            return RowGradients(losses, by_factors)
        labels: Array = spec.targets if isinstance(spec, Real) else rows.codes
        by_threshold = np.zeros_like(thresholds)
        parts, by_parts = (factors, given, thresholds), (*sides[2:], by_threshold)
        losses = self._gradient(spec, 0.0, blocks, labels, parts, by_parts)[: rows.n_rows]
        return RowGradients(losses, by_factors, by_threshold if thresholds.size else None)

    def row_losses(
        self, rows: Rows, spec: Spec, scores: FloatArray, thresholds: FloatArray
    ) -> RowLosses:
        """Return the loss of every row at given scores, and its derivatives."""
        if not isinstance(spec, Proximal):
            # Rarely called: training computes these losses inside the gradient kernels.
            return row_losses(rows, spec, scores, thresholds)
        losses, weights, means = self._proximal(
            spec, rows.indptr[None], rows.indptr, scores, rows.codes, rows.n_levels
        )
        return RowLosses(losses, weights, means=means)

    def scores(self, rows: IntArray, columns: IntArray, U: FloatArray, V: FloatArray) -> FloatArray:
        """Return ``U[rows[k]] . V[columns[k]]`` for every k."""
        out = np.empty(len(rows), U.dtype)
        self._over_range(linear_algebra.scores, len(rows), U.shape[1], rows, columns, U, V, out)
        return out

    def solve_rows(self, rows: Rows, spec: Real, given: FloatArray, ridge: float) -> FloatArray:
        """Return, for every row, the ridge regression of its targets on its columns' factors."""
        out = np.empty((rows.n_rows, given.shape[1]), given.dtype)
        bounds = row_bounds(rows.indptr, self.n_threads, given.shape[1] ** 2)
        arguments = (rows, spec.targets, given, ridge, out)
        # BLAS would otherwise start threads of its own in each of ours.
        with one_blas_thread():
            run(linear_algebra.solve_rows, bounds, self.n_threads, *arguments)
        return out

    def improve_rows(
        self,
        rows: Rows,
        spec: Real,
        given: FloatArray,
        ridge: float,
        start: FloatArray,
        n_steps: int,
    ) -> FloatArray:
        """Return rows nearer to those of `solve_rows`, by a few steps of conjugate gradients."""
        with one_blas_thread():  # so that threads do not change the rounding
            eigenvalues, basis = linear_algebra.eigenbasis(given, rows.indices)
            turned, columns = start @ basis, given @ basis
        # A ridge that this precision takes for zero would be divided by.
        weight = given.dtype.type(max(ridge, float(np.finfo(given.dtype).tiny)))
        bounds = row_bounds(rows.indptr, self.n_threads, 2 * (n_steps + 1) * given.shape[1])
        run(
            *(linear_algebra.improve_rows, bounds, self.n_threads),
            *(rows.indptr, rows.indices, spec.targets, columns, weight, eigenvalues),
            *(n_steps, turned),
        )
        with one_blas_thread():
            return turned @ basis.T

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
        """Return a draw of every row's factors from ``N(P^-1 g, P^-1)``; see `Backend`."""
        # Samplers alone compile it.
        from marginmf.backends.cpu.sampling import draw_rows

        out = np.empty((rows.n_rows, given.shape[1]), given.dtype)
        weights, linear = (np.asarray(each, given.dtype) for each in (weights, linear))
        bounds = row_bounds(rows.indptr, self.n_threads, given.shape[1] ** 2)
        arguments = (given, weights, linear, precision, shift, noise, out)
        run(draw_rows, bounds, self.n_threads, rows.indptr, rows.indices, *arguments)
        return out

    def dots(self, vectors: Sequence[FloatArray], b: FloatArray) -> list[float]:
        """Return the inner products of several vectors with one, in one pass over it."""
        block = linear_algebra.BLOCK
        parts = np.empty((-(-len(b) // block), len(vectors)))
        arguments = (_addresses(vectors), b, block, parts)
        self._over_range(linear_algebra.dots, len(parts), block * len(vectors), *arguments)
        return parts.sum(axis=0).tolist()

    def combine(
        self, scales: Sequence[float], vectors: Sequence[FloatArray], out: FloatArray | None = None
    ) -> FloatArray:
        """Return the sum of vectors, each times a number; at least one, in one pass."""
        out, block = np.empty_like(vectors[0]) if out is None else out, linear_algebra.BLOCK
        arguments = (np.array(scales, out.dtype), _addresses(vectors), block, out)
        n_blocks = -(-len(out) // block)
        self._over_range(linear_algebra.combine, n_blocks, block * len(vectors), *arguments)
        return out

    def _over_range(self, kernel: Callable[..., Any], n: int, work: int, *args: Any) -> None:
        run(kernel, even_bounds(n, self.n_threads, work), self.n_threads, *args)

    def _built(self, features: PlacedFeatures, own: FloatArray, y: FloatArray) -> FloatArray:
        """Return effective factors: own ones, and features times their weights."""
        if not len(y):
            return own
        built, matrix = own.copy(), features.matrix
        linear_algebra.add_sparse_product(
            matrix, matrix.data, features.scales * y, built, self.n_threads
        )
        return built

    def _add_penalty(self, reg: float, own: FloatArray, by_own: FloatArray) -> float:
        """Add what the penalty gives to a gradient; return the penalty."""
        own, by_own = own.ravel(), by_own.ravel()
        self.combine((1.0, reg), (by_own, own), by_own)
        return 0.5 * reg * self.dots((own,), own)[0]

    def _fill_gradient(
        self,
        resident: CpuResident,
        reg: float,
        parts: Sequence[FloatArray],
        by_parts: Sequence[FloatArray],
    ) -> float:
        """Fill in the gradient by both sides' factors and the thresholds; return the objective."""
        (U, V, _), (by_U, by_V, by_threshold) = parts, by_parts
        if isinstance(resident.spec, Proximal):
            by_U[:], by_V[:] = 0, 0
            value = self._add_penalty(reg, U, by_U) + self._add_penalty(reg, V, by_V)
            blocks, scores = resident.blocks, self._block_scores(resident.blocks, U, V)
            losses, weights, _ = self._proximal(
                *(resident.spec, blocks.indptr, blocks.row_ends),
                *(scores, resident.labels, resident.rows.n_levels),
            )
            self._scatter(blocks, weights, U, V, by_U, by_V)
            return value + float(losses.sum())
        by_threshold[:] = 0
        found = self._gradient(
            resident.spec, reg, resident.blocks, resident.labels, parts, by_parts
        )
        return float(found.sum())

    def _gradient(
        self,
        spec: Spec,
        reg: float,
        blocks: RatingBlocks,
        labels: Array,
        parts: Sequence[FloatArray],
        by_parts: Sequence[FloatArray],
    ) -> FloatArray:
        """Fill in gradients; return the rows' losses and penalties, then the blocks' penalties."""
        (U, V, thresholds), (by_U, by_V, by_threshold) = parts, by_parts
        n_rows = len(U)
        values = np.zeros(n_rows + len(blocks.indptr))
        losses, squares = values[:n_rows], values[n_rows:]
        cut, reach = 0, np.inf
        match spec:
            case TwoLevel(loss, cut):
                kernel = for_loss(gradients.make_two_level_gradient, loss)
            case Thresholds(loss, reach):
                kernel = for_loss(gradients.make_threshold_gradient, loss)
            case Real(loss, _):
                kernel = for_loss(gradients.make_real_gradient, loss)
            case _:
                raise TypeError(f"{type(spec).__name__} is not a spec that this backend supports.")
        opening = (blocks.edges, U.dtype.type(reg), squares)
        arguments = (labels, cut, thresholds, float(reach), losses, by_threshold)
        self._over_blocks(kernel, blocks, opening, U, V, by_U, by_V, *arguments)
        squares *= 0.5 * reg
        return values

    def _over_blocks(
        self,
        kernel: Callable[..., int],
        blocks: RatingBlocks,
        opening: tuple[Any, ...],
        U: FloatArray,
        V: FloatArray,
        by_U: FloatArray,
        by_V: FloatArray,
        *args: Any,
    ) -> None:
        n_factors = U.shape[1]
        at_a_time = max(linear_algebra.NUMBERS_AT_A_TIME // n_factors, 8)

        def work(block: int, band: int, progress: IntArray) -> int:
            # A few rows more: threads that write close to each other wait for each other.
            scratch = np.empty((6, at_a_time), U.dtype)[2:4]
            where = (blocks.bands, progress, *opening, blocks.indptr, blocks.indices)
            return int(kernel(block, band, *where, U, V, by_U, by_V, scratch, *args))

        over_blocks(work, blocks, self.n_threads, n_factors)

    def _scatter(self, blocks: RatingBlocks, weights: FloatArray, *sides: Any) -> None:
        """Add what derivatives by the scores give to both sides' gradients."""
        self._over_blocks(gradients.scatter_gradient, blocks, (), *sides, weights)

    def _block_scores(self, blocks: RatingBlocks, U: FloatArray, V: FloatArray) -> FloatArray:
        """Return the scores of all entries, in the order of the blocks."""
        out = np.empty(len(blocks.indices), U.dtype)
        bounds = row_bounds(blocks.row_ends, self.n_threads, U.shape[1])
        arguments = (blocks.indptr, blocks.indices, U, V, out)
        run(gradients.score_rows, bounds, self.n_threads, *arguments)
        return out

    def _proximal(
        self,
        spec: Proximal,
        indptr: IntArray,
        row_ends: IntArray,
        scores: FloatArray,
        codes: IntArray,
        n_levels: int,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return rows' losses, derivatives by the scores, and the means of rows' levels."""
        kernel = for_loss(make_proximal_rows, spec.loss)
        losses, weights = np.empty(indptr.shape[1] - 1), np.empty_like(scores)
        means = np.empty((len(losses), n_levels), scores.dtype)
        bounds = row_bounds(row_ends, self.n_threads, n_levels)
        run(kernel, bounds, self.n_threads, indptr, scores, codes, losses, weights, means)
        return losses, weights, means


@cache
def padded_width(n_factors: int) -> int:
    """Return the width to pad rows to with zeros: the one that takes the inner loops least time.

    >>> [padded_width(n) for n in (3, 26, 50, 100)]
    [4, 32, 52, 100]
    """

    def cost(width: int) -> tuple[int, int]:
        n_passes, rest = divmod(width, _STEPS[0])
        for step in _STEPS[1:]:
            n_passes, rest = n_passes + rest // step, rest % step
        return width + _PASS * n_passes, width

    first = -(-n_factors // _STEPS[-1]) * _STEPS[-1]
    return min(range(first, first + _STEPS[0], _STEPS[-1]), key=cost)


def _addresses(vectors: Sequence[FloatArray]) -> IntArray:
    """Return where vectors of one kind and length, without gaps, are in memory."""
    for vector in vectors:
        if not vector.flags.c_contiguous or vector.dtype != vectors[0].dtype:
            raise ValueError("Vectors must be contiguous and of one type.")
    return np.array([vector.ctypes.data for vector in vectors], np.uintp)
