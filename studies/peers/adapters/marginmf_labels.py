"""Our own label methods."""

from typing import Any

import numpy as np

import marginmf.labels
from studies.peers.adapters.common import sparse

PACKAGES = ("marginmf", "numpy", "scipy", "numba", "scikit-learn")


class Classifier:
    """A classifier by name."""

    def __init__(self, threads: int, classifier: str, **options: Any) -> None:
        made = getattr(marginmf.labels, classifier)(**options)
        free = {"n_jobs": threads, "random_state": 0}
        self.model = made.set_params(
            **{name: value for name, value in free.items() if name in made.get_params()}
        )

    def prepare(self, **parts: np.ndarray) -> None:
        self.X, self.Y = sparse("X", parts), sparse("Y", parts)

    def fit(self) -> None:
        self.model.fit(self.X, self.Y)

    def answer(self, **parts: np.ndarray) -> dict[str, np.ndarray]:
        labels = self.model.predict(sparse("X", parts))
        dense = labels.toarray() if hasattr(labels, "toarray") else np.asarray(labels)
        return {"labels": dense.astype(np.uint8)}
