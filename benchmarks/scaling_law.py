"""Power laws through measurements, and the memory that a fit may take: pure arithmetic."""

import math
from collections.abc import Sequence
from typing import NamedTuple

#: A rating as it is given: user and item code and the rating, four bytes each.
BYTES_PER_RATING = 12


class Law(NamedTuple):
    """``y = scale * x ** exponent``, and how far the points lie from it at most, as a factor."""

    exponent: float
    scale: float
    error: float


def fit_law(x: Sequence[float], y: Sequence[float]) -> Law:
    """Fit a power law by least squares on the logarithms.

    >>> law = fit_law([1, 10, 100], [2, 20, 200])
    >>> round(law.exponent, 6), round(law.scale, 6), round(law.error, 6)
    (1.0, 2.0, 1.0)
    """
    if len(x) != len(y):
        raise ValueError(f"There are {len(x)} places but {len(y)} measurements.")
    if len(set(x)) < 2:
        raise ValueError("A law needs measurements at two different places at least.")
    for value in (*x, *y):
        if not value > 0:
            raise ValueError(f"A power law goes through positive numbers alone, not {value!r}.")
    across, up = [math.log(value) for value in x], [math.log(value) for value in y]
    middle, height = sum(across) / len(x), sum(up) / len(y)
    products = ((a - middle) * (b - height) for a, b in zip(across, up, strict=True))
    exponent = sum(products) / sum((a - middle) ** 2 for a in across)
    offset = height - exponent * middle
    misses = (abs(b - offset - exponent * a) for a, b in zip(across, up, strict=True))
    return Law(exponent, math.exp(offset), math.exp(max(misses)))


def upper_half(x: Sequence[float], y: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the points in the upper half of the range of x, in logarithms.

    Costs that do not grow bend the lower end of a law; they no longer matter here.

    >>> upper_half([1, 10, 100, 1000, 10_000], [5, 5, 6, 7, 8])
    ([100, 1000, 10000], [6, 7, 8])
    """
    middle = math.sqrt(min(x) * max(x)) * (1 - 1e-9)
    kept = [(a, b) for a, b in zip(x, y, strict=True) if a >= middle]
    return [a for a, _ in kept], [b for _, b in kept]


def needed_bytes(n_ratings: int, parameter_bytes: int) -> int:
    """Return the bytes that there must be: the ratings as given and the parameters as learned.

    >>> needed_bytes(1000, 8000)
    20000
    """
    return BYTES_PER_RATING * n_ratings + parameter_bytes


def memory_ratio(peak_bytes: int, n_ratings: int, parameter_bytes: int) -> float:
    """Return how many times the bytes that there must be a fit takes.

    >>> memory_ratio(50_000, 1000, 8000)
    2.5
    """
    return peak_bytes / needed_bytes(n_ratings, parameter_bytes)
