"""Labels as points: a factorisation of the label matrix that keeps groups of labels together.

Minimises ``sum_k |Y^k - U V^k|^2 + l1 |U|^2 + l2 sum_k |V^k|_{2,1}`` (Kumar's thesis, chapter 6;
Y is centred, and k counts groups of labels) in turns over U and V.  For given V the best U is
``Y M`` with ``M = V^T (V V^T + l1 I)^{-1}``, so U, which has a row for every sample, is never
needed: everything follows from ``Y^T Y``.  For given U all groups share ``U^T U``, and are solved
together by accelerated proximal gradient.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal

from marginmf._utils.types import Float64Array, FloatArray
from marginmf.checkpoints import OpenCheckpoint
from marginmf.labels.algebra.matrices import ZERO, LabelGram, Normal, leading_eigenvectors
from marginmf.penalties import L1, L21
from marginmf.solvers import (
    APG,
    Callback,
    Composite,
    Counted,
    NumpyVectors,
    Result,
    State,
    Stopping,
    StopReason,
    Vectors,
    minimise,
)
from marginmf.solvers.run import PATIENCE

#: The most proximal steps for V between two updates of U; the next turn goes on from there.
MOST_STEPS = 100
#: Steps of the Lanczos method for the largest eigenvalue; the error that is left is added to it.
LANCZOS_STEPS = 20


class Factorisation(NamedTuple):
    """Where the factorisation stands."""

    mixing: Float64Array  # the matrix M of U = Y M, labels by factors
    factors: Float64Array  # V, factors by labels
    cross: Float64Array  # U^T Y
    inner: Float64Array  # U^T U


@dataclass(frozen=True, eq=False)
class LabelEmbedding:
    """The problem: labels group by group, and the regularisation strengths."""

    gram: LabelGram  # Y^T Y
    starts: Sequence[int]  # where each group of labels begins
    reg_basis: float  # l1
    reg_group: float  # l2

    def minimise(
        self,
        n_factors: int,
        stopping: Stopping,
        callbacks: Sequence[Callback] = (),
        checkpoint: OpenCheckpoint | None = None,
    ) -> Result:
        """Take turns until the objective hardly falls; the point is a `Factorisation`.

        Starts from the leading eigenvectors of ``Y^T Y``, of which there may be fewer than
        ``n_factors``.  ``tol`` is a share of ``|Y|^2``: where the factors hardly leave a rest, a
        share of that rest means nothing.
        """
        start = np.ascontiguousarray(leading_eigenvectors(self.gram, n_factors).T)
        rules = replace(stopping, tol=-math.inf, step_tol=stopping.tol)
        solver = Turns(0.1 * stopping.tol)
        result = (checkpoint or OpenCheckpoint()).minimise(
            "labels", solver, self, start, rules, callbacks
        )
        reason = StopReason.OBJECTIVE if result.reason is StopReason.STEP else result.reason
        return replace(result, point=self.with_best_basis(result.point), reason=reason)

    def with_best_basis(self, V: Float64Array) -> Factorisation:
        """Return the embedding with these factors and the U that suits them best."""
        values, vectors = np.linalg.eigh(V @ V.T)
        # Without a penalty the inverse does not exist where factors are zero or dependent: leave
        # those directions out, which is the least U of all the best ones.
        kept = values > ZERO * max(values[-1], 0.0)
        inverse = np.divide(1.0, values + self.reg_basis, out=np.zeros_like(values), where=kept)
        M = V.T @ (vectors * inverse) @ vectors.T
        cross = self.gram.apply(M).T
        inner = cross @ M
        return Factorisation(M, V, cross, 0.5 * (inner + inner.T))

    def objective(self, here: Factorisation) -> float:
        """Return the whole objective."""
        V = here.factors
        fit = self.gram.trace + float(np.sum(V * (here.inner @ V - 2.0 * here.cross)))
        penalty = L21(self.reg_group, self.starts).value(V)
        return fit + self.reg_basis * float(np.trace(here.inner)) + penalty


@dataclass(frozen=True)
class Turns:
    """The solver of `LabelEmbedding`: U in closed form, then steps for V, and again.

    The share of a step is how far the objective fell, on the average of the last three turns, as a
    share of ``|Y|^2``.  V's steps end at ``step_tol``, which is less than where the turns end, or
    what is left would add up.
    """

    step_tol: float

    def steps(self, whole: Any, start: Any, vectors: Vectors) -> Iterator[State]:
        """Yield a state after every turn; see `marginmf.solvers.Solver.steps`."""
        counted = Counted.of(whole, start)
        problem: LabelEmbedding = counted.objective
        is_new = not isinstance(start, State)
        here = problem.with_best_basis(start if is_new else start.point)
        values = [problem.objective(here)] if is_new else list(start.numbers["values"])
        stopping = Stopping(MOST_STEPS, -math.inf, 0.0, step_tol=self.step_tol)
        while True:
            factors, trace = FactorProblem(problem, here), problem.gram.trace
            if is_new:
                fall = (values[0] - values[-1]) / PATIENCE if len(values) > PATIENCE else math.inf
                yield State(
                    here.factors,
                    values[-1],
                    factors.residual(),
                    counted.n_evaluations,
                    fall / trace if trace else 0.0,
                    numbers={"values": values},
                )
            is_new = True
            found = factors.minimise(stopping)
            counted.n_evaluations += found.n_evaluations
            here = problem.with_best_basis(found.point)
            value = problem.objective(here)
            if value > values[-1]:
                return
            values = [*values[-PATIENCE:], value]


class FactorProblem:
    """The problem of V for given U, in units in which every column of U has length one.

    In them the columns are nearly orthonormal, and a few steps are enough.
    """

    def __init__(self, whole: LabelEmbedding, here: Factorisation) -> None:
        lengths = np.sqrt(np.diag(here.inner))[:, None]
        # Zero for columns of zeros, whose factors are zero.
        self.unit = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        self.inner, self.cross = self.unit * here.inner * self.unit.T, self.unit * here.cross
        self.constant = whole.gram.trace  # the sum of the squares of Y
        self.penalty = L21(whole.reg_group * self.unit, whole.starts)
        self.start = lengths * here.factors

    @cached_property
    def lipschitz(self) -> float:
        """The largest curvature, ``2 |U^T U|_2``."""
        return 2.0 * float(np.linalg.eigvalsh(self.inner)[-1])

    def smooth(self, W: Float64Array) -> tuple[float, Float64Array]:
        """Return ``|Y - U V|^2`` and its gradient."""
        product = self.inner @ W
        value = self.constant + float(np.sum(W * (product - 2.0 * self.cross)))
        return value, 2.0 * (product - self.cross)

    def residual(self) -> float:
        """Return how far the start is from the minimum, as the norm of a gradient."""
        step = 1.0 / self.lipschitz if self.lipschitz else 1.0
        moved = self.penalty.prox(self.start - step * self.smooth(self.start)[1], step)
        return float(np.linalg.norm(moved - self.start)) / step

    def minimise(self, stopping: Stopping) -> Result:
        """Return the solver's result, with V as its point."""
        # Gradient restarts, because they work below the rounding of the objective too.
        objective = Composite(self.smooth, self.penalty, self.lipschitz)
        result = minimise(APG("gradient", affine=True), objective, self.start, stopping)
        return replace(result, point=self.unit * result.point)


def fit_feature_map(
    normal: Normal,
    cross: Float64Array,
    inner: Float64Array,
    reg_corr: float,
    reg_sparse: float,
    stopping: Stopping,
    callbacks: Sequence[Callback] = (),
    dtype: Any = np.float64,
    checkpoint: OpenCheckpoint | None = None,
) -> Result:
    """Return the solver's result, with the map Z in float64 as its point.

    Minimises ``|X Z - U|^2 + alpha tr(Z R Z^T) + beta |Z|_1`` over Z, where X and U are centred,
    and R says how little the columns of U go together (`unrelatedness`).  ``normal``, ``cross`` and
    ``inner`` are ``X^T X``, ``X^T U`` and ``U^T U``; ``reg_corr`` is alpha, ``reg_sparse`` beta.
    """
    unrelated = reg_corr * unrelatedness(inner)
    ridge = float(np.linalg.norm(unrelated, 2)) if unrelated.any() else 0.0
    # Features of length one: those that are rare would else take as long as they are short.
    # Constant ones stay at zero, and those that are too short for the type of the arithmetic.
    lengths = np.sqrt(normal.diagonal + ridge)
    long_enough = normal.diagonal > np.finfo(dtype).tiny
    unit = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=long_enough)
    scale = unit.astype(dtype)[:, None]
    target = (unit[:, None] * cross).astype(dtype)
    unrelated = unrelated.astype(dtype)
    constant, vectors = float(np.trace(inner)), NumpyVectors()

    def smooth(W: FloatArray) -> tuple[float, FloatArray]:
        Z = scale * W
        image = normal.apply(Z)
        slope = scale * (image + Z @ unrelated if ridge else image)
        slope -= target
        with_slope, with_target = vectors.dots((slope, target), W)
        value = constant + with_slope - with_target
        slope *= 2
        return value, slope

    def with_ridge(column: FloatArray) -> FloatArray:
        Z = scale * column
        return scale * (normal.apply(Z) + Z.dtype.type(ridge) * Z)

    penalty = L1((reg_sparse * unit).astype(dtype)[:, None])
    lipschitz = 2.0 * largest_eigenvalue(with_ridge, len(unit), dtype)
    objective = Composite(smooth, penalty, lipschitz)
    result = (checkpoint or OpenCheckpoint()).minimise(
        "features", APG(affine=True), objective, np.zeros_like(target), stopping, callbacks, vectors
    )
    return replace(result, point=unit[:, None] * result.point)


def unrelatedness(inner: Float64Array) -> Float64Array:
    """Return R, one minus the correlations of the columns of U, as near as a penalty can be.

    Its negative eigenvalues, with which the objective would have no minimum, are replaced by zero,
    which gives the nearest matrix without any.  A column of zeros is related to itself alone.
    """
    lengths = np.sqrt(np.diag(inner))
    unit = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    correlations = unit[:, None] * inner * unit
    np.fill_diagonal(correlations, 1.0)
    values, vectors = np.linalg.eigh(1.0 - correlations)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def largest_eigenvalue(product: Any, n: int, dtype: Any) -> float:
    """Return a tight bound on the largest eigenvalue of a positive semi-definite matrix."""
    # The Lanczos method, from a start that is the same every time.
    vector = np.random.default_rng(0).normal(size=(n, 1))
    vector /= np.linalg.norm(vector)
    before, off = np.zeros_like(vector), 0.0
    diagonal: list[float] = []
    off_diagonal: list[float] = []
    for _ in range(min(n, LANCZOS_STEPS)):
        image = product(vector.astype(dtype)).astype(np.float64) - off * before
        diagonal.append(float(np.sum(image * vector)))
        image -= diagonal[-1] * vector
        off = float(np.linalg.norm(image))
        off_diagonal.append(off)
        if off <= 1e-6 * max(diagonal):
            break
        before, vector = vector, image / off
    values, vectors = eigh_tridiagonal(diagonal, off_diagonal[:-1])
    # An eigenvalue lies within the length of the residual.
    return float(values[-1] + off_diagonal[-1] * abs(vectors[-1, -1])) * (1.0 + 1e-6)
