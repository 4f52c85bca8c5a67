"""The backend spelled out in NumPy: slow, obvious, and the oracle for every other one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from marginmf._utils.types import Float64Array, FloatArray, IntArray
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
from marginmf.losses import TwoLevelLoss
from marginmf.solvers.vectors import NumpyVectors
from marginmf.thresholds import ProximalLoss, ThresholdLoss


@dataclass(frozen=True)
class HostLayout:
    """Matrices one after the other in a NumPy vector, their rows padded with zeros if wanted.

    >>> layout = HostLayout(((2, 3), (1, 2)), np.dtype(np.float32), (4, 2))
    >>> vector = layout.join([np.ones((2, 3)), np.full((1, 2), 7.0)])
    >>> vector
    array([1., 1., 1., 0., 1., 1., 1., 0., 7., 7.], dtype=float32)
    >>> layout.split(vector)[1]
    array([[7., 7.]], dtype=float32)
    """

    shapes: Sequence[tuple[int, int]]
    dtype: np.dtype[Any]
    widths: Sequence[int]

    def zeros(self) -> FloatArray:
        """Return a vector of zeros."""
        heights = [height for height, _ in self.shapes]
        return np.zeros(int(np.dot(heights, self.widths)), self.dtype)

    def join(self, parts: Sequence[FloatArray]) -> FloatArray:
        """Return a vector that holds these matrices."""
        vector = self.zeros()
        for own, part in zip(self.split(vector), parts, strict=True):
            own[:] = part
        return vector

    def split(self, vector: FloatArray) -> list[FloatArray]:
        """Return the matrices as views of a vector, without their padding."""
        parts = zip(self.padded(vector), self.shapes, strict=True)
        return [padded[:, :width] for padded, (_, width) in parts]

    def with_thresholds(self, shape: tuple[int, int]) -> "HostLayout":
        """Return the layout of parameters with other thresholds: the third part, not padded."""
        shapes, widths = list(self.shapes), list(self.widths)
        shapes[2], widths[2] = shape, shape[1]
        return replace(self, shapes=tuple(shapes), widths=tuple(widths))

    def padded(self, vector: FloatArray) -> list[FloatArray]:
        """Return the matrices as views of a vector, with their padding."""
        padded, end = [], 0
        for (height, _), width in zip(self.shapes, self.widths, strict=True):
            start, end = end, end + height * width
            padded.append(vector[start:end].reshape(height, width))
        return padded


@dataclass(frozen=True, eq=False)
class HostProblem:
    """Ratings in the memory of this machine, and what is asked of them."""

    rows: Rows
    spec: Spec
    reg: float
    layout: HostLayout
    features: FeatureMatrices | None = None
    coordinates: Sequence[Coordinates] | None = None

    def asking(
        self, spec: Spec, reg: float, coordinates: Sequence[Coordinates] | None = None
    ) -> Self:
        """Return the same data with another question."""
        layout = self.layout.with_thresholds(threshold_shape(self.rows, spec))
        return replace(self, spec=spec, reg=float(reg), layout=layout, coordinates=coordinates)


class ReferenceBackend(NumpyVectors):
    """The NumPy implementation of `marginmf.backends.Backend`."""

    def limited(self, n_threads: int) -> "ReferenceBackend":
        """Return this backend: it has one thread."""
        return self

    def layout(self, shapes: Sequence[tuple[int, int]], dtype: DTypeLike) -> HostLayout:
        """Return how matrices of these shapes lie in one vector."""
        return HostLayout(tuple(shapes), np.dtype(dtype), tuple(width for _, width in shapes))

    def place(
        self,
        rows: Rows,
        spec: Spec,
        reg: float,
        shape: tuple[int, int],
        dtype: DTypeLike,
        features: FeatureMatrices | None = None,
    ) -> HostProblem:
        """Note what belongs together; NumPy takes the data as they are."""
        layout = self.layout(parameter_shapes(rows, spec, shape, features), dtype)
        return HostProblem(rows, spec, float(reg), layout, features)

    def gradient(
        self, resident: HostProblem, at: FloatArray, out: FloatArray | None = None
    ) -> tuple[float, FloatArray]:
        """Return the objective at a point, and its gradient."""
        rows, reg = resident.rows, resident.reg
        own_U, own_V, thresholds, *parameters = resident.layout.split(at)
        U, V = own_U, own_V
        maps: list[tuple[Any, Any]] = []  # from parameters to what is penalised, and to factors
        if resident.features is not None:
            coordinates = resident.coordinates or [Coordinates.plain(len(x)) for x in parameters]
            for own, matrix in zip(coordinates, resident.features, strict=True):
                stretched = np.eye(len(own.scales))
                stretched -= (1 - own.damping) * np.outer(own.direction, own.direction)
                maps.append((stretched, matrix.toarray() * own.scales @ stretched))
            U, V = (
                own + (to_factors @ x).astype(at.dtype)
                for own, (_, to_factors), x in zip((U, V), maps, parameters, strict=True)
            )
        scores = self.scores(rows.rows, rows.indices, U, V)
        found = self.row_losses(rows, resident.spec, scores, thresholds)
        by_U, by_V = np.zeros_like(U), np.zeros_like(V)
        np.add.at(by_U, rows.rows, found.by_score[:, None] * V[rows.indices])
        np.add.at(by_V, rows.indices, found.by_score[:, None] * U[rows.rows])
        by_threshold = 0 * thresholds if found.by_threshold is None else found.by_threshold
        penalised, by_parameters = [own_U, own_V], []
        for (stretched, to_factors), x, by in zip(maps, parameters, (by_U, by_V), strict=False):
            penalised.append(stretched @ x)
            by_parameters.append(to_factors.T @ by + reg * stretched.T @ penalised[-1])
        penalty = reg / 2 * sum(float(np.sum(np.square(F, dtype=np.float64))) for F in penalised)
        joined = resident.layout.join(
            [by_U + reg * own_U, by_V + reg * own_V, by_threshold, *by_parameters]
        )
        return float(found.losses.sum()) + penalty, self.combine((1.0,), (joined,), out)

    def row_gradients(
        self, rows: Rows, spec: Spec, factors: FloatArray, given: FloatArray, thresholds: FloatArray
    ) -> RowGradients:
        """Return the loss and the gradient of every row, with the columns' factors given."""
        scores = self.scores(rows.rows, rows.indices, factors, given)
        found = self.row_losses(rows, spec, scores, thresholds)
        by_factors = np.zeros_like(factors)
        np.add.at(by_factors, rows.rows, found.by_score[:, None] * given[rows.indices])
        return RowGradients(found.losses, by_factors, found.by_threshold)

    def row_losses(
        self, rows: Rows, spec: Spec, scores: FloatArray, thresholds: FloatArray
    ) -> RowLosses:
        """Return the loss of every row at given scores, and its derivatives."""
        return row_losses(rows, spec, scores, thresholds)

    def scores(self, rows: IntArray, columns: IntArray, U: FloatArray, V: FloatArray) -> FloatArray:
        """Return ``U[rows[k]] . V[columns[k]]`` for every k."""
        return np.einsum("kd,kd->k", U[rows], V[columns])

    def solve_rows(self, rows: Rows, spec: Real, given: FloatArray, ridge: float) -> FloatArray:
        """Return, for every row, the ridge regression of its targets on its columns' factors."""
        n_factors = given.shape[1]
        solved = np.zeros((rows.n_rows, n_factors), given.dtype)
        for i in range(len(solved)):
            entries = slice(rows.indptr[i], rows.indptr[i + 1])
            F = given[rows.indices[entries]]
            gram = F.T @ F + ridge * np.eye(n_factors)
            solved[i] = np.linalg.solve(gram, F.T @ spec.targets[entries])
        return solved

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
        improved, penalty = start.astype(np.float64), ridge * np.eye(given.shape[1])
        average = given[rows.indices].T @ given[rows.indices] / max(len(rows), 1)
        for i, x in enumerate(improved):
            entries = slice(rows.indptr[i], rows.indptr[i + 1])
            columns = given[rows.indices[entries]]
            gram = columns.T @ columns + penalty
            preconditioner = len(columns) * average + penalty
            residual = columns.T @ spec.targets[entries] - gram @ x
            direction = np.linalg.solve(preconditioner, residual)
            for _ in range(n_steps):
                if not residual.any():
                    break
                size = residual @ np.linalg.solve(preconditioner, residual)
                step = size / (direction @ gram @ direction)
                x += step * direction
                residual = residual - step * gram @ direction
                scaled = np.linalg.solve(preconditioner, residual)
                direction = scaled + (residual @ scaled) / size * direction
        return improved.astype(start.dtype)

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
        drawn = np.zeros((rows.n_rows, given.shape[1]))
        weights = np.broadcast_to(weights, len(rows))
        for i, own_noise in enumerate(np.broadcast_to(noise, drawn.shape)):
            entries = slice(rows.indptr[i], rows.indptr[i + 1])
            columns = given[rows.indices[entries]].astype(np.float64)
            own = precision + (columns.T * weights[entries]) @ columns
            root = np.linalg.cholesky(own)
            half = np.linalg.solve(root, shift + columns.T @ linear[entries])
            drawn[i] = np.linalg.solve(root.T, half + own_noise)
        return drawn.astype(given.dtype)


def parameter_shapes(
    rows: Rows, spec: Spec, shape: tuple[int, int], features: FeatureMatrices | None
) -> list[tuple[int, int]]:
    """Return the shapes of all that is learned."""
    shapes = [(rows.n_rows, shape[1]), shape, threshold_shape(rows, spec)]
    return shapes + [(matrix.shape[1], shape[1]) for matrix in features or ()]


def threshold_shape(rows: Rows, spec: Spec) -> tuple[int, int]:
    """Return the shape of the thresholds that are learned."""
    return rows.n_rows, spec.n_thresholds(rows.n_levels)


def row_losses(rows: Rows, spec: Spec, scores: FloatArray, thresholds: FloatArray) -> RowLosses:
    """Return the loss of every row at given scores, and its derivatives, in NumPy."""
    by_threshold = means = None
    match spec:
        case TwoLevel(loss, cut):
            y = np.where(rows.codes > cut, 1.0, -1.0)
            losses, weights = loss.value(y * scores), y * loss.derivative(y * scores)
        case Thresholds(loss, reach):
            ordinal = ThresholdLoss(loss, reach)
            own = thresholds[rows.rows]
            losses = ordinal.value(scores, rows.codes, own)
            weights, by_entry = ordinal.derivatives(scores, rows.codes, own)
            by_threshold = np.zeros_like(thresholds)
            np.add.at(by_threshold, rows.rows, by_entry)
        case Proximal(loss):
            losses, weights, means = _proximal(rows, scores, loss)
        case Real(loss, targets):
            with np.errstate(invalid="ignore", divide="ignore"):
                losses, weights = loss.value(targets, scores), loss.derivative(targets, scores)
        case Anchored(anchored, anchors):
            losses = anchored.value(scores, rows.codes, anchors)
            weights, _ = anchored.derivatives(scores, rows.codes, anchors)
        case _:
            raise TypeError(f"{type(spec).__name__} is not a spec that this backend supports.")
    totals = np.bincount(rows.rows, losses, rows.n_rows).astype(np.float64)
    return RowLosses(totals, weights.astype(scores.dtype), by_threshold, means)


def _proximal(
    rows: Rows, scores: FloatArray, loss: TwoLevelLoss
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the loss of every entry, its derivative by the score, and the means of the levels."""
    shape, own = (rows.n_rows, rows.n_levels), (rows.rows, rows.codes)
    counts, sums, pushes = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    np.add.at(counts, own, 1.0)
    np.add.at(sums, own, scores)
    means = np.divide(sums, counts, out=np.full(shape, np.nan), where=counts > 0)
    ordinal = ProximalLoss(loss)
    weights, push = ordinal.derivatives(scores, rows.codes, means[rows.rows])
    np.add.at(pushes, rows.rows, push)
    # Every score moves its own level's mean, and with it what the other levels feel.
    weights = weights - (pushes / np.maximum(counts, 1.0))[own]
    return ordinal.value(scores, rows.codes, means[rows.rows]), weights, means.astype(scores.dtype)
