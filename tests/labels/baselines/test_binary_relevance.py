"""Binary relevance gives what one classifier a label gives by itself."""

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from label_contracts import accuracy, labelled
from marginmf.labels import BinaryRelevance
from marginmf.labels.order import canonical_order

X, Y = labelled()


@pytest.mark.parametrize(
    "estimator",
    [
        LinearSVC(C=0.3, fit_intercept=False),
        LogisticRegression(),
        RidgeClassifier(),
        Perceptron(random_state=0),
        SVC(kernel="linear"),
    ],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_linear_classifiers_become_one_matrix(estimator, form) -> None:
    model = BinaryRelevance(estimator, decision="sign").fit(form(X), Y)
    assert model.coef_.shape == (5, 8)
    assert not hasattr(model, "estimators_")
    order = canonical_order(X, csr_array(Y.astype(float))).rows
    for label in range(5):
        own = estimator.fit(form(X[order]), Y[order, label])
        np.testing.assert_allclose(
            model.decision_function(form(X))[:, label], own.decision_function(form(X)), atol=1e-9
        )


@pytest.mark.parametrize(
    "estimator",
    [SVC(), BernoulliNB(), DecisionTreeClassifier(max_depth=3, random_state=0), GaussianNB()],
    ids=lambda each: type(each).__name__,
)
def test_other_classifiers_are_kept(estimator) -> None:
    odd = np.column_stack([np.zeros(len(Y), int), Y, np.ones(len(Y), int)])
    model = BinaryRelevance(estimator).fit(X, odd)
    assert [each is None for each in model.estimators_] == [True, *[False] * 5, True]
    assert not hasattr(model, "coef_")
    predicted = model.predict(X)
    assert not predicted[:, 0].any()
    assert predicted[:, -1].all()
    assert accuracy(odd, predicted) > 0.6


class Squared(LinearSVC):
    """A classifier whose scores are not what its weights say."""

    def decision_function(self, X):
        scores = super().decision_function(X)
        return np.sign(scores) * scores**2


def test_weights_are_not_believed_if_scores_are_others() -> None:
    model = BinaryRelevance(Squared(), decision="sign").fit(X, Y)
    plain = BinaryRelevance(LinearSVC(), decision="sign").fit(X, Y).decision_function(X)
    assert not hasattr(model, "coef_")
    np.testing.assert_allclose(model.decision_function(X), np.sign(plain) * plain**2)


def test_a_fit_with_other_classifiers_forgets_the_weights() -> None:
    model = BinaryRelevance().fit(X, Y)
    assert hasattr(model, "coef_")
    model.set_params(estimator=BernoulliNB()).fit(X, Y)
    assert not hasattr(model, "coef_")
    assert len(model.estimators_) == 5


def test_labels_that_never_vary_have_an_intercept_alone() -> None:
    odd = np.column_stack([np.zeros(len(Y), int), Y, np.ones(len(Y), int)])
    model = BinaryRelevance(decision="sign").fit(X, odd)
    assert not model.coef_[[0, -1]].any()
    assert model.intercept_[[0, -1]].tolist() == [-1, 1]
    np.testing.assert_array_equal(
        model.coef_[1:-1], BinaryRelevance(decision="sign").fit(X, Y).coef_
    )


def test_a_backend_of_joblib_can_be_chosen() -> None:
    alone = BinaryRelevance(BernoulliNB()).fit(X, Y)
    with parallel_config(backend="threading"):
        other = BinaryRelevance(BernoulliNB(), n_jobs=3).fit(X, Y)
    np.testing.assert_array_equal(alone.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"estimator": "svm"}, r"estimator='svm' is not a classifier.*LinearSVC\(\)"),
        ({"estimator": LinearSVC}, "is not a classifier"),
        ({"estimator": KMeans()}, "KMeans has neither decision_function nor"),
        ({"n_jobs": 1.5}, "n_jobs=1.5 must be a whole number"),
    ],
)
def test_bad_parameters_are_refused(params, said) -> None:
    with pytest.raises(ValueError, match=said):
        BinaryRelevance(**params).fit(X, Y)


def test_whether_sparse_features_are_taken_depends_on_the_classifier() -> None:
    assert BinaryRelevance().__sklearn_tags__().input_tags.sparse
    assert not BinaryRelevance(GaussianNB()).__sklearn_tags__().input_tags.sparse


def test_processes_do_not_repeat_what_each_of_them_warns_of(capfd) -> None:
    model = BinaryRelevance(LogisticRegression(max_iter=1), decision="sign", n_jobs=2)
    with pytest.warns(ConvergenceWarning, match="failed to converge") as said:
        model.fit(X, Y)
    assert len(said) == 1
    assert capfd.readouterr().err == ""
