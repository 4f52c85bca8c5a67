"""Sentences for parameters of estimators that cannot be used."""

from numbers import Integral, Real
from typing import Any

import numpy as np

#: The largest number that is not infinite.
MOST = float(np.finfo(np.float64).max)


def check_number(
    estimator: Any, name: str, kind: type[int] | type[float], least: float, most: float = MOST
) -> None:
    """Raise ValueError unless a parameter is a number of that kind within bounds."""
    value = getattr(estimator, name)
    number = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if not (number and least <= value <= most):
        wanted = "a whole number" if kind is int else "a number"
        bound = f" >= {least:g}" if np.isfinite(least) else ""
        raise ValueError(f"{name}={value!r} must be {wanted}{bound}.")
