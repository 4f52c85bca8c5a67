"""scikit-learn's label methods."""

from typing import Any

import numpy as np
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from studies.peers.adapters.common import sparse

PACKAGES = ("scikit-learn", "numpy", "scipy")


class OneVsRest:
    """A linear support vector machine for every label."""

    def __init__(self, threads: int, **options: Any) -> None:
        self.model = OneVsRestClassifier(LinearSVC(**options), n_jobs=threads)

    def prepare(self, **parts: np.ndarray) -> None:
        # int64: scikit-learn goes wrong on small integers with more than 128 labels.
        self.X, self.Y = sparse("X", parts), sparse("Y", parts).toarray().astype(np.int64)

    def fit(self) -> None:
        self.model.fit(self.X, self.Y)

    def answer(self, **parts: np.ndarray) -> dict[str, np.ndarray]:
        return {"labels": self.model.predict(sparse("X", parts)).astype(np.uint8)}
