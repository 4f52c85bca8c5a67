"""Labels as points: a factorisation of the label matrix that keeps groups of labels together.

Minimises ``sum_k |Y^k - U V^k|^2 + l1 |U|^2 + l2 sum_k |V^k|_{2,1}`` (the thesis's chapter 6; Y is
centred, and k counts groups of labels) in turns over U and V.  For given V the best U is
``Y M`` with ``M = V^T (V V^T + l1 I)^{-1}``, so U, which has a row for every sample, is never
needed: everything follows from ``Y^T Y``.  For given U all groups share ``U^T U``, and are solved
together by accelerated proximal gradient.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from marginmf._typing import Float64Array
from marginmf.labels.grams import MOST_DENSE_LABELS, LabelGram
from marginmf.penalties import L21
from marginmf.solvers import APG, Callback, Monitor, Result, Stopping, StopReason

#: The most proximal steps for V between two updates of U; the next turn goes on from there.
MOST_STEPS = 100
#: Eigenvalues below this share of the largest are zero, but for rounding.
ZERO = 1e-10


class Embedding(NamedTuple):
    """Where the factorisation stands.

    Parameters
    ----------
    mixing : array of shape (n_labels, n_factors)
        The matrix M of ``U = Y M``.
    factors : array of shape (n_factors, n_labels)
        V.
    cross, inner : array
        ``U^T Y`` and ``U^T U``.
    """

    mixing: Float64Array
    factors: Float64Array
    cross: Float64Array
    inner: Float64Array


@dataclass(frozen=True, eq=False)
class LabelEmbedding:
    """The problem: labels that stand group by group, and the weights of the penalties.

    Parameters
    ----------
    gram : LabelGram
        ``Y^T Y``.
    starts : sequence of int
        Where each group of labels begins.
    reg_basis, reg_group : float
        The weights l1 and l2.
    """

    gram: LabelGram
    starts: Sequence[int]
    reg_basis: float
    reg_group: float

    def minimise(
        self, n_factors: int, stopping: Stopping, callbacks: Sequence[Callback] = ()
    ) -> Result:
        """Take turns until the objective hardly falls; the point is an `Embedding`.

        Starts from the leading eigenvectors of ``Y^T Y``, of which there may be fewer than
        ``n_factors``.  ``tol`` is a share of ``|Y|^2``: where the factors hardly leave a rest, a
        share of that rest means nothing.
        """
        monitor = Monitor(replace(stopping, tol=-math.inf), callbacks)
        place = self.with_best_basis(leading_eigenvectors(self.gram, n_factors).T)
        problem = FactorProblem.of(self, place)
        reason = monitor.record(self.objective(place), problem.residual(), place)
        while reason is None:
            # More exactly than the turns are ended, or what is left would add up.
            steps = problem.minimise(
                Stopping(MOST_STEPS, -math.inf, 0.0, step_tol=0.1 * stopping.tol)
            )
            monitor.n_evaluations += steps.n_evaluations
            after = self.with_best_basis(steps.point)
            objective = self.objective(after)
            if objective > monitor.history[-1].objective:
                return monitor.result(place, StopReason.PRECISION)
            place, problem = after, FactorProblem.of(self, after)
            reason = monitor.record(objective, problem.residual(), place)
            if reason is None and monitor.fall() <= stopping.tol * self.gram.trace:
                reason = StopReason.OBJECTIVE
        return monitor.result(place, reason)

    def with_best_basis(self, V: Float64Array) -> Embedding:
        """Return the embedding with these factors and the U that suits them best."""
        values, vectors = np.linalg.eigh(V @ V.T)
        # Without a penalty the inverse does not exist where factors are zero or dependent: leave
        # those directions out, which is the least U of all the best ones.
        kept = values > ZERO * max(values[-1], 0.0)
        inverse = np.divide(1.0, values + self.reg_basis, out=np.zeros_like(values), where=kept)
        M = V.T @ (vectors * inverse) @ vectors.T
        cross = self.gram.apply(M).T
        inner = cross @ M
        return Embedding(M, V, cross, 0.5 * (inner + inner.T))

    def objective(self, place: Embedding) -> float:
        """Return the whole objective."""
        V = place.factors
        fit = self.gram.trace + float(np.sum(V * (place.inner @ V - 2.0 * place.cross)))
        penalty = L21(self.reg_group, self.starts).value(V)
        return fit + self.reg_basis * float(np.trace(place.inner)) + penalty


@dataclass(frozen=True, eq=False)
class FactorProblem:
    """The problem of V for given U, in units in which every column of U has length one.

    In them the columns are nearly orthonormal, and a few steps are enough.

    Parameters
    ----------
    inner, cross : array
        ``U^T U`` and ``U^T Y`` in these units.
    constant : float
        The sum of the squares of Y.
    penalty : L21
        The penalty, in these units.
    start : array
        The factors that there are.
    unit : array of shape (n_factors, 1)
        The units; zero for columns of zeros, whose factors are zero.
    """

    inner: Float64Array
    cross: Float64Array
    constant: float
    penalty: L21
    start: Float64Array
    unit: Float64Array

    @classmethod
    def of(cls, whole: LabelEmbedding, place: Embedding) -> "FactorProblem":
        """Return the problem at a place."""
        lengths = np.sqrt(np.diag(place.inner))[:, None]
        unit = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        return cls(
            unit * place.inner * unit.T,
            unit * place.cross,
            whole.gram.trace,
            L21(whole.reg_group * unit, whole.starts),
            lengths * place.factors,
            unit,
        )

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
        result = APG("gradient", affine=True).minimise(
            self.smooth, self.penalty, self.start, self.lipschitz, stopping
        )
        return replace(result, point=self.unit * result.point)


class Gram(Protocol):
    """A symmetric matrix with a row for each label, without negative eigenvalues."""

    @property
    def counts(self) -> Float64Array:
        """A number for each label."""

    @property
    def matrix(self) -> Float64Array:
        """The whole matrix."""

    @property
    def trace(self) -> float:
        """About the sum of its eigenvalues."""

    def apply(self, M: Float64Array) -> Float64Array:
        """Return the product with another matrix."""


def leading_eigenvectors(gram: Gram, n: int) -> Float64Array:
    """Return the eigenvectors of the largest eigenvalues that are not zero.

    There is one column at least: of zeros, if all labels are constant.
    """
    n_labels = len(gram.counts)
    if n_labels <= MOST_DENSE_LABELS or n >= n_labels - 1:
        wanted = (max(0, n_labels - n), n_labels - 1)
        values, vectors = eigh(gram.matrix, subset_by_index=wanted, check_finite=False)
    else:
        operator = LinearOperator(
            (n_labels, n_labels),
            matvec=lambda vector: gram.apply(vector.reshape(n_labels, 1)),
            matmat=gram.apply,
            dtype=float,
        )
        # A start of its own, because by default it is another one every time.
        start = np.random.default_rng(0).normal(size=n_labels)
        values, vectors = eigsh(operator, n, v0=start)
    values, vectors = values[::-1][:n], vectors[:, ::-1][:, :n]
    rank = int(np.sum(values > ZERO * max(gram.trace, 0.0)))
    if rank == 0 or gram.trace <= 0.0:
        return np.zeros((n_labels, 1))
    leading: Float64Array = vectors[:, :rank]
    return leading
