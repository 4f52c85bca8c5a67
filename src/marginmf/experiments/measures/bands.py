"""The weight of the penalty that brings the training error into a given band."""

import math
from collections.abc import Callable

from sklearn.base import clone

from marginmf.ratings import Ratings
from marginmf.ratings.estimator import RatingsEstimator

#: Weights that leave everything to the data, and nothing.
WEAKEST, STRONGEST = 0.01, 1000.0
#: Halving the logarithm of the range so often leaves steps of one per cent.
MOST_FITS = 10


def fit_into_band(
    estimator: RatingsEstimator,
    ratings: Ratings,
    error: Callable[[RatingsEstimator], float],
    low: float,
    high: float,
) -> RatingsEstimator:
    """Return the estimator fitted with a weight whose training error is between low and high.

    The error grows with the weight, so halving finds it.  Where even the weakest penalty leaves
    more, as with few factors, the fit nearest to the band is returned.
    """
    begin, end = math.log(WEAKEST), math.log(STRONGEST)
    nearest: RatingsEstimator | None = None
    distance = math.inf
    for _ in range(MOST_FITS):
        middle = (begin + end) / 2
        model = clone(estimator).set_params(reg=math.exp(middle)).fit(ratings)
        found = error(model)
        off = max(low - found, found - high, 0.0)
        if nearest is None or off < distance:
            nearest, distance = model, off
        if off == 0:
            break
        begin, end = (middle, end) if found < low else (begin, middle)
    assert nearest is not None
    return nearest
