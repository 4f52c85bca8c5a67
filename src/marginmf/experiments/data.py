"""Data by name, or made up by a recipe; loaded once in a process."""

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from marginmf.datasets import RatingsTable, load_labels, load_ratings, make_ratings

if TYPE_CHECKING:
    from marginmf.datasets import LabelsTable

#: A name, or the arguments of `make_ratings` (of which ``seed`` is its random state).
Data = str | Mapping[str, Any]


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
    return make_ratings(random_state=recipe.pop("seed"), **recipe)


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
