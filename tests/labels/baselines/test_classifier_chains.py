"""Classifier chains: orders, ensembles, and scikit-learn's chain as the oracle."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain
from sklearn.naive_bayes import BernoulliNB
from sklearn.svm import LinearSVC

from label_contracts import accuracy, labelled
from marginmf.labels import BinaryRelevance, ClassifierChains
from marginmf.labels.order import canonical_order

X, Y = labelled()
ORDER = [3, 0, 4, 2, 1]


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("linear", [True, False])
def test_a_chain_is_scikit_learns_chain(form, linear) -> None:
    estimator = LogisticRegression(tol=1e-8) if linear else BernoulliNB()
    model = ClassifierChains(estimator, order=ORDER, decision="sign").fit(form(X), Y)
    rows = canonical_order(X, csr_array(Y.astype(float))).rows
    oracle = ClassifierChain(estimator, order=ORDER).fit(form(X[rows]), Y[rows])
    expected = oracle.decision_function(form(X)) if linear else oracle.predict_proba(form(X)) - 0.5
    np.testing.assert_allclose(model.decision_function(form(X)), expected, atol=1e-10)
    assert hasattr(model, "coef_") == linear
    assert hasattr(model, "estimators_") == (not linear)


def test_frequent_labels_come_first() -> None:
    counts = Y.sum(axis=0)
    (order,) = ClassifierChains().fit(X, Y).orders_
    assert (np.diff(counts[order]) <= 0).all()


def test_of_equally_frequent_labels_the_rows_decide() -> None:
    tied = np.column_stack([np.roll(Y[:, 0], k) for k in range(6)])
    shuffle = np.array([5, 2, 0, 3, 1, 4])
    (order,) = ClassifierChains().fit(X, tied).orders_
    (other,) = ClassifierChains().fit(X, tied[:, shuffle]).orders_
    np.testing.assert_array_equal(order, shuffle[other])


def test_labels_that_never_vary_are_in_no_chain() -> None:
    odd = np.column_stack([np.zeros(len(Y), int), Y, np.ones(len(Y), int)])
    model = ClassifierChains(order=[6, 4, 1, 5, 3, 2, 0], decision="sign").fit(X, odd)
    plain = ClassifierChains(order=ORDER, decision="sign").fit(X, Y)
    np.testing.assert_array_equal(model.orders_, plain.orders_ + 1)
    np.testing.assert_allclose(
        model.decision_function(X)[:, 1:-1], plain.decision_function(X), atol=1e-9
    )


def test_a_label_that_follows_from_another_is_learned_through_the_chain() -> None:
    # The second label is there where the first is not: hard to see in features, easy in a chain.
    x = np.random.default_rng(0).normal(size=(200, 2))
    apart = (x[:, 0] * x[:, 1] > 0).astype(int)
    labels = np.column_stack([x[:, 0] > 0, (x[:, 0] > 0) ^ True, apart]).astype(int)
    model = ClassifierChains(order=[0, 1, 2], decision="sign").fit(x, labels)
    assert model.link_coef_[0, 1, 0] < -0.5
    assert not np.triu(model.link_coef_[0]).any()


@pytest.mark.parametrize("estimator", [None, BernoulliNB()], ids=["svm", "bayes"])
def test_an_ensemble_is_the_mean_of_its_chains(estimator) -> None:
    params = {"estimator": estimator, "decision": "sign"}
    together = ClassifierChains(order="random", n_chains=3, random_state=1, **params).fit(X, Y)
    alone = [ClassifierChains(order=order, **params).fit(X, Y) for order in together.orders_]
    mean = np.mean([each.decision_function(X) for each in alone], axis=0)
    np.testing.assert_allclose(together.decision_function(X), mean, atol=1e-12)
    assert len({tuple(order) for order in together.orders_}) == 3
    assert accuracy(Y, together.predict(X)) > 0.4


def test_random_orders_follow_the_seed_and_not_the_order_of_the_labels() -> None:
    params = {"order": "random", "n_chains": 2, "random_state": 5, "decision": "sign"}
    model, again = (ClassifierChains(**params).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(model.orders_, again.orders_)
    shuffle = np.array([2, 0, 4, 1, 3])
    other = ClassifierChains(**params).fit(X, Y[:, shuffle])
    np.testing.assert_array_equal(model.orders_, shuffle[other.orders_])
    np.testing.assert_allclose(
        other.decision_function(X), model.decision_function(X)[:, shuffle], atol=1e-9
    )


def test_the_first_link_is_binary_relevance() -> None:
    chain = ClassifierChains(LinearSVC(), order=ORDER, decision="sign").fit(X, Y)
    single = BinaryRelevance(LinearSVC(), decision="sign").fit(X, Y)
    np.testing.assert_allclose(chain.coef_[0, 0], single.coef_[ORDER[0]])


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"order": "length"}, "order='length' must be 'frequency', 'random' or a sequence"),
        ({"order": 3}, "order=3 must be 'frequency', 'random' or a sequence"),
        ({"order": [0.5, 1]}, "must be 'frequency', 'random' or a sequence"),
        ({"order": [0, 1, 2, 3, 3]}, "must name each of the 5 labels once"),
        ({"order": [0, 1]}, "must name each of the 5 labels once"),
        ({"n_chains": 0}, "n_chains=0 must be a whole number >= 1"),
        ({"n_chains": 2}, "n_chains=2 chains in the same order would be the same"),
        ({"order": "random", "random_state": "x"}, "random_state='x' cannot seed"),
        ({"estimator": "svm"}, "estimator='svm' is not a classifier"),
    ],
)
def test_bad_parameters_are_refused(params, said) -> None:
    with pytest.raises(ValueError, match=said):
        ClassifierChains(**params).fit(X, Y)
