"""Value and gradient of every ratings factorisation, at a point, for given ratings.

    J(U, V, thresholds) = sum over users of row_loss(scores, ratings, thresholds)
                          + reg / 2 (|U|^2 + |V|^2)

What differs between the methods is the light row loss alone (`marginmf.backends.specs`).
`FactorObjective` is J as a function of everything; `RowObjective` is what single rows of one side
add to it, the other side given, and `solve_rows` minimises it.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from marginmf._typing import Float64Array, FloatArray, IntArray
from marginmf.backends import Backend, Resident
from marginmf.backends.rows import Rows
from marginmf.backends.specs import Spec
from marginmf.backends.threads import run
from marginmf.solvers import minimise_rows

#: The most rows that are solved together, because of their memory, and the fewest, because a round
#: of few rows costs as much as one of many.
LARGEST_BLOCK, SMALLEST_BLOCK = 1024, 64


class Parameters(NamedTuple):
    """What a factorisation learns: user factors, item factors, users' thresholds."""

    users: FloatArray
    items: FloatArray
    thresholds: FloatArray


class FactorObjective:
    """The objective of one factorisation, as a function of one parameter vector of a backend.

    Parameters
    ----------
    backend : Backend
        Evaluates it.
    resident : Resident
        The data, what is asked of them, and the regularisation strength.
    """

    def __init__(self, backend: Backend, resident: Resident) -> None:
        self.backend, self.resident = backend, resident

    def join(self, parameters: Parameters) -> Any:
        """Return one parameter vector."""
        return self.resident.layout.join(parameters)

    def split(self, point: Any) -> Parameters:
        """Return the parts of a parameter vector on this machine, as they are in estimators."""
        parts = self.resident.layout.split(point)
        return Parameters(*(np.ascontiguousarray(part) for part in parts))

    def __call__(self, point: Any) -> tuple[float, Any]:
        """Return the value and the gradient at a point."""
        return self.backend.gradient(self.resident, point)


class RowObjective:
    """The objective of every row of one side, each on its own, while the other side is given.

        J_i(u, thresholds) = row_loss(scores, ratings, thresholds) + reg / 2 |u|^2

    A point has a row for each row of the data: its factors, then its thresholds.  Every J_i is
    convex.  See `marginmf.solvers.rowwise.RowProblems`.

    Parameters
    ----------
    data : Rows
        What was observed, with the side that is learned in the rows.
    spec : Spec
        What the method asks of a row's scores.
    reg : float
        The regularisation strength.
    given : array of shape (n_columns, n_factors)
        The factors of the other side.
    backend : Backend
        Evaluates it.
    """

    def __init__(
        self, data: Rows, spec: Spec, reg: float, given: FloatArray, backend: Backend
    ) -> None:
        self.data = data
        self.spec = spec
        self.reg = float(reg)
        self.given = given
        self.backend = backend

    def split(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the factors and the thresholds of every row."""
        n_factors = self.given.shape[1]
        factors, thresholds = points[:, :n_factors], points[:, n_factors:]
        return np.ascontiguousarray(factors), np.ascontiguousarray(thresholds)

    def take(self, which: IntArray) -> "RowObjective":
        """Return the objective of some rows."""
        spec = self.spec.take(self.data.entries_of(which))
        return RowObjective(self.data.take(which), spec, self.reg, self.given, self.backend)

    def __call__(self, points: FloatArray) -> tuple[Float64Array, FloatArray]:
        """Return the value of every row, and the gradient by every row."""
        factors, thresholds = self.split(points)
        rows = self.backend.row_gradients(self.data, self.spec, factors, self.given, thresholds)
        by_factors = rows.by_factors + factors.dtype.type(self.reg) * factors
        penalty = 0.5 * self.reg * np.einsum("ip,ip->i", factors, factors)
        parts = [by_factors] if rows.by_threshold is None else [by_factors, rows.by_threshold]
        return rows.losses + penalty, np.hstack(parts)


def first_thresholds(rows: Rows, spec: Spec) -> FloatArray:
    """Return thresholds to start from: one apart, around zero, the same for every row."""
    n = spec.n_thresholds(rows.n_levels)
    return np.tile(np.arange(n) - (n - 1) / 2.0, (rows.n_rows, 1))


def solve_rows(objective: RowObjective, n_threads: int) -> tuple[FloatArray, FloatArray]:
    """Return the factors and the thresholds at the minimum of every row's problem.

    Starting at zero, and not at what was learned before, makes the answer free of chance.  The
    threads share the rows, not the work of every evaluation: they hardly ever wait for each other.
    The objective's backend must therefore run on one thread.
    """
    data, given = objective.data, objective.given
    zeros = np.zeros((data.n_rows, given.shape[1]))
    points = np.hstack([zeros, first_thresholds(data, objective.spec)]).astype(given.dtype)

    def solve(first: int, last: int) -> None:
        block = objective.take(np.arange(first, last))
        points[first:last] = minimise_rows(block, points[first:last])

    run(solve, block_bounds(len(points), n_threads), n_threads)
    return objective.split(points)


def block_bounds(n_rows: int, n_threads: int) -> IntArray:
    """Cut the rows into blocks of equal length, as many for each thread.

    >>> block_bounds(1040, 2), block_bounds(70, 2)
    (array([   0,  520, 1040]), array([ 0, 70]))
    """
    n_blocks = n_threads * math.ceil(n_rows / (n_threads * LARGEST_BLOCK))
    n_blocks = max(1, min(n_blocks, n_rows // SMALLEST_BLOCK))
    return np.linspace(0, n_rows, n_blocks + 1).astype(np.int64)
