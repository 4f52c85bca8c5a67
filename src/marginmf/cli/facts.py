"""What there is to know of some ratings before anything is learned from them."""

from typing import Any

import numpy as np

from marginmf._utils.ids import shown
from marginmf._utils.types import Array, IntArray
from marginmf.datasets import RatingsTable
from marginmf.ratings.ids import IdIndex

#: More levels than this are not listed one by one.
MOST_LISTED = 20
#: Repeated pairs to name.
MOST_NAMED = 3


def ratings_facts(table: RatingsTable) -> dict[str, Any]:
    """Return counts, levels, density, repeated pairs and the range of times.

    Unlike `Ratings.of` it refuses nothing: whoever asks may want to know why a fit was refused.

    >>> table = RatingsTable("films", ["ann", "bob", "bob"], [7, 7, 7], [4, 5, 1])
    >>> facts = ratings_facts(table)
    >>> facts["density"], facts["duplicates"]["n_pairs"], facts["duplicates"]["first"]
    (1.0, 1, [["'bob'", '7']])
    """
    users, items = IdIndex(table.users, "user"), IdIndex(table.items, "item")
    rows, columns = users.encode(table.users), items.encode(table.items)
    pairs = rows.astype(np.int64) * len(items) + columns
    distinct, times = np.unique(pairs, return_counts=True)
    repeated = distinct[times > 1]
    levels, counts = np.unique(table.ratings, return_counts=True)
    listed = {f"{level:g}": int(n) for level, n in zip(levels, counts, strict=True)}
    facts: dict[str, Any] = {
        "name": table.name,
        "source": table.source,
        "n_ratings": len(table),
        "n_users": len(users),
        "n_items": len(items),
        "density": len(distinct) / (len(users) * len(items)),
        "n_levels": len(levels),
        "levels": listed if len(levels) <= MOST_LISTED else None,
        "lowest": float(levels[0]),
        "highest": float(levels[-1]),
        "mean": float(table.ratings.mean()),
        "ratings_a_user": _spread(rows),
        "ratings_an_item": _spread(columns),
        "user_ids": _kind(users.ids),
        "item_ids": _kind(items.ids),
        "duplicates": {
            "n_pairs": len(repeated),
            "first": [
                [shown(users.ids[pair // len(items)]), shown(items.ids[pair % len(items)])]
                for pair in repeated[:MOST_NAMED]
            ],
        },
        "titles": table.titles is not None,
        "timestamps": None,
    }
    if table.timestamps is not None:
        facts["timestamps"] = [int(table.timestamps.min()), int(table.timestamps.max())]
    return facts


def _spread(codes: IntArray) -> dict[str, float]:
    counts = np.bincount(codes)
    return {
        "fewest": int(counts.min()),
        "median": float(np.median(counts)),
        "most": int(counts.max()),
    }


def _kind(ids: Array) -> str:
    return "whole numbers" if ids.dtype == np.int64 else "text"
