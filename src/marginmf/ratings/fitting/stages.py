"""Stages: a method is a list of factorisations, and one runner trains them.

HMF is a list of two-level stages; every other method has one.  A `Stage` says what it minimises,
how its solution is judged, and which other stage it starts from.  A `Training` trains stages on
some ratings, after one another with warm starts or side by side; choosing the regularisation
strength, stopping early and successive halving work on trainings.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from marginmf._utils.types import FloatArray, IntArray
from marginmf.backends import Backend, Resident
from marginmf.backends.specs import Spec
from marginmf.checkpoints import OpenCheckpoint
from marginmf.progress import Report
from marginmf.ratings.data import Ratings
from marginmf.ratings.fitting.objective import FactorObjective, Parameters, first_thresholds
from marginmf.ratings.fitting.priors import Priors
from marginmf.solvers import Callback, EarlyStopping, Result, Solver, Stopping

Work = TypeVar("Work")
#: The standard deviation of random factors.  Zero is a saddle point, and large factors start in
#: the flat parts of the losses; in between, the choice hardly matters.
START_SCALE = 0.1


def random_factors(rng: np.random.Generator, n: int, n_factors: int, dtype: Any) -> FloatArray:
    """Return small random factors to start from."""
    return (START_SCALE * rng.standard_normal((n, n_factors))).astype(dtype)


@dataclass(frozen=True, eq=False)
class Stage:
    """One factorisation of a method, on given ratings."""

    #: What it minimises.
    spec: Spec
    #: From a solution, users and items to the margins of the pairs, as the method predicts them.
    margins: Callable[[Parameters, IntArray, IntArray], FloatArray]
    #: From margins and the codes of the true levels to what a good solution makes small.
    error: Callable[[FloatArray, IntArray], float]
    #: What progress bars and checkpoints call it; "" for the only one.
    name: str = ""
    #: The stage whose solution this one starts from; by default it starts at random.
    after: int | None = None


#: An error of a stage's solution that should fall, and for how many iterations it may not.
StoppedBy = tuple[Callable[[int, Parameters], float], int]


class Solution(NamedTuple):
    """A factorisation and how it was found."""

    parameters: Parameters
    result: Result


@dataclass(frozen=True, eq=False)
class Training:
    """Stages that learn from some ratings, and from priors where there are any."""

    data: Ratings
    stages: Sequence[Stage]
    priors: Priors | None
    n_factors: int
    dtype: np.dtype[Any]
    solver: Solver
    stopping: Stopping
    backend: Backend
    n_threads: int
    checkpoint: OpenCheckpoint

    @cached_property
    def resident(self) -> Resident:
        """The ratings where the backend wants them, for all stages."""
        shape = (self.data.n_items, self.n_factors)
        about = (self.data, self.stages[0].spec, 0.0, shape, self.dtype)
        if self.priors is None:
            return self.backend.place(*about)
        return self.backend.place(*about, self.priors.features)

    def objective(self, stage: int, reg: float, backend: Backend) -> FactorObjective:
        """Return what one stage minimises."""
        spec = self.stages[stage].spec
        if self.priors is None:
            return FactorObjective(backend, self.resident.asking(spec, reg))
        coordinates = self.priors.coordinates(reg)
        resident = self.resident.asking(spec, reg, coordinates)
        return FactorObjective(backend, resident, self.priors, coordinates)

    def random_start(self, stage: int, rng: np.random.Generator) -> Parameters:
        """Return small random factors, and thresholds one apart; weights of features are zero."""
        n_factors, dtype = self.n_factors, self.dtype
        sizes = self.data.n_users, self.data.n_items
        users, items = (random_factors(rng, n, n_factors, dtype) for n in sizes)
        thresholds = first_thresholds(self.data, self.stages[stage].spec)
        if self.priors is None:
            return Parameters(users, items, thresholds)
        # Nothing would ever move what nobody rated, or who rated nothing, but the penalty.
        for own, prior in zip((users, items), self.priors, strict=True):
            own[prior.counts == 0] = 0
        shapes = [(matrix.shape[1], n_factors) for matrix in self.priors.features]
        weights = tuple(np.zeros(shape, dtype) for shape in shapes)
        return Parameters(users, items, thresholds, weights)

    def each(self, work: Callable[[int, Backend], Work]) -> list[Work]:
        """Do some work for every stage, given its number and a backend with the threads to use.

        Stages that start from others come after them; the others run side by side.
        """
        n_stages, n_threads = len(self.stages), self.n_threads
        order = sorted(range(n_stages), key=self._depth)
        if n_stages == 1 or any(stage.after is not None for stage in self.stages):
            done = {k: work(k, self.backend.limited(n_threads)) for k in order}
            return [done[k] for k in range(n_stages)]
        # Threads that are left over when every stage has one help inside the stages.
        backend = self.backend.limited(max(1, n_threads // n_stages))
        return self.checkpoint.side_by_side(lambda k: work(k, backend), range(n_stages), n_threads)

    def _depth(self, stage: int) -> int:
        depth, after = 0, self.stages[stage].after
        while after is not None:
            depth, after = depth + 1, self.stages[after].after
        return depth

    def solve(
        self,
        stage: int,
        reg: float,
        start: Parameters | Any,
        backend: Backend,
        name: str,
        callbacks: Sequence[Callback] = (),
        stopped_by: StoppedBy | None = None,
    ) -> Solution:
        """Find one stage's factorisation, from parameters or from another result's vector."""
        objective = self.objective(stage, reg, backend)
        early_stopping = None
        if stopped_by is not None:
            error_at, patience = stopped_by
            early_stopping = EarlyStopping(
                lambda point: error_at(stage, objective.split(point)), patience
            )
        point = objective.join(start) if isinstance(start, Parameters) else start
        rules = (self.stopping, callbacks, backend, early_stopping)
        result = self.checkpoint.minimise(name, self.solver, objective, point, *rules)
        return Solution(objective.split(result.point), result)

    def train(
        self,
        regs: Sequence[float],
        starts: Sequence[np.random.Generator] | Sequence[Parameters],
        report: Report,
        scope: str = "",
        callbacks: Sequence[Callback] = (),
        stopped_by: StoppedBy | None = None,
    ) -> list[Solution]:
        """Find every stage's factorisation, with a regularisation strength for each.

        Generators are for random starts; the scope tells minimisations of the same stages apart.
        """
        solved: dict[int, Solution] = {}
        _ = self.resident  # before stages that run side by side all ask for it

        def train(k: int, backend: Backend) -> Solution:
            stage, start = self.stages[k], starts[k]
            name = f"{stage.name} {scope}".strip()
            where: Any = start
            if isinstance(start, np.random.Generator):
                if stage.after is None:
                    where = self.random_start(k, start)
                else:  # not the vector if there are priors: its coordinates may differ here
                    parameters, result = solved[stage.after]
                    where = result.point if self.priors is None else parameters
            watching = [*callbacks, *report(name)]
            solved[k] = self.solve(k, regs[k], where, backend, name, watching, stopped_by)
            return solved[k]

        return self.each(train)

    def margins(
        self, solutions: Sequence[Solution], users: IntArray, items: IntArray
    ) -> FloatArray:
        """Return the margins of pairs by all stages, side by side."""
        pairs = zip(self.stages, solutions, strict=True)
        return np.hstack([stage.margins(own.parameters, users, items) for stage, own in pairs])
