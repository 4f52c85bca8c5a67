"""PECOS: linear classifiers in a tree of labels (XR-Linear)."""

from typing import Any

import numpy as np
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel

from studies.peers.adapters.common import Labels

PACKAGES = ("libpecos", "scikit-learn", "numpy", "scipy")


class Linear(Labels):
    """XR-Linear; it ranks labels, so those with a score above a ``threshold`` are predicted."""

    def __init__(self, threads: int, threshold: float = 0.5, **options: Any) -> None:
        self.model = self
        self.threads, self.threshold, self.options = threads, threshold, options

    def as_labels(self, Y: Any) -> Any:
        return Y.astype(np.float32)

    def fit(self) -> None:
        X = self.X.astype(np.float32)
        clusters = Indexer.gen(LabelEmbeddingFactory.create(self.Y, X), threads=self.threads)
        options = {"threads": self.threads, **self.options}
        self.tree = XLinearModel.train(X, self.Y, C=clusters, **options)

    def predict(self, X: Any) -> np.ndarray:
        # No label is cut off from the beam that it is searched with.
        every = {"only_topk": self.Y.shape[1], "beam_size": self.Y.shape[1]}
        scores = self.tree.predict(X.astype(np.float32), threads=self.threads, **every)
        likely: np.ndarray = scores.toarray() > self.threshold
        return likely
