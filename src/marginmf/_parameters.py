"""Parameters of estimators: sentences for those that cannot be used, copies with them alone."""

from collections.abc import Collection, Sequence
from copy import copy
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

Estimator = TypeVar("Estimator")

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


def check_n_jobs(estimator: Any) -> None:
    """Raise ValueError unless ``n_jobs`` is None or a whole number."""
    if estimator.n_jobs is not None:
        check_number(estimator, "n_jobs", int, -np.inf)


def check_callbacks(estimator: Any) -> None:
    """Raise ValueError unless ``callbacks`` are functions."""
    callbacks = estimator.callbacks
    if not (isinstance(callbacks, Sequence) and all(map(callable, callbacks))):
        raise ValueError(f"callbacks={callbacks!r} must be a list of functions.")


def check_choice(estimator: Any, name: str, known: Collection[str]) -> None:
    """Raise ValueError unless a parameter is one of those known."""
    value = getattr(estimator, name)
    if value not in known:
        raise ValueError(
            f"{name}={value!r} is not known. Choose one of {', '.join(map(repr, known))}."
        )


def unfitted(estimator: Estimator, private: Collection[str] = ()) -> Estimator:
    """Return a copy that shares the parameters, and has nothing of what was learned.

    Parameters
    ----------
    estimator : estimator
        Fitted or not.
    private : collection of str
        What is learned, beside the attributes that end in an underscore.
    """
    bare: Any = copy(estimator)
    for name in set(vars(bare)) - set(bare.get_params(deep=False)):
        if name.endswith("_") or name in private:
            delattr(bare, name)
    return bare  # type: ignore[no-any-return]
