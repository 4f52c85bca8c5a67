"""What is learned from scores of rows held out: thresholds, probabilities, which rule to follow.

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

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, logit

from marginmf._utils.saved import floats, saved
from marginmf._utils.types import BoolArray, Float64Array, FloatArray, IntArray
from marginmf.labels.decisions import (
    CANDIDATES,
    EXPECTED,
    DecisionRule,
    ExpectedRule,
    ThresholdSearch,
    row_overlaps,
    value_of_sets,
)

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
#: What may be added to the logits of an expected-overlap rule; of equally good ones the first.
SHIFTS = (0.0, *(sign * 0.25 * k for k in range(1, 7) for sign in (-1, 1)))
#: From fewer rows than this no rule is chosen: one threshold has to do.
FEWEST_ROWS = 20
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
        if (self.slopes < 0).any():
            yield ".slopes has a number below 0"

    def logits(self, scores: FloatArray) -> Float64Array:
        """Return the logit of every label's probability, given its score."""
        return self.slopes * as_predictors(scores, self.of_probabilities) + self.intercepts

    def __call__(self, scores: FloatArray) -> Float64Array:
        """Return the probability of every label, given its score."""
        logits = np.clip(self.logits(scores), -LARGEST_LOGIT, LARGEST_LOGIT)
        found: Float64Array = expit(logits)
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

    def sample(self) -> tuple[FloatArray, BoolArray]:
        """Return the rows that are looked at: their scores, and which labels they have."""
        if not self._kept:
            nothing = np.zeros((0, len(self.counts)))
            return nothing, nothing > 0
        scores, present = (np.concatenate(parts) for parts in zip(*self._kept, strict=True))
        self._kept = [(scores, present)]
        return scores, present

    def fit(self, rows: slice = slice(None)) -> Calibration:
        """Return the curves of these rows; where scores tell nothing apart, the frequencies."""
        slopes = np.zeros(len(self.counts))
        intercepts = logit((self.counts + 1.0) / (self.n_rows + 2.0))
        varying = np.flatnonzero((self.counts > 0) & (self.counts < self.n_rows))
        scores, present = self.sample()
        if len(scores[rows]) and len(varying):
            predictors = as_predictors(scores[rows][:, varying], self.of_probabilities)
            slope, own = fit_curves(predictors, present[rows][:, varying])
            # A curve that falls would put labels in another order than their scores.
            if slope > 0:
                slopes[varying], intercepts[varying] = slope, own
        return Calibration(slopes, intercepts, self.of_probabilities)

    def log_loss(self) -> float:
        """Return the mean log loss of the sample's rows, by curves of all of them.

        The curves have few parameters, so that they can be compared on the rows they are fitted to.
        """
        scores, present = self.sample()
        if scores.size == 0:
            return 0.0
        logits = self.fit().logits(scores)
        return float(np.mean(np.logaddexp(0.0, logits) - present * logits))

    def held_out_logits(self) -> Float64Array:
        """Return the logits of the sample's rows, by curves of the other half of them."""
        scores, _ = self.sample()
        logits = np.empty(scores.shape)
        for half in (0, 1):
            logits[half::2] = self.fit(slice(1 - half, None, 2)).logits(scores[half::2])
        return logits


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
    point = damped_newton(problem.value, problem.newton_step, point)
    slope = point[0] / (spread * unit)
    return float(slope), point[1] + point[2:] - slope * middle * unit


def damped_newton(
    value: Callable[[Float64Array], float],
    newton_step: Callable[[Float64Array], Float64Array],
    point: Float64Array,
) -> Float64Array:
    """Return where a convex function is smallest; steps are halved until they lower it."""
    lowest = value(point)
    for _ in range(MAX_STEPS):
        step, length = newton_step(point), 1.0
        while (new := value(point - length * step)) > lowest and length > 1e-6:
            length /= 2.0
        gain = lowest - new
        if gain > 0:
            point, lowest = point - length * step, new
        if gain <= TOLERANCE * abs(lowest):
            break
    return point


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

    ``value`` is what the rule reaches on these rows: of thresholds, the best common one; of classes
    the share that is right.
    """

    thresholds: Float64Array
    value: float
    calibration: Calibration
    decision: str
    shift: float = 0.0


@dataclass(frozen=True, eq=False)
class Tuner:
    """Sees scores of rows held out batch by batch, and learns thresholds, probabilities, the rule.

    Rules that are chosen from (see ``CANDIDATES``) are compared on the calibrator's sample of rows,
    each half of them by what was learned from the other; expected overlap is kept unless one
    threshold is ahead by more than a standard error of the rows' differences.  Classes need no
    rule: ``classify`` turns scores into the numbers of classes.
    """

    search: ThresholdSearch
    calibrator: LabelCalibrator
    decision: str
    tune_for: str
    classify: Callable[[FloatArray], IntArray] | None = None
    _right: list[BoolArray] = field(default_factory=list)

    def add(self, scores: FloatArray, present: BoolArray) -> None:
        """Look at rows whose scores and labels are given."""
        self.search.add(scores, present)
        self.calibrator.add(scores, present)
        if self.classify is not None:
            self._right.append(self.classify(scores) == self.classify(present - 0.5))

    def value(self) -> float:
        """Return how good the scores are for what decides: more is better.

        Where sets may follow from probabilities, minus their log loss; else what the best common
        threshold reaches, or the share of classes that is right.
        """
        if self.classify is not None:
            return float(np.concatenate(self._right).mean())
        if any(rule in EXPECTED for rule in self._candidates):
            return -self.calibrator.log_loss()
        return self.search.best("global", self.tune_for)[1]

    @property
    def _candidates(self) -> tuple[str, ...]:
        """The rules that are chosen from."""
        return CANDIDATES[self.tune_for] if self.decision == "auto" else (self.decision,)

    def result(self) -> Tuning:
        """Return what was learned."""
        calibration = self.calibrator.fit()
        if self.classify is not None:
            return Tuning(np.zeros(0), self.value(), calibration, self.decision)
        decision, shift, value = self._choose()
        expected = self._expect(decision, calibration, self.calibrator.sample()[0])
        thresholds, best = self.search.best(decision, self.tune_for, expected)
        return Tuning(thresholds, best if value is None else value, calibration, decision, shift)

    def _choose(self) -> tuple[str, float, float | None]:
        """Return a rule, its shift, and what it reaches, if that is not up to thresholds."""
        if self.decision not in ("auto", *EXPECTED):
            return self.decision, 0.0, None
        scores, present = self.calibrator.sample()
        candidates = self._candidates
        # One label is there or not, and nothing can be learned from a few rows.
        if self.decision == "auto" and (
            len(candidates) == 1 or present.shape[1] == 1 or len(present) < FEWEST_ROWS
        ):
            return candidates[0], 0.0, None
        if len(present) == 0:
            return candidates[0], 0.0, 0.0
        shifts: dict[str, float] = {}
        sets: dict[str, BoolArray] = {}
        for rule in candidates:
            if rule in EXPECTED:
                logits, possible = self.calibrator.held_out_logits(), self.calibrator.counts > 0
                shifts[rule] = best_shift(logits, present, possible, rule, self.tune_for)
                sets[rule] = ExpectedRule(rule, shifts[rule], possible)(logits)
            else:
                shifts[rule], sets[rule] = 0.0, self._sets_by_thresholds(rule, scores, present)
        values = {rule: value_of_sets(self.tune_for, sets[rule], present) for rule in candidates}
        best = max(candidates, key=values.__getitem__)
        if best not in EXPECTED and candidates[-1] in EXPECTED:
            first, second = (
                row_overlaps(self.tune_for, sets[rule], present) for rule in (best, candidates[-1])
            )
            if not is_ahead(first, second):
                best = candidates[-1]
        return best, shifts[best], values[best]

    def _expect(
        self, rule: str, calibration: Calibration, scores: FloatArray
    ) -> Float64Array | None:
        """Return what own thresholds are drawn towards, if not towards the common one."""
        if rule != "per_label" or self.tune_for != "macro_f1" or not len(scores):
            return None
        common, _ = self.search.best("global", self.tune_for)
        known = calibration.slopes > 0
        return np.where(known, expected_f1_thresholds(calibration, scores), common)

    def _sets_by_thresholds(self, rule: str, scores: FloatArray, present: BoolArray) -> BoolArray:
        """Return the sets of each half of the rows by thresholds of the other half."""
        predicted = np.empty_like(present)
        for half in (0, 1):
            search = ThresholdSearch(scores.shape[1], self.search.top1_if_empty)
            others = slice(1 - half, None, 2)
            search.add(scores[others], present[others])
            expected = None
            if rule == "per_label":
                expected = self._expect(rule, self.calibrator.fit(others), scores[others])
            thresholds, _ = search.best(rule, self.tune_for, expected)
            decide = DecisionRule(thresholds, self.search.top1_if_empty)
            predicted[half::2] = decide(scores[half::2])
        return predicted


def is_ahead(first: Float64Array, second: Float64Array) -> bool:
    """Return whether the first of two values of each row is ahead by more than a standard error.

    >>> is_ahead(np.array([1.0, 0.9, 0.8]), np.array([0.5, 0.4, 0.5])), is_ahead(*np.eye(2))
    (True, False)
    """
    gains = first - second
    return bool(gains.mean() > gains.std() / np.sqrt(len(gains)))


def expected_f1_thresholds(calibration: Calibration, scores: FloatArray) -> Float64Array:
    """Return the threshold of each label with the largest expected F1, given all rows' scores.

    F1 of the k rows with the highest scores is about twice the sum of their probabilities, divided
    by k plus the sum of all.  Probabilities, which all labels' rows have a part in, say more of a
    rare label than its own few rows.
    """
    ordered = np.sort(scores, axis=0)[::-1]
    sums = np.cumsum(calibration(ordered), axis=0)
    values = 2.0 * sums / (sums[-1] + np.arange(1, len(sums) + 1)[:, None])
    last, labels = np.argmax(values, axis=0), np.arange(scores.shape[1])
    after = np.minimum(last + 1, len(sums) - 1)
    thresholds: Float64Array = 0.5 * (ordered[last, labels] + ordered[after, labels])
    return np.where(after == last, np.nextafter(thresholds, -np.inf), thresholds)


def best_shift(
    logits: Float64Array, present: BoolArray, possible: BoolArray, overlap: str, measure: str
) -> float:
    """Return the shift with which an expected-overlap rule reaches most."""
    if len(logits) == 0 or not possible.any():
        return 0.0
    columns, ordered = logits[:, possible], np.sort(logits[:, possible], axis=1)[:, ::-1]
    predicted, values = np.zeros_like(present), []
    for shift in SHIFTS:
        limits = ExpectedRule(overlap, shift).limits(ordered)
        predicted[:, possible] = columns > limits[:, None]
        values.append(value_of_sets(measure, predicted, present))
    return SHIFTS[int(np.argmax(values))]
