"""LIBMF by its Python package."""

from typing import Any

import numpy as np
from libmf import mf

from studies.peers.adapters.common import Scale

PACKAGES = ("libmf", "numpy")


class MF:
    def __init__(self, threads: int, **options: Any) -> None:
        self.model = mf.MF(nr_threads=threads, quiet=True, **options)

    def prepare(self, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> None:
        self.triples = np.column_stack([users, items, ratings])
        self.scale = Scale(ratings)

    def fit(self) -> None:
        self.model.fit(self.triples)

    def answer(self, users: np.ndarray, items: np.ndarray) -> dict[str, np.ndarray]:
        # Rows in C order are taken for something else, and answered with noise.
        pairs = np.asfortranarray(np.column_stack([users, items]))
        return {"estimate": self.scale(self.model.predict(pairs).astype(np.float64))}
