"""What ratings models are made of: users, items, levels, and the ratings themselves."""

from typing import Any

import numpy as np

from marginmf._utils.saved import Shaped, counts, floats, within
from marginmf.persistence.errors import ModelFileError
from marginmf.persistence.shapes import Lengths, check_shape, divides, rises_in_rows
from marginmf.ratings.data import Ratings
from marginmf.ratings.estimator import RatingsEstimator
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.positive import PositiveOnly


def pairs_lengths(model: RatingsEstimator | PositiveOnly, name: str) -> Lengths:
    """Return how many users and items a fitted model has."""
    users, items = (getattr(model, key, None) for key in ("users_", "items_"))
    if not isinstance(users, IdIndex) or not isinstance(items, IdIndex):
        raise ModelFileError(f"{name} has no users or no items")
    return {"users": len(users), "items": len(items)}


def ratings_lengths(model: RatingsEstimator, name: str) -> Lengths:
    """Return how many users, items and levels a fitted model has."""
    lengths, levels = pairs_lengths(model, name), getattr(model, "levels_", None)
    _check_levels(levels, f"{name}.levels_")
    n_levels = len(levels)  # type: ignore[arg-type]
    return {**lengths, "levels": n_levels, "stages": n_levels - 1}


def check_ratings(data: Ratings, name: str = "Ratings") -> None:
    """Raise `ModelFileError` unless ratings are as `Ratings.of` makes them."""
    if not isinstance(data.users, IdIndex) or not isinstance(data.items, IdIndex):
        raise ModelFileError(f"{name} has no users or no items")
    lengths = {"users": data.n_users}
    check_shape(data.indptr, counts("users + 1"), f"{name}.indptr", lengths)
    check_shape(data.indices, Shaped(("int32",), ("ratings",)), f"{name}.indices", lengths)
    check_shape(data.codes, Shaped(("int16", "int32"), ("ratings",)), f"{name}.codes", lengths)
    if data.exact is not None:
        check_shape(data.exact, floats("ratings"), f"{name}.exact", lengths)
    _check_levels(data.levels, f"{name}.levels")
    if not divides(data.indptr, lengths["ratings"]):
        raise ModelFileError(f"{name} are not divided among the users")
    if not within(data.indices, data.n_items):
        raise ModelFileError(f"{name} are of items that do not exist")
    if not within(data.codes, data.n_levels):
        raise ModelFileError(f"{name} are at levels that do not exist")
    if not rises_in_rows(data.indices, data.indptr):
        raise ModelFileError(f"{name} are not in the order of the items")


def _check_levels(levels: Any, label: str) -> None:
    check_shape(levels, Shaped(("float64",), ("levels",)), label, {})
    if len(levels) < 2 or not np.isfinite(levels).all() or not (levels[1:] > levels[:-1]).all():
        raise ModelFileError(f"{label} are not levels in rising order")
