"""Users and items that come after training: their rows are learned, all others stay.

Given the items, every user's problem is one of its own, and the other way round.  An estimator's
`_place` solves one side's problems; everything here follows from it, for users and items alike.
"""

import warnings
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from marginmf._utils.ids import shown
from marginmf._utils.types import Array, IntArray
from marginmf.backends.rows import SIDES, Side
from marginmf.ratings.data import Ratings, assemble, restricted
from marginmf.ratings.features import Features, FeatureTable
from marginmf.ratings.ids import IdIndex

if TYPE_CHECKING:
    from marginmf.ratings.estimator import RatingsEstimator

    Model = TypeVar("Model", bound=RatingsEstimator)


def folded(model: "Model", side: Side, pairs: Any, ratings: Any, features: Any) -> "Model":
    """Return a model for new users (or items), which knows whom to ask what its margins mean."""
    data = _read(model, side, pairs, ratings, features)
    new = model._placed(side, data)
    if model._calibrator is None or (side == "user" and model._exposure is None):
        # A copy: this estimator may be fitted to something else in the meantime.
        new._origin = model._origin or copy(model)
    return new


def update(model: "Model", side: Side, pairs: Any, ratings: Any, features: Any) -> "Model":
    """Take in new ratings, and learn the rows of their users (or items) again."""
    new = _read(model, side, pairs, ratings, features)
    ids = new.index(side)
    _refuse_unless_at_hand(model, side, ids)
    data = updated(model.ratings_, new)
    # Learned and joined aside, so that an update that fails leaves this model as it was.
    placed = model._placed(side, restricted(data, side, ids))
    model.__dict__.update(model._joined(placed, side, data).__dict__)
    return model


def join_arrays(joined: "Model", ours: "Model", theirs: "Model", side: Side) -> None:
    """Give a model the rows of two others: the second one's where it has them."""
    index = joined.ratings_.index(side)
    our_codes, their_codes = (
        index.encode(part.ratings_.index(side).ids) for part in (ours, theirs)
    )
    for name in joined._user_arrays if side == "user" else joined._item_arrays:
        rows = _spread(getattr(ours, name), our_codes, len(index))
        _rows_first(rows)[their_codes] = _rows_first(getattr(theirs, name))
        setattr(joined, name, rows)


def updated(data: Ratings, new: Ratings) -> Ratings:
    """Return ratings together with new ones, on the same scale.

    A new rating of a pair that has one replaces it.

    >>> old = Ratings.of([("ann", "x"), ("ann", "y")], [1, 2])
    >>> new = Ratings.of([("bob", "x"), ("ann", "y")], [2, 1])
    >>> updated(old, new).values
    array([1., 1., 2.])
    """
    users, items = data.users.union(new.users), data.items.union(new.items)
    parts = (data, new)
    rows = np.concatenate([users.encode(part.users.ids)[part.rows] for part in parts])
    columns = np.concatenate([items.encode(part.items.ids)[part.indices] for part in parts])
    codes = np.concatenate([part.codes for part in parts])
    pairs = rows.astype(np.int64) * len(items) + columns
    # Stable, so that the new rating of a pair comes after the old one; and quick, because both
    # parts are in order already.
    order = np.argsort(pairs, kind="stable")
    kept = order[np.append(np.diff(pairs[order]) > 0, True)]
    exact = None
    if data.exact is not None:
        exact = np.concatenate([part.values for part in parts])[kept]
    both = assemble(data, users, items, rows[kept], columns[kept], codes[kept], exact)
    for side in SIDES:
        ours, theirs = data.features(side), new.features(side)
        if ours is not None and theirs is not None:
            index = both.index(side)
            joined = ours.joined(index, data.index(side), theirs, new.index(side))
            both = both.described(side, joined)
    return both


def _read(
    model: "RatingsEstimator", side: Side, pairs: Any, ratings: Any, features: Any
) -> Ratings:
    """Return ratings on the model's scale, of its items (or by its users) alone."""
    check_is_fitted(model)
    known = model.ratings_
    if pairs is not None:
        given: dict[str, Any] = {"levels": model.levels_}
        if known.exact is not None:  # binned: each is put at the nearest level
            given["n_levels"] = len(model.levels_)
        given |= {"items": known.items} if side == "user" else {"users": known.users}
        data = Ratings.of(pairs, ratings, **given)
    elif features is not None:
        nobody, nothing = IdIndex([], side), np.zeros(0, np.int32)
        users, items = (nobody, known.items) if side == "user" else (known.users, nobody)
        data = assemble(known, users, items, nothing, nothing, nothing)
    else:
        raise ValueError(f"Give ratings of new {side}s, or {side}_features, or both.")
    if known.features(side) is None and features is not None:
        raise ValueError(
            f"This model was fitted without {side}_features, so it has not learned what they mean: "
            f"fit it again with features of all {side}s."
        )
    return _described(data, side, features, known)


def _described(data: Ratings, side: Side, features: Any, known: Ratings) -> Ratings:
    """Return new ratings with the features of both sides, in the terms of known ones."""
    table = None
    if features is not None:
        table = FeatureTable.of(features, side)
        data = restricted(data, side, data.index(side).union(IdIndex(table.ids, side)))
    for each in SIDES:
        like, index = known.features(each), data.index(each)
        if like is None:
            continue
        own = like.joined(index, known.index(each))
        if each == side and table is not None:
            own = own.joined(index, index, Features.of(table, index, like.encoder), index)
        data = data.described(each, own)
        n_without = int((np.diff(own.matrix.indptr) == 0).sum())
        if each == side and n_without:
            warnings.warn(
                f"{n_without} of {len(index)} {side}s have no features, which the model was "
                "fitted with: they are learned from their ratings alone.",
                UserWarning,
                stacklevel=5,
            )
    return data


def _refuse_unless_at_hand(model: "RatingsEstimator", side: Side, ids: IdIndex) -> None:
    """Raise ValueError if known ids have ratings that this model does not hold."""
    if model._frequencies.placed in (None, side):
        return
    known = model.ratings_.index(side).encode(ids.ids) >= 0
    if known.any():
        made_by = {"user": "fold_in_items", "item": "fold_in"}[side]
        raise ValueError(
            f"{side.capitalize()} {shown(ids.ids[np.argmax(known)])} was learned from ratings "
            f"that this model does not hold, because it was made by {made_by}: update the "
            "model that it was made from."
        )


def _rows_first(array: Array) -> Array:
    """Return a view with the ids' axis first; stages, where there are any, come before it."""
    return np.moveaxis(array, max(array.ndim - 2, 0), 0)


def _spread(array: Array, codes: IntArray, n: int) -> Array:
    """Return an array for n ids with the given rows at those codes."""
    axis = max(array.ndim - 2, 0)
    spread = np.zeros((*array.shape[:axis], n, *array.shape[axis + 1 :]), array.dtype)
    _rows_first(spread)[codes] = _rows_first(array)
    return spread
