"""From margins to probabilities: a distribution over the levels that can be trusted.

For every level ``q``, the probability that a rating is above it is a logistic function of all the
margins, clipped, and of how often the user gave and the item got ratings above each level (as
log-odds).  The weights are fitted to ratings that the margins were not learned from.  The
probabilities are made to fall with ``q``, and their differences are the distribution.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from marginmf._typing import BoolArray, Float64Array, FloatArray, IntArray
from marginmf.backends.threads import one_blas_thread
from marginmf.ratings.fallback import LevelFrequencies

#: The ridge penalty on the weights, of features scaled to unit variance.
RIDGE = 10.0

#: Features that vary less than this share of the one that varies most are not magnified further.
HARDLY = 0.02

#: This share of the features' values, on either side, is not told apart.
RARE = 0.001

#: With more levels than this, a level looks at its own margin and at the means of those below and
#: above it, not at every margin: there would be too many weights.
MANY_LEVELS = 16

#: No level is ever impossible.
LEAST = 1e-4

#: The most numbers to hold at once, and to fit to.
BLOCK = 10_000_000


@dataclass(frozen=True, eq=False)
class Calibrator:
    """Logistic functions of features: one for each level but the last.

    Parameters
    ----------
    weights : array of shape (n_levels - 1, n_features)
        What each feature adds to the log-odds of "above the level".
    intercepts : array of shape (n_levels - 1,)
        The log-odds where all features are zero.
    bounds : array of shape (2, n_features)
        Features are clipped to these, the least and the most that nearly all had when the weights
        were fitted: margins may be infinite, and weights say nothing of what was not seen.
    """

    weights: Float64Array
    intercepts: Float64Array
    bounds: Float64Array

    @classmethod
    def fit(cls, features: FloatArray, codes: IntArray, n_levels: int) -> "Calibrator":
        """Fit to features and to the levels (as codes) that they belong to."""
        step = -(-features.size // BLOCK)
        features, codes = features[::step].astype(np.float64), codes[::step]
        bounds = np.array([_usual_range(column) for column in features.T]).T
        features = np.clip(features, *bounds)
        centre, scales = features.mean(axis=0), features.std(axis=0)
        # A feature that hardly varies says little, however much its tiny variations are magnified.
        scales = np.maximum(scales, max(HARDLY * scales.max(), 1e-9))
        standard = (features - centre) / scales
        weights, intercepts = np.zeros((n_levels - 1, features.shape[1])), np.zeros(n_levels - 1)
        for q in range(n_levels - 1):
            seen = _view(q, n_levels, features.shape[1])
            own = standard if seen is None else standard @ seen
            weight, intercepts[q] = _logistic(own, codes > q)
            weights[q] = (weight if seen is None else seen @ weight) / scales
        return cls(weights, intercepts - weights @ centre, bounds)

    def above(self, features: FloatArray) -> Float64Array:
        """Return the probability of a rating above each level, falling from level to level."""
        n, step = len(features), max(1, BLOCK // max(1, features.shape[1]))
        probabilities = np.empty((n, len(self.intercepts)))
        for begin in range(0, n, step):
            block = np.clip(features[begin : begin + step], *self.bounds)
            probabilities[begin : begin + step] = falling(
                # Not a matrix product: BLAS rounds a row by what else is in the block.
                expit(np.einsum("nk,qk->nq", block, self.weights) + self.intercepts)
            )
        return never_certain(probabilities)

    def part(self, features: FloatArray, place: slice) -> Float64Array:
        """Return what some of the features, alone, add to the log-odds."""
        clipped = np.clip(features, *self.bounds[:, place])
        added: Float64Array = np.einsum("nk,qk->nq", clipped, self.weights[:, place])
        return added


def features_of(
    margins: Sequence[FloatArray],
    frequencies: LevelFrequencies,
    users: IntArray,
    items: IntArray,
) -> FloatArray:
    """Return blocks of margins, and the log-odds of the users' and the items' own frequencies."""
    nobody = np.full(len(users), -1)
    odds = [frequencies.log_odds(users, nobody), frequencies.log_odds(nobody, items)]
    features: FloatArray = np.hstack([*margins, *odds])
    return features


def falling(above: Float64Array) -> Float64Array:
    """Return the probabilities with those that rise along a row held down.

    A rating above a level is above all lower levels too.

    >>> falling(np.array([[0.9, 0.4, 0.6, 0.1]]))
    array([[0.9, 0.4, 0.4, 0.1]])
    """
    return np.minimum.accumulate(above, axis=1)


def distribution_of(above: Float64Array) -> Float64Array:
    """Return the probability of each level from those of being above each but the last.

    >>> distribution_of(np.array([[0.9, 0.5]])).round(2)
    array([[0.1, 0.4, 0.5]])
    """
    return -np.diff(above, axis=1, prepend=1.0, append=0.0)


def never_certain(above: Float64Array) -> Float64Array:
    """Return the probabilities drawn a little together, so that no level is impossible.

    >>> bool((distribution_of(never_certain(np.array([[1.0, 0.5, 0.5]]))) > 0).all())
    True
    """
    shrink, shift = certainty(above.shape[1])
    together: Float64Array = shrink * above + shift
    return together


def certainty(n_steps: int) -> tuple[float, Float64Array]:
    """Return what `never_certain` multiplies probabilities with, and what it adds."""
    shrink = 1.0 / (1.0 + LEAST * (n_steps + 1))
    return shrink, shrink * LEAST * np.arange(n_steps, 0, -1, dtype=np.float64)


def _usual_range(column: Float64Array) -> Float64Array:
    """Return the least and the most of nearly all finite values."""
    finite = column[np.isfinite(column)]
    ends: Float64Array = np.quantile(finite, [RARE, 1 - RARE]) if len(finite) else np.zeros(2)
    return ends


def _view(q: int, n_levels: int, n_features: int) -> Float64Array | None:
    """Return which means of features level ``q`` looks at; None for each feature by itself."""
    if n_levels <= MANY_LEVELS:
        return None
    own = np.zeros((n_levels - 1, 3))
    own[q, 0] = 1.0
    own[:q, 1] = 1.0 / max(q, 1)
    own[q + 1 :, 2] = 1.0 / max(n_levels - 2 - q, 1)
    blocks: Float64Array = np.kron(np.eye(n_features // (n_levels - 1)), own).astype(np.float64)
    return blocks


def _logistic(features: Float64Array, above: BoolArray) -> tuple[Float64Array, float]:
    """Return the weights and the intercept of a penalised logistic regression."""
    from sklearn.linear_model import LogisticRegression

    n, n_above = len(above), int(np.count_nonzero(above))
    if n_above in (0, n):  # one answer only: say so, but not for certain
        return np.zeros(features.shape[1]), float(np.log((n_above + 0.5) / (n - n_above + 0.5)))
    # The matrices are long and narrow: more threads than one would only wait for each other.
    with one_blas_thread():
        model = LogisticRegression(C=1.0 / RIDGE, solver="newton-cholesky").fit(features, above)
    return model.coef_[0], float(model.intercept_[0])
