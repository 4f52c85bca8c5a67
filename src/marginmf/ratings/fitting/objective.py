"""Value and gradient of every ratings factorisation, at a point, for given ratings.

    J(U, V, thresholds) = sum over users of row_loss(scores, ratings, thresholds)
                          + reg / 2 (|U|^2 + |V|^2)

The methods differ in the row loss alone (`marginmf.backends.specs`).  With `priors`, scores are
products of effective factors, and the weights of features are penalised too.  `FactorObjective` is
J as a function of everything; `RowObjective` is what single rows of one side add to it, the other
side given, and `solve_rows` minimises it.
"""

import math
from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np

from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends import Backend, Resident
from marginmf.backends.rows import Coordinates, Rows
from marginmf.backends.specs import Spec
from marginmf.backends.threads import run
from marginmf.ratings.fitting.priors import Priors
from marginmf.solvers import minimise_rows

#: The most rows that are solved together, because of their memory, and the fewest, because a round
#: of few rows costs as much as one of many.
LARGEST_BLOCK, SMALLEST_BLOCK = 1024, 64


class Parameters(NamedTuple):
    """What a factorisation learns: effective factors, users' thresholds, weights of features."""

    users: FloatArray
    items: FloatArray
    thresholds: FloatArray
    weights: tuple[FloatArray, ...] = ()


class FactorObjective:
    """The objective of one factorisation, as a function of one parameter vector of a backend."""

    def __init__(
        self,
        backend: Backend,
        resident: Resident,
        priors: Priors | None = None,
        coordinates: Sequence[Coordinates] = (),
    ) -> None:
        self.backend, self.resident = backend, resident
        self.priors, self.coordinates = priors, coordinates

    def join(self, parameters: Parameters) -> Any:
        """Return one parameter vector."""
        users, items, thresholds, weights = parameters
        if self.priors is None:
            return self.resident.layout.join((users, items, thresholds))
        means = self.priors.means(weights)
        own = (users - means[0], items - means[1])
        coordinates = map(Coordinates.parameters, self.coordinates, weights)
        return self.resident.layout.join((*own, thresholds, *coordinates))

    def split(self, point: Any) -> Parameters:
        """Return the parts of a parameter vector on this machine, as they are in estimators."""
        parts = [np.ascontiguousarray(part) for part in self.resident.layout.split(point)]
        users, items, thresholds, *coordinates = parts
        if self.priors is None:
            return Parameters(users, items, thresholds)
        weights = tuple(map(Coordinates.weights, self.coordinates, coordinates))
        means = self.priors.means(weights)
        return Parameters(users + means[0], items + means[1], thresholds, weights)

    def __call__(self, point: Any) -> tuple[float, Any]:
        """Return the value and the gradient at a point."""
        return self.backend.gradient(self.resident, point)


class RowObjective:
    """The objective of every row of one side, each on its own, while the other side is given.

        J_i(u, thresholds) = row_loss(scores, ratings, thresholds) + reg / 2 |u - mean|^2
                             + strength_i / 2 |thresholds - usual|^2

    A point has a row for each row of the data: its factors, then its thresholds; every J_i is
    convex. See `marginmf.solvers.rowwise.RowProblems`.  By default means are zeros, and thresholds
    have no penalty; ``usual`` holds usual thresholds, and the strength of each row.
    """

    def __init__(
        self,
        data: Rows,
        spec: Spec,
        reg: float,
        given: FloatArray,
        backend: Backend,
        means: FloatArray | None = None,
        usual: tuple[FloatArray, Float64Array] | None = None,
    ) -> None:
        self.data, self.spec, self.reg = data, spec, float(reg)
        self.given, self.backend, self.usual = given, backend, usual
        if means is None:
            means = np.zeros((data.n_rows, given.shape[1]), given.dtype)
        self.means = means.astype(given.dtype, copy=False)

    def split(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the factors and the thresholds of every row."""
        n_factors = self.given.shape[1]
        factors, thresholds = points[:, :n_factors], points[:, n_factors:]
        return np.ascontiguousarray(factors), np.ascontiguousarray(thresholds)

    def take(self, which: IntArray) -> Self:
        """Return the objective of some rows."""
        some = copy(self)
        some.data, some.spec = self.data.take(which), self.spec.take(self.data.entries_of(which))
        some.means = self.means[which]
        if self.usual is not None:
            some.usual = self.usual[0], self.usual[1][which]
        return some

    def __call__(self, points: FloatArray) -> tuple[Float64Array, FloatArray]:
        """Return the value of every row, and the gradient by every row."""
        factors, thresholds = self.split(points)
        rows = self.backend.row_gradients(self.data, self.spec, factors, self.given, thresholds)
        away = factors - self.means
        by_factors = rows.by_factors + factors.dtype.type(self.reg) * away
        penalty = 0.5 * self.reg * np.einsum("ip,ip->i", away, away)
        if rows.by_threshold is None:
            return rows.losses + penalty, by_factors
        by_threshold = rows.by_threshold
        if self.usual is not None:
            apart, strengths = thresholds - self.usual[0], self.usual[1]
            by_threshold = by_threshold + (strengths[:, None] * apart).astype(apart.dtype)
            penalty = penalty + 0.5 * strengths * np.einsum("iq,iq->i", apart, apart)
        return rows.losses + penalty, np.hstack([by_factors, by_threshold])


def first_thresholds(rows: Rows, spec: Spec) -> FloatArray:
    """Return thresholds to start from: one apart, around zero, the same for every row."""
    n = spec.n_thresholds(rows.n_levels)
    return np.tile(np.arange(n) - (n - 1) / 2.0, (rows.n_rows, 1))


def solve_rows(objective: RowObjective, n_threads: int) -> tuple[FloatArray, FloatArray]:
    """Return the factors and the thresholds at the minimum of every row's problem.

    Starting at the rows' means makes the answer free of chance.  Threads share the rows, so the
    objective's backend must run on one thread.
    """
    data, given = objective.data, objective.given
    thresholds = first_thresholds(data, objective.spec)
    if objective.usual is not None:
        thresholds[objective.usual[1] > 0] = objective.usual[0]
    points = np.hstack([objective.means, thresholds]).astype(given.dtype)

    def solve(first: int, last: int) -> None:
        block = objective.take(np.arange(first, last))
        points[first:last] = minimise_rows(block, points[first:last])

    run(solve, block_bounds(len(points), n_threads), n_threads)
    return objective.split(points)


def block_bounds(n_rows: int, n_threads: int) -> IntArray:
    """Divide the rows into blocks of equal length, as many for each thread."""
    n_blocks = n_threads * math.ceil(n_rows / (n_threads * LARGEST_BLOCK))
    n_blocks = max(1, min(n_blocks, n_rows // SMALLEST_BLOCK))
    return np.linspace(0, n_rows, n_blocks + 1).astype(np.int64)
