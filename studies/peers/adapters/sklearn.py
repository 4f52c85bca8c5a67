"""scikit-learn's label methods."""

from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from studies.peers.adapters.common import Labels

PACKAGES = ("scikit-learn", "numpy", "scipy")


class OneVsRest(Labels):
    """A linear support vector machine for every label."""

    def __init__(self, threads: int, **options: Any) -> None:
        self.model = OneVsRestClassifier(LinearSVC(**options), n_jobs=threads)

    def as_labels(self, Y: Any) -> Any:
        # int64: scikit-learn goes wrong on small integers with more than 128 labels.
        return Y.toarray().astype(np.int64)


class Forest(Labels):
    """A forest of a hundred trees for all labels at once."""

    def __init__(self, threads: int, forest: str, **options: Any) -> None:
        kinds = {"ExtraTrees": ExtraTreesClassifier, "RandomForest": RandomForestClassifier}
        self.model = kinds[forest](random_state=0, n_jobs=threads, **options)
