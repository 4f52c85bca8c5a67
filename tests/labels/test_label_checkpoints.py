"""Label fits that are interrupted anywhere, and called again, end at the same answer."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier

from label_contracts import labelled
from marginmf.checkpoints import Checkpoint
from marginmf.labels import MLCHMF, PLST, DecisionTuned, GroPLE, Scaled
from marginmf.labels.base import LabelsEstimator

X, Y = labelled()
TREE = {"max_depth": 2, "max_iter": 6, "tol": 0.0}
GROUPS = {"n_factors": 3, "n_groups": 2, "max_iter": 6, "random_state": 0}

ESTIMATORS = {
    "mlchmf": MLCHMF(2, decision="sign", random_state=0, **TREE),
    "mlchmf global": MLCHMF(2, cv=2, random_state=0, **TREE),
    "mlchmf of some depth": MLCHMF(2, cv=2, random_state=0, max_iter=6, tol=0.0),
    "mlchmf in threads": MLCHMF(2, cv=2, random_state=0, n_jobs=2, **TREE),
    "mlchmf that keeps nothing": MLCHMF(2, 1e4, decision="sign", random_state=0, **TREE),
    "grople": GroPLE(**GROUPS, decision="sign"),
    "grople global": GroPLE(**GROUPS, cv=2),
    "grople in threads": GroPLE(**GROUPS, cv=2, n_jobs=3),
    "scaled grople": Scaled(GroPLE(**GROUPS), cv=2),
    "candidates": DecisionTuned(
        MLCHMF(2, random_state=0, **TREE), param_grid={"reg": [1.0, 3.0]}, cv=2
    ),
}


def watched(estimator: LabelsEstimator, *callbacks) -> LabelsEstimator:
    """Return the estimator, or the one inside it, with callbacks."""
    inside = "estimator__callbacks" if hasattr(estimator, "estimator") else "callbacks"
    return clone(estimator).set_params(**{inside: list(callbacks)})


def interrupt_after(n: int):
    seen = []

    def callback(progress) -> None:
        if len(seen) == n:
            raise KeyboardInterrupt
        seen.append(progress)

    return callback


def count_iterations(estimator: LabelsEstimator) -> int:
    seen = []
    watched(estimator, seen.append).fit(X, Y)
    return len(seen)


@pytest.mark.parametrize(
    ("name", "form"),
    [*((name, np.asarray) for name in ESTIMATORS), ("mlchmf", csr_array), ("grople", csr_array)],
)
def test_an_interrupted_fit_goes_on_to_the_same_answer(name, form, tmp_path) -> None:
    estimator, path = ESTIMATORS[name], tmp_path / "checkpoint"
    whole, n = clone(estimator).fit(form(X), Y), count_iterations(estimator)
    for k in sorted({n // 3, n - 1}):
        with pytest.raises(KeyboardInterrupt):
            watched(estimator, interrupt_after(k)).fit(form(X), Y, checkpoint=Checkpoint(path, 0.0))
        seen = []
        resumed = watched(estimator, seen.append).fit(form(X), Y, checkpoint=path)
        assert not path.exists()
        assert len(seen) <= n
        scores = resumed.decision_function(form(X))
        np.testing.assert_array_equal(scores, whole.decision_function(form(X)))
        np.testing.assert_array_equal(resumed.thresholds_, whole.thresholds_)
        assert set(vars(resumed)) == set(vars(whole))


def test_finished_nodes_and_folds_are_not_learned_again(tmp_path) -> None:
    path, estimator = tmp_path / "checkpoint", ESTIMATORS["mlchmf global"]
    n = count_iterations(estimator)
    with pytest.raises(KeyboardInterrupt):
        watched(estimator, interrupt_after(n - 3)).fit(X, Y, checkpoint=Checkpoint(path, 0.0))
    seen = []
    watched(estimator, seen.append).fit(X, Y, checkpoint=path)
    assert len(seen) <= 4


@pytest.mark.parametrize("kind", [MLCHMF, GroPLE])
def test_the_generator_of_the_first_call_is_kept(kind, tmp_path) -> None:
    path, seeds = tmp_path / "checkpoint", [np.random.default_rng(seed) for seed in (5, 5, 6)]
    made = [kind(3, decision="sign", max_iter=6, random_state=seed) for seed in seeds]
    whole = made[0].fit(X, Y)
    n = count_iterations(clone(made[1]))
    with pytest.raises(KeyboardInterrupt):
        watched(made[1], interrupt_after(n - 2)).fit(X, Y, checkpoint=Checkpoint(path, 0.0))
    resumed = made[2].fit(X, Y, checkpoint=path)
    np.testing.assert_array_equal(resumed.decision_function(X), whole.decision_function(X))


def test_other_data_or_parameters_are_refused(tmp_path) -> None:
    path, estimator = tmp_path / "checkpoint", ESTIMATORS["grople"]
    with pytest.raises(KeyboardInterrupt):
        watched(estimator, interrupt_after(count_iterations(estimator) - 1)).fit(
            X, Y, checkpoint=Checkpoint(path, 0.0)
        )
    with pytest.raises(ValueError, match=r"a fit with other data \(X\)"):
        clone(estimator).fit(X + 1.0, Y, checkpoint=path)
    with pytest.raises(ValueError, match=r"a fit with other data \(the labels"):
        clone(estimator).fit(X, 1 - Y, checkpoint=path)
    with pytest.raises(ValueError, match="n_factors was 3 and is 4"):
        clone(estimator).set_params(n_factors=4).fit(X, Y, checkpoint=path)


@pytest.mark.parametrize("estimator", [PLST(2), DecisionTuned(RidgeClassifier())])
def test_methods_without_a_minimisation_take_a_checkpoint_too(estimator, tmp_path) -> None:
    path = tmp_path / "checkpoint"
    scores = clone(estimator).fit(X, Y).decision_function(X)
    kept = clone(estimator).fit(X, Y, checkpoint=path)
    np.testing.assert_array_equal(kept.decision_function(X), scores)
    assert not path.exists()
