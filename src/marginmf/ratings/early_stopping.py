"""``early_stopping=True``: iterations end where they no longer help ratings that are held out.

The fit has two parts.  The first learns from all but the hold-out, whose error says when to stop;
the best point by that error is kept.  The second goes on from there with all ratings, for a few
iterations only: what the hold-out has to tell is in the model then, and there are too few of them
to undo what stopping early was for.  That costs little and predicts as well as a fit from the
start for as many iterations, while the model of the first part alone has learned from less.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from marginmf._parameters import check_number
from marginmf.backends import Kernels
from marginmf.progress import Report
from marginmf.ratings.calibration import Calibrator
from marginmf.ratings.holdout import HeldOut
from marginmf.ratings.selection import Trial, calibrated_on

if TYPE_CHECKING:
    from marginmf.ratings.factoriser import Solution

#: How many iterations with all ratings, hold-out included, come last.
FINISHING = 3


class Stopped(NamedTuple):
    """The solution of every stage, and what turns margins into probabilities."""

    solutions: "list[Solution]"
    calibrator: Calibrator


def train_and_stop_early(
    model: Any, held_out: HeldOut, rngs: Sequence[np.random.Generator], report: Report
) -> Stopped:
    """Find every stage's factorisation, each stopped by its own error on the hold-out.

    Parameters
    ----------
    model : Factoriser
        Whose parameters to use; it has its data and its weights of the penalty.
    held_out : HeldOut
        The ratings of the model, with some of them set aside.
    rngs : sequence of Generator
        One for each stage; they draw the start.
    report : callable
        From the name of a part to the callbacks that report its iterations.
    """
    data = model.ratings_
    trial = model._learning_from(held_out.train)
    kept = trial._train(held_out.train, rngs, report, held_out)
    finisher = copy(model)
    finisher.max_iter = FINISHING
    regs = model._regs(data)

    def finish(stage: int, kernels: Kernels) -> "Solution":
        name = f"{model._stage_name(stage)} all ratings".strip()
        row_loss, callbacks = model._row_loss(data, stage), [*model.callbacks, *report(name)]
        start = kept[stage].parameters
        return finisher._factorise(  # type: ignore[no-any-return]
            data, row_loss, regs[stage], kernels, start, callbacks, name
        )

    finished = finisher._each_stage(data, finish)
    margins = [
        trial._held_out_margins(held_out, stage, solution.parameters)
        for stage, solution in enumerate(kept)
    ]
    calibrator = calibrated_on([Trial(trial, held_out)], [np.hstack(margins)])
    return Stopped(list(map(_joined, kept, finished)), calibrator)


def _joined(kept: "Solution", finished: "Solution") -> "Solution":
    """Return where the second part ended, with the history of the first and the work of both."""
    first, second = kept.result, finished.result
    n_evaluations = first.n_evaluations + second.n_evaluations
    return finished._replace(result=replace(first, point=second.point, n_evaluations=n_evaluations))


def check_early_stopping(model: Any) -> None:
    """Raise ValueError unless the parameters of a factoriser say how to stop."""
    if not isinstance(model.early_stopping, bool | np.bool_):
        raise ValueError(f"early_stopping={model.early_stopping!r} must be True or False.")
    check_number(model, "n_iter_no_change", int, 1)
    check_number(model, "validation_fraction", float, 0)
    if not 0 < model.validation_fraction < 1:
        raise ValueError(
            f"validation_fraction={model.validation_fraction!r} must be between 0 and 1: the "
            "share of the ratings that is held out."
        )
