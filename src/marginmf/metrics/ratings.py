"""How far predicted ratings are from the true ones.

Each function takes the true and the predicted ratings, in that order.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from marginmf._utils.types import Float64Array


def mean_absolute_error(true: Any, predicted: Any) -> float:
    """Return the mean of ``|y - p|`` (MAE).

    >>> mean_absolute_error([1, 5, 3], [2, 5, 5])
    1.0
    """
    y, p = _checked(true, predicted)
    return float(np.abs(y - p).mean())


def normalised_mean_absolute_error(true: Any, predicted: Any, levels: Any) -> float:
    """Return the MAE divided by that of guessing at random (NMAE): 1 is no better than chance.

    >>> round(normalised_mean_absolute_error([1, 5], [2, 5], levels=[1, 2, 3, 4, 5]), 4)
    0.3125
    """
    return mean_absolute_error(true, predicted) / chance_error(levels)


def chance_error(levels: Any) -> float:
    """Return the mean distance of two levels drawn independently and uniformly.

    >>> chance_error([1, 2, 3, 4, 5]), round(chance_error([1, 2, 3, 4, 5, 6]), 4)
    (1.6, 1.9444)
    """
    scale = np.unique(np.asarray(levels, np.float64))
    if len(scale) < 2 or not np.isfinite(scale).all():
        raise ValueError("A scale needs at least two different levels, all of them finite.")
    return float(np.abs(scale[:, None] - scale).mean())


def root_mean_squared_error(true: Any, predicted: Any) -> float:
    """Return the root of the mean of ``(y - p)^2`` (RMSE).

    >>> root_mean_squared_error([1, 5], [1, 3]) == 2**0.5
    True
    """
    y, p = _checked(true, predicted)
    return float(np.sqrt(np.square(y - p).mean()))


def zero_one_error(true: Any, predicted: Any) -> float:
    """Return the share of predictions that are not exactly right (ZOE).

    >>> zero_one_error([1, 2, 3, 4], [1, 2, 3, 5])
    0.25
    """
    y, p = _checked(true, predicted)
    return float((y != p).mean())


def frobenius_relative_error(true: Any, predicted: Any) -> float:
    """Return ``sqrt(sum (y - p)^2 / sum y^2)`` (FRE).

    >>> frobenius_relative_error([3, 4], [0, 0])
    1.0
    """
    y, p = _checked(true, predicted)
    size = np.square(y).sum()
    if size == 0:
        raise ValueError("Every true rating is 0, so an error relative to them has no meaning.")
    return float(np.sqrt(np.square(y - p).sum() / size))


#: The metrics that need nothing but the ratings, by their usual abbreviation.
METRICS: Mapping[str, Callable[[Any, Any], float]] = {
    "mae": mean_absolute_error,
    "zero_one": zero_one_error,
    "rmse": root_mean_squared_error,
    "fre": frobenius_relative_error,
}


def ratings_report(true: Any, predicted: Any, levels: Any = None) -> dict[str, float]:
    """Return every metric by its abbreviation; NMAE too where the scale is given.

    FRE is NaN where every true rating is 0: an error relative to them has no meaning.

    >>> report = ratings_report([1, 2, 3], [1, 2, 5], levels=[1, 2, 3, 4, 5])
    >>> sorted(report)
    ['fre', 'mae', 'nmae', 'rmse', 'zero_one']
    """
    report = {
        name: metric(true, predicted) if name != "fre" or np.any(true) else float("nan")
        for name, metric in METRICS.items()
    }
    if levels is not None:
        report["nmae"] = normalised_mean_absolute_error(true, predicted, levels)
    return report


def _checked(true: Any, predicted: Any) -> tuple[Float64Array, Float64Array]:
    y, p = np.asarray(true, np.float64), np.asarray(predicted, np.float64)
    if y.shape != p.shape or y.ndim != 1:
        raise ValueError(
            f"True and predicted ratings must be two columns of one length, but their shapes are "
            f"{y.shape} and {p.shape}."
        )
    if len(y) == 0:
        raise ValueError("There are no ratings to measure an error on.")
    for name, values in (("true", y), ("predicted", p)):
        faulty = ~np.isfinite(values)
        if faulty.any():
            row = int(np.argmax(faulty))
            raise ValueError(f"The {name} rating in row {row} is {values[row]}, not a number.")
    return y, p
