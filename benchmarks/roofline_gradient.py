"""Our gradient, called as the library calls it, and the single kernels that it is made of."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.roofline_clock import seconds_each
from marginmf.backends import get_kernels
from marginmf.backends.interface import Sides
from marginmf.losses import smooth_hinge
from marginmf.ratings.data import Ratings
from marginmf.ratings.objective import (
    FactorObjective,
    ProximalRows,
    RowLoss,
    ThresholdRows,
    TwoLevelRows,
    first_thresholds,
)
from marginmf.solvers import LBFGS, Stopping

#: What each method asks of a user's scores; HMF asks it of every stage, here of the middle one.
ROW_LOSSES: dict[str, Callable[[int], RowLoss]] = {
    "HMF": lambda n_levels: TwoLevelRows(smooth_hinge, cut=(n_levels - 1) // 2),
    "MMMF": lambda n_levels: ThresholdRows(smooth_hinge),
    "PMMMF": lambda n_levels: ProximalRows(smooth_hinge),
}

REG = 10.0
TRAINED = 20
START_SCALE = 0.1


def gradients(
    data: Ratings, n_factors: int, method: str, trained: bool = True
) -> Iterator[dict[str, Any]]:
    """Yield the rate of a method's gradient at a random start, and after some iterations."""
    row_loss = ROW_LOSSES[method](data.n_levels)
    objective = FactorObjective(data, row_loss, REG, n_factors, get_kernels("cpu", 1))
    point = start(objective, data, row_loss, n_factors)
    yield _measured(objective, point, n_factors, "random start")
    if trained:
        stopping = Stopping(max_iter=TRAINED, tol=0.0, gradient_tol=0.0)
        point = LBFGS().minimise(objective, point, stopping, space=objective.kernels).point
        yield _measured(objective, point, n_factors, f"after {TRAINED} iterations")


def _measured(objective: FactorObjective, point: Any, n_factors: int, state: str) -> dict[str, Any]:
    seconds = seconds_each(lambda: objective(point))
    rate = 6e-9 * n_factors * len(objective.data) / seconds
    return {"state": state, "seconds": seconds, "gflops": rate}


def start(objective: FactorObjective, data: Ratings, row_loss: RowLoss, n_factors: int) -> Any:
    """Return random factors as a fit starts from; every weight is active there."""
    generator = np.random.default_rng(0)
    factors = [
        np.float32(START_SCALE) * generator.standard_normal((n, n_factors), np.float32)
        for n in (data.n_users, data.n_items)
    ]
    return objective.join(*factors, first_thresholds(data, row_loss))


def kernels(data: Ratings, n_factors: int) -> Iterator[dict[str, Any]]:
    """Yield the rate of single kernels on one thread: the one list of them, kept short.

    The operations are those of the arithmetic on factors; the rest of a gradient has next to none,
    and is shown in nanoseconds a rating.
    """
    cpu = get_kernels("cpu", 1)
    generator = np.random.default_rng(0)
    U, V = (
        generator.standard_normal((n, n_factors), np.float32) for n in (data.n_users, data.n_items)
    )
    weights = generator.standard_normal(len(data), np.float32)
    cut = (data.n_levels - 1) // 2
    gradients = Sides(np.zeros_like(U), np.zeros_like(V))
    calls: dict[str, tuple[int, Callable[[], Any]]] = {
        "scores": (2, lambda: cpu.scores(data.rows, data.indices, U, V)),
        "spread": (4, lambda: cpu.spread(data.entries, weights, Sides(U, V), gradients)),
        "two_level_rows": (
            0,
            lambda: cpu.two_level_rows(data.indptr, weights, data.codes, cut, smooth_hinge),
        ),
    }
    for name, (operations, call) in calls.items():
        seconds = seconds_each(call)
        rate = 1e-9 * operations * n_factors * len(data) / seconds
        yield {"kernel": name, "seconds": seconds, "gflops": rate}


def vectors(n_bytes: int) -> dict[str, float]:
    """Return the rates of our arithmetic on two vectors of so many bytes in all, as called."""
    cpu = get_kernels("cpu", 1)
    a, b = np.full((2, n_bytes // 8), 1e-3, np.float32)
    return {
        "dot": 2e-9 * len(a) / seconds_each(lambda: cpu.dot(a, b)),
        "axpy": 2e-9 * len(a) / seconds_each(lambda: cpu.axpy(1e-6, a, b)),
    }
