"""Data by name, or made up by a recipe; loaded once in a process."""

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from marginmf._utils.random import as_generator
from marginmf.datasets import RatingsTable, load_labels, load_ratings, make_ratings
from marginmf.datasets.synthetic import observe_entries

if TYPE_CHECKING:
    from marginmf.datasets import LabelsTable

#: A name, or a recipe: the arguments of `make_ratings` or, with a ``noise``, of `cut_ratings`.  Its
#: ``seed`` is the random state.
Data = str | Mapping[str, Any]

#: How common one to five stars are on MovieLens 100K.
SHARES = (0.06, 0.11, 0.27, 0.34, 0.22)


def ratings_of(data: Data) -> RatingsTable:
    """Return ratings: those of a name, or those that a recipe makes."""
    return _ratings(json.dumps(data, sort_keys=True))


@cache
def labels_of(name: str) -> "LabelsTable":
    """Return a label set."""
    return load_labels(name, progress=False)


@cache
def _ratings(written: str) -> RatingsTable:
    data = json.loads(written)
    if isinstance(data, str):
        return load_ratings(data, progress=False)
    recipe = dict(data)
    make = cut_ratings if "noise" in recipe else make_ratings
    return make(random_state=recipe.pop("seed"), **recipe)


def made(size: int, n_factors: int, observed: float, seed: int) -> dict[str, Any]:
    """Return the recipe of a square matrix of five levels.

    >>> made(500, 10, 1.0, 0)["n_users"]
    500
    """
    return {
        "n_users": size,
        "n_items": size,
        "n_factors": n_factors,
        "observed": observed,
        "seed": seed,
    }


def cut(size: int, n_factors: int, observed: float, noise: float, seed: int) -> dict[str, Any]:
    """Return the recipe of a square matrix whose scores are cut into levels.

    >>> cut(500, 10, 0.1, 0.5, 0)["noise"]
    0.5
    """
    return {**made(size, n_factors, observed, seed), "noise": noise}


def cut_ratings(
    n_users: int,
    n_items: int,
    *,
    n_factors: int,
    observed: float,
    noise: float,
    random_state: int,
) -> RatingsTable:
    """Make ratings by cutting the product of normal factors into levels as common as `SHARES`.

    Unlike those of `make_ratings`, scores lie anywhere between the levels.  The standard deviation
    of the noise is in units of that of the scores.
    """
    generator = as_generator(random_state)
    users = generator.normal(size=(n_users, n_factors))
    items = generator.normal(size=(n_items, n_factors))
    scores = users @ items.T / np.sqrt(n_factors) + noise * generator.normal(
        size=(n_users, n_items)
    )
    levels = 1 + np.digitize(scores, np.quantile(scores, np.cumsum(SHARES)[:-1]))
    return observe_entries(levels, observed, generator, f"{n_factors} factors, cut into levels")
