"""Ratings that change: new ones come, some are picked out."""

import numpy as np

from marginmf._typing import IntArray
from marginmf.ratings.data import CODE, Ratings
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.rows import Side


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
    last = np.append(np.diff(pairs[order]) > 0, True)
    return _assemble(data, users, items, *(part[order[last]] for part in (rows, columns, codes)))


def restricted(data: Ratings, side: Side, ids: IdIndex) -> Ratings:
    """Return the ratings by some users, or of some items, alone; the other side stays whole.

    >>> data = Ratings.of([("ann", "x"), ("bob", "x"), ("bob", "y")], [1, 2, 2])
    >>> restricted(data, "user", IdIndex(["bob"]))
    Ratings(2 ratings of 2 items by 1 users, levels 1, 2)
    """
    users = ids if side == "user" else data.users
    items = ids if side == "item" else data.items
    rows = users.encode(data.users.ids)[data.rows]
    columns = items.encode(data.items.ids)[data.indices]
    kept = np.flatnonzero((rows >= 0) & (columns >= 0))
    # The order of ids, and so of entries, may change where ids cannot be compared.
    kept = kept[np.lexsort((columns[kept], rows[kept]))]
    return _assemble(data, users, items, rows[kept], columns[kept], data.codes[kept])


def observed(data: Ratings) -> Ratings:
    """Return ratings whose vocabularies hold only users who rated and items that were rated.

    Nothing can be learned of the others: they are as unknown as any id never heard of.
    """
    for side in ("user", "item"):
        index = data.users if side == "user" else data.items
        if side == "user":
            rated = np.diff(data.indptr) > 0
        else:
            rated = np.zeros(len(index), bool)
            rated[data.indices] = True
        if not rated.all():
            data = restricted(data, side, IdIndex(index.ids[rated], index.what))
    return data


def _assemble(
    like: Ratings,
    users: IdIndex,
    items: IdIndex,
    rows: IntArray,
    columns: IntArray,
    codes: IntArray,
) -> Ratings:
    """Make ratings of entries that are in order."""
    counts = np.bincount(rows, minlength=len(users))
    return Ratings(
        users=users,
        items=items,
        levels=like.levels,
        indptr=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        indices=columns.astype(np.int32, copy=False),
        codes=codes.astype(CODE, copy=False),
    )
