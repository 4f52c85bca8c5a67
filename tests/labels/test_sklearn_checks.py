"""Every label estimator passes scikit-learn's own checks of estimators."""

from contextlib import suppress
from unittest import SkipTest

import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginmf.labels import METHODS, MLCHMF, DecisionTuned, GroPLE, RidgeEmbedding, Scaled

# The two methods whose fits take longest decide by sign, and trees are small; nothing else differs
# from the defaults.
ESTIMATORS = [
    MLCHMF(max_depth=2, max_iter=10, decision="sign"),
    GroPLE(decision="sign"),
    Scaled(RidgeEmbedding()),
    DecisionTuned(RidgeClassifier()),
    *(kind() for kind in METHODS.values() if kind not in (MLCHMF, GroPLE)),
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
