"""Our gradient, called as the library calls it, and the operations that it is made of."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.roofline_clock import seconds_each
from marginmf.backends import get_backend
from marginmf.backends.specs import Proximal, Spec, Thresholds, TwoLevel
from marginmf.losses import smooth_hinge
from marginmf.ratings.data import Ratings
from marginmf.ratings.fitting.objective import FactorObjective, Parameters, first_thresholds
from marginmf.solvers import LBFGS, Stopping, minimise

#: What each method asks of a user's scores; HMF asks it of every stage, here of the middle one.
ROW_LOSSES: dict[str, Callable[[int], Spec]] = {
    "HMF": lambda n_levels: TwoLevel(smooth_hinge, cut=(n_levels - 1) // 2),
    "MMMF": lambda n_levels: Thresholds(smooth_hinge),
    "PMMMF": lambda n_levels: Proximal(smooth_hinge),
}

REG = 10.0
TRAINED = 20
START_SCALE = 0.1


def gradients(
    data: Ratings, n_factors: int, method: str, trained: bool = True
) -> Iterator[dict[str, Any]]:
    """Yield the rate of a method's gradient at a random start, and after some iterations."""
    spec, cpu = ROW_LOSSES[method](data.n_levels), get_backend("cpu", 1)
    resident = cpu.place(data, spec, REG, (data.n_items, n_factors), np.float32)
    objective = FactorObjective(cpu, resident)
    point = objective.join(start(data, spec, n_factors))
    work = 6e-9 * n_factors * len(data)
    yield _measured(objective, point, work, "random start")
    if trained:
        stopping = Stopping(max_iter=TRAINED, tol=0.0, gradient_tol=0.0)
        point = minimise(LBFGS(), objective, point, stopping, vectors=cpu).point
        yield _measured(objective, point, work, f"after {TRAINED} iterations")


def _measured(objective: FactorObjective, point: Any, work: float, state: str) -> dict[str, Any]:
    seconds = seconds_each(lambda: objective(point))
    return {"state": state, "seconds": seconds, "gflops": work / seconds}


def start(data: Ratings, spec: Spec, n_factors: int) -> Parameters:
    """Return random factors as a fit starts from; every weight is active there."""
    generator = np.random.default_rng(0)
    users, items = (
        np.float32(START_SCALE) * generator.standard_normal((n, n_factors), np.float32)
        for n in (data.n_users, data.n_items)
    )
    return Parameters(users, items, first_thresholds(data, spec))


def kernels(data: Ratings, n_factors: int) -> Iterator[dict[str, Any]]:
    """Yield the rate of single operations on one thread: the one list of them, kept short.

    The operations are those of the arithmetic on factors; the rest of a gradient has next to none,
    and is shown in nanoseconds a rating.
    """
    cpu, generator = get_backend("cpu", 1), np.random.default_rng(0)
    U, V = (
        generator.standard_normal((n, n_factors), np.float32) for n in (data.n_users, data.n_items)
    )
    scores = generator.standard_normal(len(data), np.float32)
    two_level, proximal = (ROW_LOSSES[method](data.n_levels) for method in ("HMF", "PMMMF"))
    nothing = np.empty((data.n_users, 0), np.float32)
    calls: dict[str, tuple[int, Callable[[], Any]]] = {
        "scores": (2, lambda: cpu.scores(data.rows, data.indices, U, V)),
        "row_gradients, HMF": (4, lambda: cpu.row_gradients(data, two_level, U, V, nothing)),
        "row_losses, PMMMF": (0, lambda: cpu.row_losses(data, proximal, scores, nothing)),
    }
    for name, (operations, call) in calls.items():
        seconds = seconds_each(call)
        rate = 1e-9 * operations * n_factors * len(data) / seconds
        yield {"kernel": name, "seconds": seconds, "gflops": rate}


def vectors(n_bytes: int) -> dict[str, float]:
    """Return the rates of our arithmetic on two vectors of n bytes in all, as called."""
    cpu = get_backend("cpu", 1)
    a, b = np.full((2, n_bytes // 8), 1e-3, np.float32)
    return {
        "dot": 2e-9 * len(a) / seconds_each(lambda: cpu.dots((a,), b)),
        "axpy": 2e-9 * len(a) / seconds_each(lambda: cpu.combine((1.0, 1e-6), (b, a), out=b)),
    }
