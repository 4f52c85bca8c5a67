"""What several adapters need; NumPy alone."""

from collections.abc import Callable
from typing import Any

import numpy as np

#: The lowest rating of an item that a user likes.
LIKED = 4.0


class Codes:
    """Ids as 0, 1, 2, ... in ascending order."""

    def __init__(self, ids: np.ndarray) -> None:
        self.ids = np.unique(ids)

    def __len__(self) -> int:
        return len(self.ids)

    def __call__(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the code of every id, and whether the id is known."""
        codes = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return codes, self.ids[codes] == ids


class Scale:
    """The range of the ratings and their mean, for peers that leave those to the caller."""

    def __init__(self, ratings: np.ndarray) -> None:
        self.low, self.high, self.mean = ratings.min(), ratings.max(), ratings.mean()

    def __call__(self, estimates: np.ndarray) -> np.ndarray:
        """Return estimates within the range, the mean for those that are missing."""
        known = np.where(np.isnan(estimates), self.mean, estimates)
        return np.clip(known, self.low, self.high)


class Feedback:
    """The pairs that a list method learns from, all of weight one, and what its lists leave out.

    Those pairs are all ratings, or ``likes`` alone.  Lists leave out whatever a user has rated; as
    a peer only leaves out what it has learned from, ask it for ``n + n_more`` items.
    """

    def __init__(self, users: Any, items: Any, ratings: Any, likes: bool) -> None:
        learned = ratings >= LIKED if likes else np.ones(len(ratings), bool)
        self.users, self.items = users[learned], items[learned]
        self.ones = np.ones(len(self.users), np.float32)
        others = np.unique(users[~learned], return_counts=True)[1]
        self.n_more = int(others.max(initial=0))
        self._base = int(items.max()) + 1
        self._left_out = users[~learned].astype(np.int64) * self._base + items[~learned]

    def lists(
        self, asked: np.ndarray, users: np.ndarray, items: np.ndarray, n: int
    ) -> dict[str, np.ndarray]:
        """Return the lists of the users asked for, in ascending order of their ids.

        ``users`` and ``items`` are pairs, by rank for each user; an item below zero is none.
        """
        stays = items >= 0
        if self.n_more:
            stays &= ~np.isin(users.astype(np.int64) * self._base + items, self._left_out)
        rows, items = np.searchsorted(asked, users[stays]), items[stays]
        order = np.argsort(rows, kind="stable")
        rows, items = rows[order], items[order]
        ranks = np.arange(len(rows)) - np.searchsorted(rows, rows)
        best = ranks < n
        lists = np.full((len(asked), n), -1, np.int64)
        lists[rows[best], ranks[best]] = items[best]
        return {"lists": lists}


def user_item_matrix(users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> Any:
    """Return the codes of users and items, and their ratings as a CSR matrix."""
    from scipy.sparse import csr_matrix

    rows, columns = Codes(users), Codes(items)
    codes, shape = (rows(users)[0], columns(items)[0]), (len(rows), len(columns))
    return rows, columns, csr_matrix((ratings.astype(np.float32), codes), shape=shape)


def implicit_matrix(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> Any:
    """Return who rated what in training as a CSR matrix, rows with n ratings times 1 / sqrt(n)."""
    from scipy.sparse import csr_matrix

    counts = np.bincount(rows, minlength=shape[0])
    return csr_matrix((1 / np.sqrt(counts[rows]), (rows, columns)), shape=shape)


def best_of_each(
    users: np.ndarray, n: int, one: Callable[[Any], np.ndarray]
) -> dict[str, np.ndarray]:
    """Return lists for all users from a function that makes one."""
    lists = [np.asarray(one(user))[:n] for user in users.tolist()]
    lengths = [len(items) for items in lists]
    return {"users": np.repeat(users, lengths), "items": np.concatenate(lists)}


def sparse(name: str, parts: dict[str, np.ndarray]) -> Any:
    """Return a CSR matrix from its parts in an npz file."""
    from scipy.sparse import csr_matrix

    *arrays, shape = (parts[f"{name}_{part}"] for part in ("data", "indices", "indptr", "shape"))
    return csr_matrix(tuple(arrays), shape=tuple(shape.tolist()))


def set_known(model: Any, **values: Any) -> Any:
    """Set those parameters that a model has."""
    known = model.get_params()
    return model.set_params(**{name: value for name, value in values.items() if name in known})


class Labels:
    """What adapters of label methods share; they make a ``model``."""

    model: Any

    def prepare(self, **parts: np.ndarray) -> None:
        self.X, self.Y = sparse("X", parts), self.as_labels(sparse("Y", parts))

    def as_labels(self, Y: Any) -> Any:
        return Y.toarray()

    def fit(self) -> None:
        self.model.fit(self.X, self.Y)

    def answer(self, **parts: np.ndarray) -> dict[str, np.ndarray]:
        labels = self.model.predict(sparse("X", parts))
        dense = labels.toarray() if hasattr(labels, "toarray") else np.asarray(labels)
        return {"labels": dense.astype(np.uint8)}
