"""myFM."""

from typing import Any

import myfm
import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.adapters.common import Codes, Scale

PACKAGES = ("myfm", "numpy", "scipy")


class Regressor:
    """A column for each user and one for each item; ids that training did not see have none."""

    machine = myfm.MyFMRegressor

    def __init__(self, threads: int, rank: int, n_iter: int) -> None:
        self.model = self.machine(rank=rank, random_seed=0)
        self.n_iter = n_iter

    def prepare(self, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> None:
        self.users, self.items, self.scale = Codes(users), Codes(items), Scale(ratings)
        self.levels = np.unique(ratings)
        self.targets = self._targets(ratings)
        self.matrix = self._encoded(users, items)

    def fit(self) -> None:
        shapes = [len(self.users), len(self.items)]
        self.model.fit(self.matrix, self.targets, n_iter=self.n_iter, group_shapes=shapes)

    def answer(self, users: np.ndarray, items: np.ndarray) -> dict[str, np.ndarray]:
        return {"estimate": self.scale(self.model.predict(self._encoded(users, items)))}

    def _targets(self, ratings: np.ndarray) -> np.ndarray:
        return ratings

    def _encoded(self, users: np.ndarray, items: np.ndarray) -> Any:
        user_codes, known_users = self.users(users)
        item_codes, known_items = self.items(items)
        columns = np.column_stack([user_codes, len(self.users) + item_codes])
        known = np.column_stack([known_users, known_items])
        starts = np.concatenate([[0], known.sum(axis=1).cumsum()])
        shape = len(users), len(self.users) + len(self.items)
        return csr_matrix((np.ones(starts[-1]), columns[known], starts), shape=shape)


class OrderedProbit(Regressor):
    """The same with a distribution over the levels."""

    machine = myfm.MyFMOrderedProbit

    def answer(self, users: np.ndarray, items: np.ndarray) -> dict[str, np.ndarray]:
        found = np.clip(self.model.predict_proba(self._encoded(users, items)), 1e-9, 1.0)
        distribution = found / found.sum(axis=1, keepdims=True)
        return {"estimate": distribution @ self.levels, "distribution": distribution}

    def _targets(self, ratings: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.levels, ratings)
