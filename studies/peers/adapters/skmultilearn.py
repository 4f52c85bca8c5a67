"""scikit-multilearn, kept alive as scikit-multilearn-ng."""

from typing import Any

import numpy as np
from sklearn.svm import LinearSVC
from skmultilearn import adapt
from skmultilearn.problem_transform import BinaryRelevance

from studies.peers.adapters.common import sparse

PACKAGES = ("scikit-multilearn-ng", "scikit-learn", "numpy", "scipy")


class Classifier:
    """A classifier by name; ``BinaryRelevance`` has linear support vector machines."""

    def __init__(self, threads: int, classifier: str, **options: Any) -> None:
        if classifier == "BinaryRelevance":
            self.model = BinaryRelevance(LinearSVC(**options))
        else:
            self.model = getattr(adapt, classifier)(**options)

    def prepare(self, **parts: np.ndarray) -> None:
        self.X, self.Y = sparse("X", parts), sparse("Y", parts).toarray()

    def fit(self) -> None:
        self.model.fit(self.X, self.Y)

    def answer(self, **parts: np.ndarray) -> dict[str, np.ndarray]:
        return {"labels": self.model.predict(sparse("X", parts)).toarray().astype(np.uint8)}
