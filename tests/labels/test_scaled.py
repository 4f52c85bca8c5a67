import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import marginmf
from label_contracts import LabelsEstimatorContract
from marginmf.datasets import make_labels
from marginmf.labels import DecisionTuned, GroPLE, RidgeEmbedding, Scaled
from marginmf.labels.wrappers import scale_features

DATA = make_labels(150, 12, 5, random_state=0)
X = DATA.X * np.logspace(-2, 3, 12) + np.arange(12)
Y = DATA.Y.toarray()


def model(**rule) -> GroPLE:
    return GroPLE(n_factors=3, n_groups=2, random_state=0, **rule)


class TestScaled(LabelsEstimatorContract):
    grid = {"estimator__reg": (0.1, 1.0)}  # noqa: RUF012

    def make(self, **params):
        return Scaled(RidgeEmbedding(0.1), **params)


def test_it_is_the_estimator_on_scaled_features() -> None:
    fitted = Scaled(model(), decision="sign").fit(X, Y)
    scaler = MinMaxScaler()
    inside = model(decision="sign").fit(scaler.fit_transform(X), Y)
    new = X[::-1] * 1.5
    np.testing.assert_allclose(
        fitted.decision_function(new), inside.decision_function(scaler.transform(new)), atol=1e-4
    )
    np.testing.assert_array_equal(fitted.predict(new), inside.predict(scaler.transform(new)))


@pytest.mark.parametrize("decision", ["global", "per_label"])
def test_features_between_0_and_1_are_left_alone_and_thresholds_are_the_same(decision) -> None:
    between = MinMaxScaler().fit_transform(X)
    between[between.argmax(axis=0), np.arange(12)] = 1.0  # to the last bit
    outside = Scaled(model(), decision=decision, cv=2).fit(between, Y)
    inside = model(decision=decision, cv=2).fit(between, Y)
    np.testing.assert_array_equal(outside.thresholds_, inside.thresholds_)
    np.testing.assert_array_equal(outside.predict(between), inside.predict(between))


def test_the_estimator_inside_is_a_fitted_one_of_its_own() -> None:
    fitted = Scaled(model(), decision="global").fit(X, Y)
    between = scale_features(X, fitted.offset_, fitted.factor_)
    np.testing.assert_array_equal(fitted.estimator_.predict(between).toarray(), fitted.predict(X))


def test_the_decision_rule_is_that_of_the_estimator_inside_unless_it_has_its_own() -> None:
    inner = Scaled(model(decision="sign", top1_if_empty=True, cv=2, calibrate=True)).fit(X, Y)
    assert not inner.thresholds_.any()
    assert inner.top1_if_empty_ is True
    assert inner.predict_proba(X).shape == Y.shape
    own = Scaled(model(), decision="sign", top1_if_empty=True, cv=2, calibrate=True).fit(X, Y)
    np.testing.assert_array_equal(inner.predict(X), own.predict(X))
    np.testing.assert_array_equal(inner.predict_proba(X), own.predict_proba(X))
    both = Scaled(DecisionTuned(RidgeEmbedding(decision="sign")))
    assert both.fit(X, Y).estimator_.decision == "sign"
    assert both.decision is None


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (
            Scaled(model(decision="sign"), decision="global"),
            "Scaled has decision='global', but the GroPLE inside has decision='sign'",
        ),
        (
            DecisionTuned(RidgeEmbedding(top1_if_empty=True), top1_if_empty=False),
            "DecisionTuned has top1_if_empty=False, but the RidgeEmbedding inside has "
            "top1_if_empty=True",
        ),
        (
            Scaled(DecisionTuned(RidgeEmbedding(cv=5)), cv=4),
            "Scaled has cv=4, but the DecisionTuned inside has cv=5",
        ),
    ],
)
def test_two_different_rules_are_refused(estimator, said) -> None:
    with pytest.raises(ValueError, match=f"{said}: set it in one of them"):
        estimator.fit(X, Y)


def test_sparse_features_give_the_same_answer() -> None:
    mixed = X.copy()
    mixed[::3, :6] = 0  # values on both sides of zeros
    mixed[:, 7] = 0
    dense = Scaled(model(), decision="sign").fit(mixed, Y)
    sparse = Scaled(model(), decision="sign").fit(csr_array(mixed), Y)
    np.testing.assert_allclose(
        dense.decision_function(mixed), sparse.decision_function(csr_array(mixed)), atol=1e-4
    )


def test_counts_stay_sparse() -> None:
    words = csr_array(np.random.default_rng(0).poisson(0.1, (50, 30)).astype(float))
    fitted = Scaled(model(), decision="sign").fit(words, Y[:50])
    assert not fitted.offset_.any()
    assert scale_features(words, fitted.offset_, fitted.factor_).nnz == words.nnz


def test_a_feature_that_is_always_the_same_becomes_zero() -> None:
    constant = X.copy()
    constant[:, 0], constant[:, 1] = 7.3, 0.0
    fitted = Scaled(model(), decision="sign").fit(constant, Y)
    between = scale_features(constant, fitted.offset_, fitted.factor_)
    assert not between[:, :2].any()
    np.testing.assert_allclose(between[:, 2:].min(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(between[:, 2:].max(axis=0), 1)
    assert np.isfinite(fitted.decision_function(constant * 1e6)).all()


def test_a_vector_of_classes_is_learned_too() -> None:
    classes = np.where(Y[:, 0] == 1, "yes", "no")
    fitted = Scaled(model()).fit(X, classes)
    assert set(fitted.predict(X)) <= {"yes", "no"}
    assert (fitted.predict(X) == classes).mean() > 0.6


def test_a_classifier_of_scikit_learn_goes_inside_decision_tuned() -> None:
    tuned = Scaled(DecisionTuned(RidgeClassifier()), decision="global").fit(X, Y)
    pipeline = make_pipeline(MinMaxScaler(), RidgeClassifier()).fit(X, Y)
    np.testing.assert_allclose(
        tuned.estimator_._scores(scale_features(X, tuned.offset_, tuned.factor_)),
        pipeline.decision_function(X),
        atol=1e-8,
    )
    with pytest.raises(ValueError, match=r"is not a method of marginmf\.labels; for a classifier"):
        Scaled(LogisticRegression()).fit(X, Y)


def test_faults_of_the_estimator_inside_are_found_at_once() -> None:
    with pytest.raises(ValueError, match="n_factors"):
        Scaled(GroPLE(n_factors=-1)).fit(X, Y)


def test_a_clone_is_not_fitted_and_parameters_reach_inside() -> None:
    fitted = Scaled(model(), decision="sign").fit(X, Y)
    fresh = clone(fitted).set_params(estimator__n_factors=2)
    assert not hasattr(fresh, "estimator_")
    assert fresh.estimator.n_factors == 2
    assert fitted.estimator.n_factors == 3


def test_the_scale_is_kept_in_the_file(tmp_path) -> None:
    fitted = Scaled(DecisionTuned(RidgeClassifier()), decision="global").fit(X, Y)
    fitted.save(tmp_path / "m.marginmf")
    again = marginmf.load(tmp_path / "m.marginmf")
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
