"""implicit."""

from typing import Any

import numpy as np
from implicit.als import AlternatingLeastSquares

from benchmarks.adapters.common import user_item_matrix

PACKAGES = ("implicit", "numpy", "scipy")


class Server:
    def __init__(self, threads: int, **options: Any) -> None:
        self.model = AlternatingLeastSquares(
            num_threads=threads, use_gpu=False, random_state=0, **options
        )

    def prepare(self, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> None:
        self.users, self.items, self.matrix = user_item_matrix(users, items, ratings)

    def fit(self) -> None:
        self.model.fit(self.matrix, show_progress=False)

    def answer(self, users: np.ndarray, n: np.ndarray) -> dict[str, np.ndarray]:
        codes, _ = self.users(users)
        everybody = len(codes) == len(self.users)
        seen = self.matrix if everybody else self.matrix[codes]
        found, _ = self.model.recommend(codes, seen, N=int(n), filter_already_liked_items=True)
        return {"users": np.repeat(users, int(n)), "items": self.items.ids[found.ravel()]}
