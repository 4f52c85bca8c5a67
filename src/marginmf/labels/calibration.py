"""What is learned from scores of rows that were held out: thresholds, and probabilities.

The probability of a label is a logistic curve of its score (Platt, 1999).  All labels share one
slope; each has an intercept, which is drawn towards the common one, so that rare labels are not
left to their few rows.  With one intercept for all labels the probabilities of `BinaryRelevance` on
enron and education are worse than the labels' frequencies, and on each of seven data sets the
log loss of almost every method is higher than with an intercept for each label.

>>> import numpy as np
>>> present = np.arange(40).reshape(20, 2) % 3 == 0
>>> calibrator = LabelCalibrator(present.sum(axis=0), len(present))
>>> calibrator.add(np.where(present, 1.0, -1.0), present)
>>> calibrator.fit()(np.array([[-1.0, 1.0]])).round(2)
array([[0.04, 0.94]])
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, logit

from marginmf._utils.saved import floats, saved
from marginmf._utils.types import BoolArray, Float64Array, FloatArray, IntArray
from marginmf.labels.decisions import ThresholdSearch

#: At most about this many scores are looked at, of rows at equal distances, which takes half a
#: second; a quarter of bibtex's are enough for a log loss that is higher by half a per cent.
MOST_SCORES = 2**21
#: How strongly the intercepts of labels are drawn towards the common one: as by a normal prior with
#: this precision.  From 0.1 to 3 the log loss on seven data sets is the same to three digits.
PRECISION = 1.0
#: When Newton's method stops: after this many steps, or one that gains less than this share.
MAX_STEPS, TOLERANCE = 50, 1e-12
#: Probabilities stay between 0 and 1: beyond these logits they would be rounded to them.
LARGEST_LOGIT = 30.0
#: How near to 0 and 1 a method's own probabilities may come, before they become logits.
LEAST_PROBABILITY = 1e-4


@saved
@dataclass(frozen=True, eq=False)
class Calibration:
    """Turns scores into probabilities: ``expit(slopes * score + intercepts)``.

    Parameters
    ----------
    slopes, intercepts : array of shape (n_labels,)
        Of every label's logistic curve; a slope of 0 is the frequency of a label that never varies.
    of_probabilities : bool
        Whether scores are a method's own probabilities minus one half: then the curves are of
        their logits.
    """

    slopes: Float64Array
    intercepts: Float64Array
    of_probabilities: bool = False

    _saved: ClassVar[dict[str, Any]] = {
        "slopes": floats("labels"),
        "intercepts": floats("labels"),
        "of_probabilities": bool,
    }

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        if not (np.isfinite(self.slopes) & np.isfinite(self.intercepts)).all():
            yield " has a number that is not finite"
        elif (self.slopes < 0).any():
            yield ".slopes has a number below 0"

    def __call__(self, scores: FloatArray) -> Float64Array:
        """Return the probability of every label, given its score."""
        logits = self.slopes * as_predictors(scores, self.of_probabilities) + self.intercepts
        found: Float64Array = expit(np.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT))
        return found


def as_predictors(scores: FloatArray, of_probabilities: bool) -> Float64Array:
    """Return what the curves are curves of: scores, or the logits of probabilities."""
    wide: Float64Array = scores.astype(np.float64, copy=False)
    if of_probabilities:
        wide = logit(np.clip(wide + 0.5, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY))
    return wide


class LabelCalibrator:
    """Collects scores of rows held out, then fits the curves.

    Parameters
    ----------
    counts : array of shape (n_labels,)
        How many of the training rows have each label.
    n_rows : int
        How many there are.
    of_probabilities : bool
        See `Calibration`.
    """

    def __init__(self, counts: IntArray, n_rows: int, of_probabilities: bool = False) -> None:
        self.counts, self.n_rows, self.of_probabilities = counts, n_rows, of_probabilities
        self._step = max(1, -(-n_rows * len(counts) // MOST_SCORES))
        self._n_seen = 0
        self._kept: list[tuple[FloatArray, BoolArray]] = []

    def add(self, scores: FloatArray, present: BoolArray) -> None:
        """Look at rows whose scores and labels are given."""
        first = -self._n_seen % self._step
        self._n_seen += len(scores)
        # Copies: a view would keep the whole batch in memory.
        kept = slice(first, None, self._step)
        self._kept.append((scores[kept].copy(), present[kept].copy()))

    def fit(self) -> Calibration:
        """Return the curves; without scores that tell labels apart, their frequencies."""
        slopes = np.zeros(len(self.counts))
        intercepts = logit((self.counts + 1.0) / (self.n_rows + 2.0))
        varying = np.flatnonzero((self.counts > 0) & (self.counts < self.n_rows))
        if self._kept and len(varying):
            scores, present = (
                np.concatenate(parts)[:, varying] for parts in zip(*self._kept, strict=True)
            )
            slope, own = fit_curves(as_predictors(scores, self.of_probabilities), present)
            # A curve that falls would put labels in another order than their scores.
            if slope > 0:
                slopes[varying], intercepts[varying] = slope, own
        return Calibration(slopes, intercepts, self.of_probabilities)


def fit_curves(x: Float64Array, present: BoolArray) -> tuple[float, Float64Array]:
    """Return the common slope and the intercept of each column that minimise the log loss.

    The targets are not 0 and 1 but a little inside, as if one more row of each kind had been seen
    (Platt, 1999), so that the curve stays finite where scores separate labels without an error.
    """
    unit = float(np.abs(x).max(initial=0.0)) or 1.0
    x = x / unit
    middle, spread = float(x.mean()), float(x.std())
    if spread <= 1e-12:
        return 0.0, np.zeros(x.shape[1])
    x = (x - middle) / spread
    n_present = float(np.count_nonzero(present))
    high = (n_present + 1.0) / (n_present + 2.0)
    low = 1.0 / (present.size - n_present + 2.0)
    problem = _Curves(x, np.where(present, high, low))
    point = np.concatenate([[1.0, logit(float(problem.targets.mean()))], np.zeros(x.shape[1])])
    value = problem.value(point)
    for _ in range(MAX_STEPS):
        step, length = problem.newton_step(point), 1.0
        # The loss is convex: short enough a step lowers it.
        while (new := problem.value(point - length * step)) > value and length > 1e-6:
            length /= 2.0
        gain = value - new
        if gain > 0:
            point, value = point - length * step, new
        if gain <= TOLERANCE * abs(value):
            break
    slope = point[0] / (spread * unit)
    return float(slope), point[1] + point[2:] - slope * middle * unit


class _Curves(NamedTuple):
    """The penalised log loss, at points that have the slope, the common intercept and the own ones.

    The own intercepts are differences from the common one.
    """

    x: Float64Array
    targets: Float64Array

    def logits(self, point: Float64Array) -> Float64Array:
        return point[0] * self.x + (point[1] + point[2:])

    def value(self, point: Float64Array) -> float:
        logits = self.logits(point)
        loss = np.logaddexp(0.0, logits) - self.targets * logits
        return float(loss.sum() + 0.5 * PRECISION * np.square(point[2:]).sum())

    def newton_step(self, point: Float64Array) -> Float64Array:
        """Return the inverse of the Hessian times the gradient.

        An own intercept meets the two common parameters alone, so it is eliminated from their
        equations (a Schur complement), and two equations are left.
        """
        likely = expit(self.logits(point))
        error, weight = likely - self.targets, likely * (1.0 - likely)
        # By label, the gradient and the Hessian of the slope and of the intercept.
        gradient = np.stack([(error * self.x).sum(axis=0), error.sum(axis=0)])
        weighted = weight * self.x
        across = np.stack([weighted.sum(axis=0), weight.sum(axis=0)])
        own_gradient = gradient[1] + PRECISION * point[2:]
        own_hessian = across[1] + PRECISION
        squares = float((weighted * self.x).sum())
        hessian = np.array([[squares, across[0].sum()], [across[0].sum(), across[1].sum()]])
        shares = across / own_hessian
        hessian -= np.einsum("al,bl->ab", across, shares)
        right = gradient.sum(axis=1) - (shares * own_gradient).sum(axis=1)
        common = np.linalg.lstsq(hessian, right, rcond=1e-14)[0]
        own = (own_gradient - (across * common[:, None]).sum(axis=0)) / own_hessian
        return np.concatenate([common, own])


class Tuning(NamedTuple):
    """What scores of rows held out have taught.

    ``value`` is what the best common threshold reaches on these rows.
    """

    thresholds: Float64Array
    value: float
    calibration: Calibration


@dataclass(frozen=True, eq=False)
class Tuner:
    """Sees scores of rows held out batch by batch, and learns thresholds and probabilities."""

    search: ThresholdSearch
    calibrator: LabelCalibrator
    decision: str
    tune_for: str

    def add(self, scores: FloatArray, present: BoolArray) -> None:
        """Look at rows whose scores and labels are given."""
        self.search.add(scores, present)
        self.calibrator.add(scores, present)

    def result(self) -> Tuning:
        """Return what was learned."""
        return Tuning(*self.search.best(self.decision, self.tune_for), self.calibrator.fit())
