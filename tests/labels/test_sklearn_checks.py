"""Every label estimator passes scikit-learn's own checks of estimators."""

from contextlib import suppress
from unittest import SkipTest

import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginmf.labels import (
    CSSP,
    METHODS,
    MLCHMF,
    SSJDR,
    DecisionTuned,
    GroPLE,
    KernelFeatures,
    LabelEnsemble,
    RidgeEmbedding,
    Scaled,
)

# The methods whose fits take longest decide by sign, trees and iterations are few, and of the three
# classes that have to be told apart all are kept; nothing else differs from the defaults.
CHANGED = [
    MLCHMF(max_depth=2, max_iter=10, decision="sign"),
    GroPLE(decision="sign"),
    SSJDR(max_iter=20, decision="sign"),
    CSSP(n_labels_kept=1.0),
    LabelEnsemble(("ridge", "kernel")),
]
ESTIMATORS = [
    *CHANGED,
    Scaled(RidgeEmbedding()),
    KernelFeatures(RidgeEmbedding()),
    DecisionTuned(RidgeClassifier()),
    *(kind() for kind in METHODS.values() if kind not in map(type, CHANGED)),
]


@parametrize_with_checks(ESTIMATORS)
@pytest.mark.filterwarnings("default")
def test_scikit_learn_checks(estimator, check):
    if check.func.__name__ == "check_classifier_multioutput":
        # It wants labels to be those that are more likely than not, but thresholds are chosen for
        # what label sets are measured by.
        estimator.set_params(decision="sign")
    with suppress(SkipTest):  # the check says that it is not for this estimator
        check(estimator)
