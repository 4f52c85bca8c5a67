"""``reg="auto"``: the weight of the penalty that predicts held-out ratings best.

Every stage of a factoriser has a regularisation path of its own.  What the path leaves behind,
beside the choice, are margins of held-out ratings to calibrate probabilities on.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from marginmf._typing import Float64Array, FloatArray
from marginmf.backends import Kernels, get_kernels
from marginmf.progress import Report
from marginmf.ratings.calibration import Calibrator, features_of
from marginmf.ratings.data import Ratings
from marginmf.ratings.holdout import HeldOut
from marginmf.ratings.objective import Parameters
from marginmf.tuning import RegularisationPath, follow_path

if TYPE_CHECKING:
    from marginmf.ratings.base import RatingsEstimator

#: How much of the random start is added to a solution before the next candidate starts from it.
STIR = 0.5

#: Errors along the path need no more precision than this; the final fit has its own.
PATH_TOL = 3e-3

#: Paths begin at this share of the weight that leaves nothing but zeros: the best one is seldom
#: above it, and the walk turns round where it is.
BEGIN_SHARE = 0.15

POWER_ITERATIONS = 20
TINY = 1e-300


class Trial(NamedTuple):
    """A model that learns from all but the ratings of one hold-out."""

    model: "RatingsEstimator"
    held_out: HeldOut


class Tried(NamedTuple):
    """What one candidate gave: its error, and a solution and margins for every hold-out."""

    reg: float
    error: float
    solutions: Sequence[Parameters]
    margins: Sequence[FloatArray]


class Choice(NamedTuple):
    """The path of one stage, and what its best candidate gave."""

    path: RegularisationPath
    best: Tried


def choose_reg(
    trials: Sequence[Trial],
    stage: int,
    rng: np.random.Generator,
    kernels: Kernels,
    report: Report,
    near: Choice | None = None,
) -> Choice:
    """Follow the regularisation path of one stage on all hold-outs.

    Parameters
    ----------
    trials : sequence of Trial
        A factoriser and its hold-out, for every hold-out.
    stage : int
        Which stage of the factorisers.
    rng : Generator
        Draws the start.
    kernels : Kernels
        Who does the arithmetic.
    report : callable
        From the name of a part to the callbacks that report its iterations.
    near : Choice, optional
        What was chosen for a stage that is like this one: the path begins there.
    """
    first: Any = trials[0].model
    train = trials[0].held_out.train
    start = first._random_start(train, first._row_loss(train, stage), rng)
    best: Tried | None = None
    last: Tried | None = None

    def errors_at(reg: float) -> Float64Array:
        nonlocal best, last
        known = [tried for tried in (best, last) if tried is not None]
        if near is not None and not known:
            known = [near.best]
        nearest = min(known, key=lambda tried: abs(np.log(tried.reg / reg)), default=None)
        errors, solutions, margins = [], [], []
        for k, (trial, held_out) in enumerate(trials):
            model: Any = trial
            part = model._stage_name(stage) or "path"
            solution = model._factorise(
                held_out.train,
                model._row_loss(held_out.train, stage),
                reg,
                kernels,
                start if nearest is None else _stirred(nearest.solutions[k], start),
                report(f"{part}, reg {reg:.3g}"),
                f"hold-out {k + 1}, {part}, reg {reg!r}",
            ).parameters
            found = model._held_out_margins(held_out, stage, solution)
            errors.append(model._held_out_error(held_out, stage, found))
            solutions.append(solution)
            margins.append(found)
        last = Tried(reg, float(np.mean(errors)), solutions, margins)
        # Of equals the strongest, as the path itself chooses.
        if best is None or (last.error, -last.reg) < (best.error, -best.reg):
            best = last
        return np.array(errors)

    limit = _limit(first, train, stage, start)
    candidates = first._candidate_regs(train, limit)
    begin = BEGIN_SHARE * limit if near is None else near.path.best
    path = follow_path(errors_at, first._selection_metric, candidates, max(begin, TINY))
    assert best is not None
    return Choice(path, best)


def _stirred(solution: Parameters, start: Parameters) -> Parameters:
    """Return a solution with some of the random start added.

    A stronger penalty has shrunk directions to nothing that a weaker one would keep.  Nothing is
    a saddle point, which takes long to leave, and the path would lag behind its candidates.
    """
    return Parameters(
        solution.users + STIR * start.users,
        solution.items + STIR * start.items,
        solution.thresholds,
    )


def _limit(model: Any, data: Ratings, stage: int, start: Parameters) -> float:
    """Return the smallest weight of the penalty that leaves nothing but zeros.

    Zero factors are a minimum as long as reg is at least the largest singular value of the
    matrix of derivatives by the scores.
    """
    scores = np.zeros(len(data), model.dtype)
    thresholds = start.thresholds.astype(model.dtype)
    slopes = model._row_loss(data, stage)(get_kernels("cpu", 1), data, scores, thresholds).by_score
    matrix = csr_array((slopes, data.indices, data.indptr), shape=(data.n_users, data.n_items))
    vector: Float64Array = np.ones(data.n_items)
    size = 0.0
    for _ in range(POWER_ITERATIONS):
        vector = matrix.T @ (matrix @ (vector / max(float(np.linalg.norm(vector)), TINY)))
        size = float(np.sqrt(np.linalg.norm(vector)))
    return size


def calibrated_on(trials: Sequence[Trial], margins: Sequence[FloatArray]) -> Calibrator:
    """Return what turns margins into probabilities, fitted to the hold-outs of some trials."""
    features = [
        features_of([own], model._frequencies, held_out.users, held_out.items)
        for (model, held_out), own in zip(trials, margins, strict=True)
    ]
    codes = np.concatenate([held_out.codes for _, held_out in trials])
    return Calibrator.fit(np.vstack(features), codes, trials[0].held_out.train.n_levels)
