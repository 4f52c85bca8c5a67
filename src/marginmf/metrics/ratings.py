"""Metrics of predicted ratings and distributions over the levels; true ratings come first."""

from typing import Any

import numpy as np

from marginmf._utils.types import Float64Array, IntArray


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


def log_loss(true: Any, distribution: Any, levels: Any) -> float:
    """Return the mean of ``-log p`` of the levels that were right: lower is better.

    Parameters
    ----------
    true : sequence of float
        The true ratings.
    distribution : array of shape (n_ratings, n_levels)
        The probability of every level, as `predict_proba` gives it.
    levels : sequence of float
        The scale, ascending: ``model.levels_``.

    Examples
    --------
    >>> round(log_loss([1, 2], [[0.5, 0.5], [0.25, 0.75]], levels=[1, 2]), 4)
    0.4904
    """
    codes, p = _checked_levels(true, distribution, levels)
    with np.errstate(divide="ignore"):  # what was held to be impossible has an infinite loss
        return float(-np.log(p[np.arange(len(codes)), codes]).mean())


def expected_calibration_error(
    true: Any, distribution: Any, levels: Any, n_bins: int = 10
) -> float:
    """Return how far the probability of the most probable level is from how often it is right.

    Ratings are put into bins of equal width by that probability, and the distances of the bins are
    averaged over the ratings (Guo et al., 2017).

    Parameters
    ----------
    true, distribution, levels
        As in `log_loss`.
    n_bins : int
        How many bins.

    Examples
    --------
    >>> distribution = [[0.8, 0.2]] * 10
    >>> round(expected_calibration_error([1] * 8 + [2] * 2, distribution, levels=[1, 2]), 4)
    0.0
    """
    codes, p = _checked_levels(true, distribution, levels)
    claimed, right = p.max(axis=1), p.argmax(axis=1) == codes
    bins = np.minimum((claimed * n_bins).astype(int), n_bins - 1)
    gaps = np.bincount(bins, right, n_bins) - np.bincount(bins, claimed, n_bins)
    return float(np.abs(gaps).sum() / len(codes))


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


def _checked_levels(true: Any, distribution: Any, levels: Any) -> tuple[IntArray, Float64Array]:
    y, p = np.asarray(true, np.float64), np.asarray(distribution, np.float64)
    scale = np.asarray(levels, np.float64)
    if y.ndim != 1 or p.shape != (len(y), len(scale)):
        raise ValueError(
            f"{y.shape} ratings on a scale of {len(scale)} levels need a distribution of the shape "
            f"{(len(y), len(scale))}, but it has {p.shape}."
        )
    if len(y) == 0:
        raise ValueError("There are no ratings to measure an error on.")
    sums_to_one = np.isclose(p.sum(axis=1), 1.0, atol=1e-6)
    if not sums_to_one.all():
        row = int(np.argmin(sums_to_one))
        raise ValueError(f"The probabilities in row {row} do not add up to one: {p[row]}.")
    if (p < 0).any():
        row = int(np.argmax((p < 0).any(axis=1)))
        raise ValueError(f"The probabilities in row {row} are not all >= 0: {p[row]}.")
    codes = np.minimum(np.searchsorted(scale, y), len(scale) - 1)
    strange = scale[codes] != y
    if strange.any():
        row = int(np.argmax(strange))
        raise ValueError(f"The rating {y[row]:g} in row {row} is not one of the levels.")
    return codes, p
