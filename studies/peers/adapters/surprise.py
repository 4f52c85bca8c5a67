"""Surprise."""

from typing import Any

import numpy as np
import surprise
from surprise.dataset import DatasetAutoFolds

from studies.peers.adapters.common import best_of_each

PACKAGES = ("scikit-surprise", "numpy", "scipy")


class SVD:
    algorithm = surprise.SVD

    def __init__(self, threads: int, **options: Any) -> None:
        self.model = self.algorithm(random_state=0, **options)

    def prepare(self, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> None:
        # The way of `Dataset.load_from_df` without its data frame, which would cost more.
        reader = surprise.Reader(rating_scale=(ratings.min(), ratings.max()))
        data = DatasetAutoFolds.__new__(DatasetAutoFolds)
        surprise.Dataset.__init__(data, reader)
        columns = users.tolist(), items.tolist(), ratings.tolist(), [None] * len(users)
        data.raw_ratings = list(zip(*columns, strict=True))
        self.data = data.build_full_trainset()

    def fit(self) -> None:
        self.model.fit(self.data)

    def answer(self, users: np.ndarray, items: np.ndarray) -> dict[str, np.ndarray]:
        pairs = zip(users.tolist(), items.tolist(), strict=True)
        return {"estimate": np.array([self.model.predict(*pair).est for pair in pairs])}


class SVDpp(SVD):
    """The same with a term for which items a user has rated in training."""

    algorithm = surprise.SVDpp


class Server(SVD):
    """Its documented way to lists: an estimate for every pair that was not rated."""

    def answer(self, users: np.ndarray, n: np.ndarray) -> dict[str, np.ndarray]:
        data = self.data
        raw_items = np.array([data.to_raw_iid(item) for item in data.all_items()])

        def best(user: int) -> np.ndarray:
            inner = data.to_inner_uid(user)
            seen = {item for item, _ in data.ur[inner]}
            unseen = [item for item in data.all_items() if item not in seen]
            scores = np.array([self.model.estimate(inner, item) for item in unseen])
            return raw_items[np.array(unseen)[np.argsort(-scores)[: int(n)]]]

        return best_of_each(users, int(n), best)
