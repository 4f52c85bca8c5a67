"""A factoriser that learns from part of the ratings, a few iterations at a time.

Between two turns it keeps the whole state of its solver, so that turns of 10 and then 30 iterations
end where one of 30 would, at no more cost.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from marginmf._typing import Float64Array
from marginmf.checkpoints import Journal
from marginmf.progress import Report
from marginmf.ratings.holdout import HeldOut
from marginmf.solvers import (
    Callback,
    Result,
    Solver,
    State,
    Stopping,
    StopReason,
    VectorSpace,
    can_resume,
)

#: From true and predicted ratings to what should be small.
Metric = Callable[[Any, Any], float]


class _PausedError(Exception):
    """Leaves a solver at the end of an iteration, with its state."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state


@dataclass(frozen=True)
class PausingJournal(Journal):
    """Runs minimisations up to some iteration, and later on from there.

    Parameters
    ----------
    max_iter : int
        No minimisation goes on beyond this iteration, counted from its start.
    reached : dict
        Where each was left, by its name, or its result if it came to its end by itself.
    """

    max_iter: int = 0
    reached: dict[str, State | Result] = field(default_factory=dict)

    def minimise(
        self,
        name: str,
        solver: Solver,
        objective: Any,
        start: Any,
        stopping: Stopping | None = None,
        callbacks: Sequence[Callback] = (),
        space: VectorSpace | None = None,
    ) -> Result:
        """Minimise from where it was left; see `Journal.minimise`."""
        found = self.reached.get(name)
        if isinstance(found, Result):
            return found
        if not can_resume(solver):
            raise ValueError(
                f"{type(solver).__name__} cannot pause and resume: its minimise() does not take "
                "resume and save."
            )

        def pause(state: State) -> None:
            if state.history[-1].iteration >= self.max_iter:
                raise _PausedError(state)

        try:
            result = solver.minimise(
                objective, start, stopping, callbacks, space, resume=found, save=pause
            )
        except _PausedError as paused:
            state = self.reached[name] = paused.state
            history = list(state.history)
            point = state.vectors["point"][0]
            return Result(point, history, StopReason.MAX_ITER, history[-1].n_evaluations)
        self.reached[name] = result
        return result


class Contender:
    """One candidate of a search, on every hold-out.

    Parameters
    ----------
    model : Factoriser
        An unfitted one, with the parameters of the candidate.
    held_outs : sequence of HeldOut
        What to learn from, and what to be judged on.
    seed : int
        Of the start, which is the same for all candidates of the same shape.
    """

    def __init__(self, model: Any, held_outs: Sequence[HeldOut], seed: int) -> None:
        self.model, self.held_outs, self.seed = model, held_outs, seed
        self.models: list[Any] = []
        self.reached: list[dict[str, State | Result]] = [{} for _ in held_outs]

    def error_after(self, max_iter: int, metric: Metric, report: Report) -> float:
        """Go on up to an iteration of every stage; return the mean error on the hold-outs."""
        if not self.models:
            self.models = [self.model._learning_from(held_out.train) for held_out in self.held_outs]
        turns = zip(self.models, self.held_outs, self.reached, strict=True)
        return float(np.mean([self._turn(*turn, max_iter, metric, report) for turn in turns]))

    def _turn(
        self,
        model: Any,
        held_out: HeldOut,
        reached: dict[str, State | Result],
        max_iter: int,
        metric: Metric,
        report: Report,
    ) -> float:
        n_stages = model._n_stages(held_out.train)
        model.reg_ = model._of_stages(model._given_regs(n_stages))
        model._journal = PausingJournal(max_iter=max_iter, reached=reached)
        rngs = np.random.default_rng(self.seed).spawn(n_stages)
        stages = model._train(held_out.train, rngs, report)
        margins = [
            model._held_out_margins(held_out, stage, solution.parameters)
            for stage, solution in enumerate(stages)
        ]
        predicted: Float64Array = model.levels_[model._decode(np.hstack(margins))]
        return float(metric(model.levels_[held_out.codes], predicted))

    @property
    def n_evaluations(self) -> int:
        """How many gradients all turns took so far."""
        parts = [part for reached in self.reached for part in reached.values()]
        return sum(part.history[-1].n_evaluations for part in parts)

    @property
    def n_iter(self) -> int:
        """How many iterations its longest stage made."""
        parts = [part for reached in self.reached for part in reached.values()]
        return max(part.history[-1].iteration for part in parts)

    @property
    def finished(self) -> bool:
        """Whether every stage came to its end by itself."""
        return all(isinstance(part, Result) for one in self.reached for part in one.values())

    def forget(self) -> None:
        """Let go of the vectors: it is out, and only its numbers are of interest."""
        self.models.clear()
        for reached in self.reached:
            for name, part in reached.items():
                reached[name] = (
                    replace(part, point=None)
                    if isinstance(part, Result)
                    else replace(part, vectors={})
                )
