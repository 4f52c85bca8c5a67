"""What callers give: checks, suggestions, warnings, thread counts, unfitted copies."""

import math
import sys
import warnings
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from difflib import SequenceMatcher, get_close_matches
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from marginmf._utils.printable import LONGEST_MESSAGE, printable

Estimator = TypeVar("Estimator")

#: The largest number that is not infinite.
MOST = float(np.finfo(np.float64).max)
#: More threads than any machine has cores; a model file or an error in typing may ask for more.
MOST_THREADS = 1024
#: Larger features are refused: their squares, summed over rows, would overflow.
LARGEST = 1e100
#: Larger ratings are refused: float32, in which most methods compute, ends at 3e38.
LARGEST_RATING = 1e30


def check_number(
    estimator: Any,
    name: str,
    kind: type[int] | type[float],
    least: float,
    most: float = MOST,
    word: str | None = None,
) -> None:
    """Raise ValueError unless a parameter is a number of that kind within bounds, or the word."""
    value = getattr(estimator, name)
    if word is not None and isinstance(value, str) and value == word:
        return
    number = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    # As a number of Python: one of float32 would be compared with bounds in float32.
    plain: Any = (int if kind is int else float)(value) if number else value
    if not (number and least <= plain <= most):
        finite = "finite " if number and abs(plain) == np.inf else ""
        wanted = "a whole number" if kind is int else f"a {finite}number"
        bound = "" if least <= -MOST else " > 0" if 0 < least < 1e-300 else f" >= {least:g}"
        if most < MOST:
            bound += f"{' and' if bound else ''} <= {most:g}"
        instead = "" if word is None else f", or {word!r}"
        raise ValueError(f"{name}={value!r} must be {wanted}{bound}{instead}.")


def check_flag(estimator: Any, *names: str) -> None:
    """Raise ValueError unless parameters are True or False."""
    for name in names:
        value: Any = getattr(estimator, name)
        if value not in (False, True):
            raise ValueError(f"{name}={value!r} must be True or False.")


def check_size(estimator: Any, name: str) -> None:
    """Raise ValueError unless a parameter is a whole number >= 1 or a share, a float in (0, 1]."""
    value: Any = getattr(estimator, name)
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and (int(value) >= 1 if isinstance(value, Integral) else 0 < value <= 1)):
        raise ValueError(
            f"{name}={value!r} must be a whole number >= 1, or a share of the labels: a float "
            "above 0 and at most 1.0."
        )


def resolve_size(size: float, n: int) -> int:
    """Return how many of n things a whole number or a share stands for: at most all of them.

    >>> resolve_size(3, 10), resolve_size(0.7, 10), resolve_size(0.11, 10), resolve_size(99, 10)
    (3, 7, 2, 10)
    """
    if isinstance(size, Integral):
        return min(int(size), n)
    # Rounded first, because 0.7 * 10 is a little more than 7.
    return min(math.ceil(round(size * n, 9)), n)


def check_n_jobs(estimator: Any) -> None:
    """Raise ValueError unless ``n_jobs`` is None or a whole number but 0, and not enormous."""
    if estimator.n_jobs is not None:
        check_number(estimator, "n_jobs", int, -np.inf, MOST_THREADS)
        if estimator.n_jobs == 0:
            raise ValueError(
                "n_jobs=0 must be a number of threads, -1 for all cores, or None for one."
            )


def check_verbose(estimator: Any) -> None:
    """Raise ValueError unless ``verbose``, if there is one, is True, False or a whole number."""
    if getattr(estimator, "verbose", 0) not in (False, True):
        check_number(estimator, "verbose", int, 0)


def check_callbacks(estimator: Any) -> None:
    """Raise ValueError unless ``callbacks`` are functions."""
    callbacks = estimator.callbacks
    if not (isinstance(callbacks, Sequence) and all(map(callable, callbacks))):
        raise ValueError(f"callbacks={callbacks!r} must be a list of functions.")


def check_choice(estimator: Any, name: str, known: Collection[str]) -> None:
    """Raise ValueError unless a parameter of an estimator is one of those known."""
    check_option(name, getattr(estimator, name), known)


def check_option(name: str, value: Any, known: Collection[Any]) -> None:
    """Raise ValueError unless an argument is one of those known."""
    # An array would be compared with each of those known number by number.
    if isinstance(value, np.ndarray) or value not in known:
        raise ValueError(
            f"{name}={value!r} is not known. Choose one of {', '.join(map(repr, known))}."
        )


def check_whole(name: str, value: Any, least: int = 1) -> int:
    """Return an argument as an int, or raise ValueError if it is not a whole number >= least."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number >= {least}.")
    return int(value)


def unfitted(estimator: Estimator, private: Collection[str] = ()) -> Estimator:
    """Return a copy with the same parameters, and without what was learned.

    That is what ends in an underscore, and the private attributes that are named.  Parameters are
    numbers of Python in it.
    """
    bare: Any = copy(estimator)
    for name in set(vars(bare)) - set(bare.get_params(deep=False)):
        if name.endswith("_") or name in private:
            delattr(bare, name)
    use_plain_numbers(bare)
    return bare


def use_plain_numbers(estimator: Any) -> None:
    """Make numbers of Python of parameters that are NumPy's: those of few bits overflow.

    >>> from sklearn.linear_model import Ridge
    >>> ridge = Ridge(alpha=np.float32(2), max_iter=np.uint8(200), positive=np.True_)
    >>> use_plain_numbers(ridge)
    >>> ridge
    Ridge(alpha=2.0, max_iter=200, positive=True)
    """
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
            setattr(estimator, name, value.item())


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return ``" Did you mean ...?"`` with the known name that is nearest, or nothing.

    >>> suggestion("macro_f", ["micro_f1", "macro_f1"])
    ' Did you mean macro_f1?'
    >>> suggestion("xyz", ["micro_f1", "macro_f1"])
    ''

    Of equally near names the one with the same first letter is meant: few typing errors are there.

    >>> suggestion("hnf", ["nmf", "hmf"])
    ' Did you mean hmf?'
    """
    typed = name.lower()
    close = get_close_matches(typed, list(known))

    def nearness(other: str) -> tuple[float, bool]:
        return SequenceMatcher(None, other, typed).ratio(), other[:1] == typed[:1]

    return f" Did you mean {max(close, key=nearness)}?" if close else ""


def warn(message: str) -> None:
    """Warn at the innermost line of the stack that is outside this package."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "marginmf":
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(printable(message, LONGEST_MESSAGE), UserWarning, stacklevel=level)


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` stands for, as in scikit-learn.

    Never more than there are cores on this machine: a backend of joblib may count those of a
    cluster, where threads cannot go.

    >>> n_threads(None), n_threads(3)
    (1, 3)
    """
    from joblib import cpu_count, effective_n_jobs  # metrics and tests need the checks alone

    wanted = int(effective_n_jobs(n_jobs))
    if wanted == 1:  # no need to count cores, which takes longer than to predict a rating
        return 1
    return min(wanted, MOST_THREADS, n_jobs if n_jobs and n_jobs > 0 else cpu_count())
