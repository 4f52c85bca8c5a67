"""Users and items that come after training: their rows are learned, all others stay.

An estimator's `_fold_in` solves one side's problems, each of its own when the other side is given.
"""

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from marginmf._utils.ids import shown
from marginmf._utils.parameters import warn
from marginmf._utils.types import Array, BoolArray, Float64Array, FloatArray, IntArray
from marginmf.backends.rows import SIDES, Side
from marginmf.backends.threads import one_blas_thread
from marginmf.ratings.data import Ratings, assemble, restricted, warn_of_missing_features
from marginmf.ratings.features import Features, FeatureTable
from marginmf.ratings.fitting.priors import Penalties, Prior, regression_weights
from marginmf.ratings.ids import IdIndex

#: Of the regressions for new rows: how many rows at a time, and how many numbers are kept for other
#: members of an ensemble.
ROWS_AT_A_TIME, KEPT = 64, 1 << 26
OTHER: dict[Side, Side] = {"user": "item", "item": "user"}
#: What cannot be used of ratings that users, or items, are learned from.
USELESS: dict[Side, str] = {"user": "of unknown items", "item": "by unknown users"}


class NewRows:
    """What new rows' factors should be like, from known rows with the same features.

    The weights that belong to known factors F are those of a ridge regression on their features.
    So the means of new rows are ``K' F``, with ``K = (B B^T + I)^-1 B b^T`` for scaled features B
    of known rows and b of new ones.  All stages, and all members of an ensemble, share K.
    """

    def __init__(self, side: Side, known: Ratings, new: Ratings) -> None:
        self.side, self.known, self.new = side, known, new
        #: Which of the rows were not known before.
        self.fresh: BoolArray = known.index(side).encode(new.index(side).ids, quiet=True) < 0
        self._kept: dict[Any, list[dict[str, Float64Array]]] = {}

    def means(self, penalties: Penalties, reg: float, factors: FloatArray) -> FloatArray | None:
        """Return the means of the new rows' factors, from known rows' ones; None for zeros."""
        parts = list(self.parts(penalties, reg, factors).values())
        return sum(parts[1:], parts[0]) if parts else None

    def parts(self, penalties: Penalties, reg: float, factors: FloatArray) -> dict[str, FloatArray]:
        """Return what each source of features adds to the means."""
        if not penalties.sources(self.new, self.side):
            return {}
        implicit, *given = penalties
        key = (implicit, *(None if own is None else reg / own for own in given))
        if key not in self._kept:
            self._kept.clear()
            blocks = self._weights(penalties, float(reg))
            if len(factors) * len(self.new.index(self.side)) > KEPT:
                return _apply_weights(blocks, factors)
            self._kept[key] = list(blocks)
        return _apply_weights(self._kept[key], factors)

    def _weights(self, penalties: Penalties, reg: float) -> Iterator[dict[str, Float64Array]]:
        known, new = (Prior.of(one, self.side, penalties) for one in (self.known, self.new))
        scales = known.scales(reg)
        for first in range(0, new.matrix.shape[0], ROWS_AT_A_TIME):
            rows = slice(first, first + ROWS_AT_A_TIME)
            features = csr_array(new.matrix[rows]).toarray()
            if "raters" in known.blocks:
                own = known.block("raters")
                counts = new.counts[rows]
                which = np.flatnonzero(self.fresh[rows] | (counts == 0))
                expected = known.shares(csr_array(features[which])) @ known.matrix[:, own]
                raters = known.to_come(features[which, own], counts[which], expected)
                features[which, own] = raters
            found = {}
            for name in known.blocks:
                alone, own = np.zeros_like(features), known.block(name)
                alone[:, own] = features[:, own]
                found[name] = regression_weights(known.matrix, scales, csr_array(alone))
            yield found


def _apply_weights(
    blocks: Iterable[dict[str, Float64Array]], factors: FloatArray
) -> dict[str, FloatArray]:
    """Return parts of the means of new rows from the weights of known rows in them."""
    known, parts = factors.astype(np.float64), dict[str, list[Float64Array]]()
    with one_blas_thread():  # row by row: the rounding of a matrix product depends on its size
        for block in blocks:
            for name, weights in block.items():
                rows = np.ascontiguousarray(weights.T)
                parts.setdefault(name, []).extend(row @ known for row in rows)
    return {name: np.stack(rows).astype(factors.dtype) for name, rows in parts.items()}


def fold_in(model: Any, side: Side, pairs: Any, ratings: Any, features: Any) -> Any:
    """Return a model for new users (or items); it keeps the original, which calibrates it."""
    data = _read(model, side, pairs, ratings, features)
    new = model._folded(side, data)
    if model._calibrator is None or (side == "user" and model._exposure is None):
        # A copy: this estimator may be fitted to something else in the meantime.
        new._origin = model._origin or copy(model)
    return new


def update(model: Any, side: Side, pairs: Any, ratings: Any, features: Any) -> None:
    """Take in new ratings, and learn the rows of their users (or items) again."""
    new = _read(model, side, pairs, ratings, features)
    ids = new.index(side)
    known = model.ratings_.index(side).encode(ids.ids, quiet=True) >= 0
    if model._frequencies.placed not in (None, side) and known.any():
        made_by = {"user": "fold_in_items", "item": "fold_in"}[side]
        raise ValueError(
            f"{side.capitalize()} {shown(ids.ids[np.argmax(known)])} was learned from ratings "
            f"that this model does not hold, because it was made by {made_by}: update the "
            "model that it was made from."
        )
    data = updated(model.ratings_, new)
    # Learned and joined aside, so that an update that fails leaves this model as it was.
    folded = model._folded(side, restricted(data, side, ids))
    model.__dict__.update(model._joined(folded, side, data).__dict__)


def join_arrays(joined: Any, ours: Any, theirs: Any, side: Side) -> None:
    """Give a model the rows of two others: the second one's where it has them."""
    index = joined.ratings_.index(side)
    our_codes, their_codes = (
        index.encode(part.ratings_.index(side).ids) for part in (ours, theirs)
    )
    for name in joined._user_arrays if side == "user" else joined._item_arrays:
        array = getattr(ours, name)
        axis = max(array.ndim - 2, 0)
        rows = np.zeros((*array.shape[:axis], len(index), *array.shape[axis + 1 :]), array.dtype)
        _rows_first(rows)[our_codes] = _rows_first(array)
        _rows_first(rows)[their_codes] = _rows_first(getattr(theirs, name))
        setattr(joined, name, rows)


def updated(data: Ratings, new: Ratings) -> Ratings:
    """Return ratings together with new ones, which replace old ones of the same pairs."""
    users, items = data.users.union(new.users), data.items.union(new.items)
    parts = (data, new)
    rows = np.concatenate([users.encode(part.users.ids)[part.rows] for part in parts])
    columns = np.concatenate([items.encode(part.items.ids)[part.indices] for part in parts])
    codes = np.concatenate([part.codes for part in parts])
    pairs = rows.astype(np.int64) * len(items) + columns
    order = np.argsort(pairs, kind="stable")  # the new rating of a pair after the old one
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


def scale_of(known: Ratings) -> dict[str, Any]:
    """Return the arguments of `Ratings.of` that put other ratings on the scale of known ones."""
    scale: dict[str, Any] = {"levels": known.source.level_names or known.levels}
    if known.exact is not None:  # binned: each is put at the nearest level
        scale["n_levels"] = known.n_levels
    return scale


def _read(model: Any, side: Side, pairs: Any, ratings: Any, features: Any) -> Ratings:
    """Return ratings on the model's scale, of its items (or by its users) alone."""
    check_is_fitted(model)
    known = model.ratings_
    if pairs is not None:
        data = Ratings.of(pairs, ratings, names=known.source.columns, **scale_of(known))
        first = f"Take them in with update_{OTHER[side]}s first, or fit the model again with all."
        data = keep_known(data, side, known.index(OTHER[side]), first, needed=features is None)
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


def keep_known(
    data: Ratings, side: Side, index: IdIndex, remedy: str, needed: bool = True
) -> Ratings:
    """Return the ratings of known items (or by known users), and those who are left with any.

    A warning says what is left out.  If that is all, and ratings are ``needed``, it is an error.
    """
    other, n_rows = OTHER[side], len(data.index(side))
    kept = (index.encode(data.index(other).ids, quiet=True) >= 0)[_entries(data, other)]
    strange = data.index(other).ids[np.unique(_entries(data, other)[~kept])]
    if needed and not kept.any():
        raise ValueError(
            f"The ratings are all {USELESS[side]}, so nothing can be learned from them: "
            f"{index.name_unknown(strange)}. {remedy}"
        )
    data = restricted(data, other, index)
    has = np.bincount(_entries(data, side), minlength=n_rows) > 0
    if not has.all():
        data = restricted(data, side, IdIndex(data.index(side).ids[has], side))
    if not kept.all():
        n_gone = n_rows - int(has.sum()) if needed else 0
        gone = f" {n_gone:,} of {n_rows:,} {side}s have no others, and stay unknown."
        warn(
            f"{int((~kept).sum()):,} of {len(kept):,} ratings are {USELESS[side]} and left out: "
            f"{index.name_unknown(strange)}.{gone if n_gone else ''}"
        )
    return data


def _entries(data: Ratings, side: Side) -> IntArray:
    """Return the user, or the item, of every rating as a code."""
    return data.rows if side == "user" else data.indices


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
        if each == side:
            warn_of_missing_features(np.diff(own.matrix.indptr) == 0, side)
    return data


def _rows_first(array: Array) -> Array:
    """Return a view with the ids' axis first; stages, where there are any, come before it."""
    return np.moveaxis(array, max(array.ndim - 2, 0), 0)
