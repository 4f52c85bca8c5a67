"""From margins to probabilities: a distribution over the levels that can be trusted.

For every level, the probability that a rating is above it is a logistic function of all margins,
clipped, of how often the user gave and the item got ratings above each level, and of both biases.
The weights are fitted to ratings that the margins were not learned from; the probabilities are made
to fall from level to level, and their differences are the distribution.  It is made unimodal unless
those ratings say otherwise: where many users never give half stars, dips at these are real.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import block_diag

from marginmf._utils.saved import Optional, floats, saved
from marginmf._utils.types import BoolArray, Float64Array, FloatArray, IntArray
from marginmf.backends.threads import even_bounds, one_blas_thread, run
from marginmf.ratings.fitting.fallback import LevelFrequencies

#: The ridge penalty on the weights, of features scaled to unit variance.
RIDGE = 10.0
#: Features that vary less than this share of the one that varies most are not magnified further.
HARDLY = 0.02
#: Features are clipped at this quantile and at one minus it.
RARE = 0.001
#: With more levels than this, a level looks at its own margin and at the means of those below and
#: above it, not at every margin: there would be too many weights.
MANY_LEVELS = 16
#: Added to the probability of every level, so that none is zero.
LEAST = 1e-4
#: Distributions are unimodal unless that costs log loss: more than this many standard errors.
CERTAIN = 2.0
#: About what the probabilities of one pair take, in multiplications: mostly exponentials.
PAIR_WORK = 100
#: The most numbers to fit to: more ratings change the weights less than they vary by chance.
FITTED = 3_000_000


@saved
@dataclass(frozen=True, eq=False)
class Calibrator:
    """Logistic functions of features: one for each level but the last.

    Weights tell what each feature adds to the log-odds of "above the level".  Features are clipped
    to the bounds that nearly all had when the weights were fitted: margins may be infinite.  If
    unimodal, levels become less probable with their distance from the most probable one.
    """

    _saved: ClassVar[dict[str, Any]] = {
        "weights": floats("stages", "features"),
        "intercepts": floats("stages"),
        "bounds": floats("2", "features"),
        "unimodal": Optional(bool),
    }
    weights: Float64Array
    intercepts: Float64Array
    bounds: Float64Array
    #: Models that were saved before there was a choice are not.
    unimodal: bool = False

    @classmethod
    def fit(
        cls, features: FloatArray, codes: IntArray, n_levels: int, noise: Float64Array | None = None
    ) -> "Calibrator":
        """Fit to the levels of ratings, and to features that were not learned from these.

        The noise is the covariance of what makes these features noisier than those of new ratings.
        """
        step = -(-features.size // FITTED)
        features, codes = features[::step].astype(np.float64), codes[::step]
        bounds = np.array([_usual_range(column) for column in features.T]).T
        clipped: Float64Array = np.clip(features, *bounds).astype(np.float64)
        features, left = clipped, None
        if noise is not None:
            features, left = without_noise(clipped, noise)
        centre, scales = features.mean(axis=0), features.std(axis=0)
        # A feature that hardly varies says little, however much its tiny variations are magnified.
        scales = np.maximum(scales, max(HARDLY * scales.max(), 1e-9))
        standard = (features - centre) / scales
        weights, intercepts = np.zeros((n_levels - 1, features.shape[1])), np.zeros(n_levels - 1)
        for q in range(n_levels - 1):
            seen = _view(q, n_levels, features.shape[1])
            own = standard if seen is None else standard @ seen
            weight, intercepts[q] = _logistic(own, codes > q)
            weights[q] = weight if seen is None else seen @ weight
        unimodal = _costs_nothing(standard, weights, intercepts, codes)
        weights /= scales
        intercepts -= weights @ centre
        if left is not None:
            # The mean of logistic functions of z + noise of variance v is about that of
            # z / sqrt(1 + pi v / 8) (MacKay, 1992): this much was lost to what is not known.
            gained = np.sqrt(1.0 + np.pi / 8 * np.einsum("qk,kl,ql->q", weights, left, weights))
            weights, intercepts = gained[:, None] * weights, gained * intercepts
        return cls(weights, intercepts, bounds, unimodal)

    def above_pairs(
        self,
        margins: FloatArray,
        frequencies: LevelFrequencies,
        users: IntArray,
        items: IntArray,
        n_threads: int = 1,
    ) -> Float64Array:
        """Return the probability of a rating above each level, for pairs of known users and items.

        Margins are the first of the features.  What a user or an item adds to the log-odds is
        computed once and looked up.  The answer for a pair does not depend on the other pairs.
        """
        n_margins, n_steps = margins.shape[1], len(self.intercepts)
        user_table, user_rows = frequencies.features_table("user", users)
        item_table, item_rows = frequencies.features_table("item", items)
        by_user, by_item = side_columns(n_margins, n_steps, user_table.shape[1] > n_steps)
        arguments = (
            np.ascontiguousarray(margins),
            np.ascontiguousarray(self.bounds[:, :n_margins]),
            np.ascontiguousarray(self.weights[:, :n_margins]),
            self.intercepts + self.part(user_table, by_user),
            user_rows,
            self.part(item_table, by_item),
            item_rows,
        )
        return _above(arguments, self.unimodal, n_threads)

    def part(self, features: FloatArray, columns: IntArray) -> Float64Array:
        """Return what some of the features, alone, add to the log-odds."""
        clipped = np.clip(features, *self.bounds[:, columns])
        # Not a matrix product: BLAS rounds a row by what else there is.
        return np.einsum("nk,qk->nq", clipped, self.weights[:, columns])


def _above(arguments: Any, unimodal: bool, n_threads: int = 1) -> Float64Array:
    """Return the probability of a rating above each level: what `chances_above` makes of pairs."""
    # Here, so that Numba is loaded when it is first needed and not before.
    from marginmf.backends.cpu.ranking import chances_above

    n_pairs, n_steps = len(arguments[0]), len(arguments[2])
    above = np.empty((n_pairs, n_steps))
    out = unimodal, *certainty(n_steps), above

    def task(start: int, stop: int) -> None:
        chances_above(start, stop, *arguments, *out)

    run(task, even_bounds(n_pairs, n_threads, PAIR_WORK), n_threads)
    return above


def _costs_nothing(
    features: Float64Array, weights: Float64Array, intercepts: Float64Array, codes: IntArray
) -> bool:
    """Whether these ratings are about as probable, or more, once distributions are unimodal."""
    no_bounds = np.array([[-np.inf], [np.inf]]) * np.ones(features.shape[1])
    nothing, rows = np.zeros((1, len(intercepts))), np.zeros(len(codes), np.int64)
    features = np.ascontiguousarray(features)
    arguments = (features, no_bounds, weights, intercepts[None], rows, nothing, rows)
    free, unimodal = (distribution_of(_above(arguments, which)) for which in (False, True))
    own = np.arange(len(codes)), codes
    cost = np.log(free[own]) - np.log(unimodal[own])
    return bool(cost.mean() <= CERTAIN * cost.std() / np.sqrt(len(cost)))


def features_of(
    margins: Sequence[FloatArray], frequencies: LevelFrequencies, users: IntArray, items: IntArray
) -> FloatArray:
    """Return margins, the log-odds of users' and items' own frequencies, and their biases."""
    n_steps = frequencies.by_user.shape[1] - 1
    sides = frequencies.side_features("user", users), frequencies.side_features("item", items)
    # The biases last: all that comes before them has a column for each level but the last.
    odds, biases = [side[:, :n_steps] for side in sides], [side[:, n_steps:] for side in sides]
    return np.hstack([*margins, *odds, *biases])


def side_columns(n_margins: int, n_steps: int, biases: bool) -> tuple[IntArray, IntArray]:
    """Return which of the features of `features_of` are the users' own, and the items'.

    >>> side_columns(n_margins=4, n_steps=2, biases=True)
    (array([4, 5, 8]), array([6, 7, 9]))
    """
    first = n_margins + n_steps
    by_user, by_item = np.arange(n_margins, first), np.arange(first, first + n_steps)
    if not biases:
        return by_user, by_item
    last = first + n_steps
    return np.append(by_user, last), np.append(by_item, last + 1)


def without_noise(features: Float64Array, noise: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the best linear guess of features without their noise, and the guess's covariance.

    Let the features be ``x + e`` with covariance C, where the noise ``e`` has covariance D and is
    independent of ``x``.  Weights fitted to ``x + e`` are too small for ``x``; those fitted to
    ``E[x | x + e] = mean + (C - D) C^-1 (x + e - mean)`` are not (regression calibration).  What
    remains unknown of ``x`` has covariance ``(C - D) - (C - D) C^-1 (C - D)``.
    """
    centre = features.mean(axis=0)
    sizes, axes = np.linalg.eigh(np.atleast_2d(np.cov(features, rowvar=False)))
    kept = sizes > 1e-9 * sizes.max()  # features may depend on one another
    to_unit, from_unit = axes[:, kept] / np.sqrt(sizes[kept]), axes[:, kept] * np.sqrt(sizes[kept])
    # Which share of each direction is not noise; an estimated D may ask for less than nothing.
    shares, directions = np.linalg.eigh(np.eye(kept.sum()) - to_unit.T @ noise @ to_unit)
    shares = np.clip(shares, 0.0, 1.0)
    to_unit, from_unit = to_unit @ directions, from_unit @ directions
    guess = centre + ((features - centre) @ to_unit * shares) @ from_unit.T
    return guess, (from_unit * (shares * (1.0 - shares))) @ from_unit.T


def distribution_of(above: Float64Array) -> Float64Array:
    """Return the probability of each level from those of being above each but the last."""
    n_pairs, n_steps = above.shape
    distribution = np.empty((n_pairs, n_steps + 1))
    # Level after level: long columns take NumPy a fraction of the time of many short rows.
    distribution[:, 0] = 1.0 - above[:, 0]
    for q in range(1, n_steps):
        np.subtract(above[:, q - 1], above[:, q], out=distribution[:, q])
    distribution[:, n_steps] = above[:, n_steps - 1]
    return distribution


def make_possible(distribution: Float64Array) -> Float64Array:
    """Return the distribution with a little of each level, so that none is impossible."""
    return (distribution + LEAST) / (1.0 + LEAST * distribution.shape[1])


def certainty(n_steps: int) -> tuple[float, Float64Array]:
    """Return the factor and the shift that draw probabilities together: no level is impossible."""
    shrink = 1.0 / (1.0 + LEAST * (n_steps + 1))
    return shrink, shrink * LEAST * np.arange(n_steps, 0, -1, dtype=np.float64)


def _usual_range(column: Float64Array) -> Float64Array:
    """Return the least and the most of nearly all finite values."""
    finite = column[np.isfinite(column)]
    return np.quantile(finite, [RARE, 1 - RARE]) if len(finite) else np.zeros(2)


def _view(q: int, n_levels: int, n_features: int) -> Float64Array | None:
    """Return which means of features level ``q`` looks at; None for each feature by itself."""
    if n_levels <= MANY_LEVELS:
        return None
    own = np.zeros((n_levels - 1, 3))
    own[q, 0] = 1.0
    own[:q, 1] = 1.0 / max(q, 1)
    own[q + 1 :, 2] = 1.0 / max(n_levels - 2 - q, 1)
    n_blocks, n_single = divmod(n_features, n_levels - 1)
    return block_diag(np.kron(np.eye(n_blocks), own), np.eye(n_single))


def _logistic(features: Float64Array, above: BoolArray) -> tuple[Float64Array, float]:
    from sklearn.linear_model import LogisticRegression

    n, n_above = len(above), int(np.count_nonzero(above))
    if n_above in (0, n):  # one answer only: say so, but not for certain
        return np.zeros(features.shape[1]), float(np.log((n_above + 0.5) / (n - n_above + 0.5)))
    # The matrices are long and narrow: more threads than one would only wait for each other.
    with one_blas_thread():
        model = LogisticRegression(C=1.0 / RIDGE, solver="newton-cholesky").fit(features, above)
    return model.coef_[0], float(model.intercept_[0])


def count_above(margins: FloatArray) -> IntArray:
    """Return how many levels lie below the score, even where thresholds are out of order."""
    return np.count_nonzero(margins > 0, axis=1)


def first_below(margins: FloatArray) -> IntArray:
    """Return the first level that the score is not above, the last level if none (HMF)."""
    below = margins < 0
    return np.where(below.any(axis=1), below.argmax(axis=1), margins.shape[1])


def answer(output: str, distribution: Float64Array, levels: Float64Array) -> Float64Array:
    """Return the median, the mode or the mean of distributions over the levels; NaN stays NaN."""
    if output == "mean":
        # Not a matrix product: BLAS rounds a row by what else there is.
        return np.einsum("nq,q->n", distribution, levels)
    if output == "median":
        index = np.count_nonzero(distribution[:, :-1].cumsum(axis=1) < 0.5, axis=1)
    else:
        index = distribution.argmax(axis=1)
    return np.where(np.isnan(distribution[:, 0]), np.nan, levels[index])
