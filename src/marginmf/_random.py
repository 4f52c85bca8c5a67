"""One rule for ``random_state``: an int, a generator of either NumPy kind, or None."""

from typing import Any

import numpy as np


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a random generator; the same int always gives the same stream.

    >>> int(as_generator(0).integers(100)) == int(as_generator(0).integers(100))
    True
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state={random_state!r} cannot seed a generator. "
            "Give a whole number >= 0, a NumPy Generator, or None."
        ) from None
