"""implicit."""

from typing import Any

import numpy as np
from implicit.als import AlternatingLeastSquares
from implicit.bpr import BayesianPersonalizedRanking
from implicit.nearest_neighbours import BM25Recommender, CosineRecommender, TFIDFRecommender

from studies.peers.adapters.common import Feedback, user_item_matrix

PACKAGES = ("implicit", "numpy", "scipy")


class Server:
    def __init__(self, threads: int, **options: Any) -> None:
        fixed = {"num_threads": threads, "use_gpu": False, "random_state": 0}
        self.model = AlternatingLeastSquares(**fixed, **options)

    def prepare(self, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> None:
        self.users, self.items, self.matrix = user_item_matrix(users, items, ratings)

    def fit(self) -> None:
        self.model.fit(self.matrix, show_progress=False)

    def answer(self, users: np.ndarray, n: np.ndarray) -> dict[str, np.ndarray]:
        codes, _ = self.users(users)
        seen = self.matrix if len(codes) == len(self.users) else self.matrix[codes]
        found, _ = self.model.recommend(codes, seen, N=int(n), filter_already_liked_items=True)
        return {"users": np.repeat(users, int(n)), "items": self.items.ids[found.ravel()]}


FACTORS = {"als": AlternatingLeastSquares, "bpr": BayesianPersonalizedRanking}
NEIGHBOURS = {"cosine": CosineRecommender, "tfidf": TFIDFRecommender, "bm25": BM25Recommender}


class Lists(Server):
    """A model by name: its best items of those that a user has not rated."""

    def __init__(self, threads: int, model: str, likes: bool = False, **options: Any) -> None:
        if model in FACTORS:
            options |= {"use_gpu": False, "random_state": 0}
        self.model = (FACTORS | NEIGHBOURS)[model](num_threads=threads, **options)
        self.likes = likes

    def prepare(self, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> None:
        self.feedback = learned = Feedback(users, items, ratings, self.likes)
        super().prepare(learned.users, learned.items, learned.ones)

    def answer(self, users: np.ndarray, n: np.ndarray) -> dict[str, np.ndarray]:
        codes, known = self.users(users)  # someone who likes nothing is not known
        n_asked = min(int(n) + self.feedback.n_more, len(self.items))
        found, _ = self.model.recommend(codes[known], self.matrix[codes[known]], N=n_asked)
        items = np.where(found < 0, -1, self.items.ids[found])
        return self.feedback.lists(users, np.repeat(users[known], n_asked), items.ravel(), int(n))
