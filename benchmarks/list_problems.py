"""Top-10 lists: the split of the ratings, and the one judge of the lists of all methods."""

from functools import partial

import numpy as np
from scipy.sparse import csr_array

from benchmarks.adapters.common import LIKED, Codes
from benchmarks.harness import Arrays, Problem
from benchmarks.rating_problems import in_order, split_rows, table_of
from marginmf.datasets import RatingsTable
from marginmf.metrics import LIST_METRICS

#: The split to test on, and the same of its training ratings, to choose settings on.
SPLIT, INNER = "80/20", "80/20 of training"
LENGTH = 10


def list_problem(data: str, split: str, seed: int) -> Problem:
    """Return a split whose users and items are codes, and the judge of the lists."""
    table = table_of(data)
    codes = [Codes(ids)(ids)[0] for ids in (table.users, table.items)]
    table = RatingsTable(table.name, *codes, table.ratings)
    train, test = split_rows(table, SPLIT, seed)
    if split == INNER:
        training = RatingsTable(table.name, *(code[train] for code in codes), table.ratings[train])
        train, test = (train[rows] for rows in split_rows(training, SPLIT, seed))
    train = in_order(table, train, "sorted", seed)
    # Whole users: someone with few ratings must still have unseen items to be shown.
    tiny = train[np.isin(table.users[train], np.unique(table.users[train])[:20])]
    arrays, tiny_arrays = (
        {"users": table.users[k], "items": table.items[k], "ratings": table.ratings[k]}
        for k in (train, tiny)
    )
    asked, tiny_asked = (
        {"users": np.unique(part["users"]), "n": np.array(LENGTH)} for part in (arrays, tiny_arrays)
    )
    shape = table.users.max() + 1, table.items.max() + 1
    liked = test[table.ratings[test] >= LIKED]
    seen, relevant = (
        csr_array((np.ones(len(k), bool), (table.users[k], table.items[k])), shape=shape)
        for k in (train, liked)
    )
    judge = partial(judge_lists, asked["users"], seen, relevant)
    return Problem(arrays, asked, tiny_arrays, tiny_asked, judge)


def judge_lists(
    users: np.ndarray, seen: csr_array, relevant: csr_array, answers: Arrays
) -> dict[str, float]:
    """Return how good the lists of some users are; raise ValueError for lists that are not valid.

    Someone with relevant items and without a list has an empty one.
    """
    lists = answers["lists"]
    if lists.shape != (len(users), LENGTH) or lists.dtype.kind != "i":
        raise ValueError(
            f"lists are {lists.dtype} of shape {lists.shape}, not whole numbers of shape "
            f"({len(users)}, {LENGTH})"
        )
    everybody = np.full((relevant.shape[0], LENGTH), -1)
    everybody[users] = lists
    if marked(seen, everybody).any():
        raise ValueError("a list has an item that its user has rated")
    ordered = np.sort(everybody, axis=1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        raise ValueError("an item is twice in the list of a user")
    return list_quality(everybody, relevant, n_items=len(np.unique(seen.indices)))


def marked(pairs: csr_array, lists: np.ndarray) -> np.ndarray:
    """Return which items of the lists, a row for each user, are among the pairs."""
    rows = np.repeat(np.arange(len(lists)), lists.shape[1])
    found = np.asarray(pairs[rows, np.maximum(lists, 0).ravel()], bool)
    return found.reshape(lists.shape) & (lists >= 0)


def list_quality(lists: np.ndarray, relevant: csr_array, n_items: int) -> dict[str, float]:
    """Return the means over all users that have relevant items.

    Parameters
    ----------
    lists : integer array of shape (n_users, n)
        Items by rank, -1 where there is none.
    relevant : boolean sparse array of shape (n_users, all items)
    n_items : int
        The number of items that lists are made of, for the coverage.
    """
    n_relevant = np.diff(relevant.indptr)
    judged = n_relevant > 0
    hits, shown = marked(relevant, lists)[judged], lists[judged]
    quality = {
        name: float(measure(hits, n_relevant[judged], lists.shape[1]).mean())
        for name, measure in LIST_METRICS.items()
    }
    return {**quality, "coverage": len(np.unique(shown[shown >= 0])) / n_items}
