"""scikit-multilearn, kept alive as scikit-multilearn-ng."""

from typing import Any

from sklearn.svm import LinearSVC
from skmultilearn import adapt
from skmultilearn.problem_transform import BinaryRelevance

from studies.peers.adapters.common import Labels

PACKAGES = ("scikit-multilearn-ng", "scikit-learn", "numpy", "scipy")


class Classifier(Labels):
    """A classifier by name; ``BinaryRelevance`` has linear support vector machines."""

    def __init__(self, threads: int, classifier: str, **options: Any) -> None:
        if classifier == "BinaryRelevance":
            self.model = BinaryRelevance(LinearSVC(**options))
        else:
            self.model = getattr(adapt, classifier)(**options)
