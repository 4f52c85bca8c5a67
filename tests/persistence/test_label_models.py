"""Label models in files: loaded as they were to the last bit, described, and refused in words."""

import os
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array, csr_matrix
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.mixture import GaussianMixture
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

import marginmf
from label_models import SVM, estimators, labelled
from marginmf._utils.saved import SAVED
from marginmf._utils.tensor_files import Allowance
from marginmf.labels import (
    MLCHMF,
    BinaryRelevance,
    DecisionTuned,
    GroPLE,
    MLkNN,
    RidgeEmbedding,
)
from marginmf.labels.base import LabelsEstimator
from marginmf.persistence import LabelCounts, describe, save
from marginmf.persistence.codec import ModelDecoder, ModelEncoder

ESTIMATORS = estimators()
X, Y = labelled()
NAMES = np.array(["rock", "jazz", "folk", "opera", "blues"])
FRAME = pd.DataFrame(X, columns=[f"feature {k}" for k in range(X.shape[1])])


def saved_and_loaded(model, path):
    model.save(path)
    return marginmf.load(path)


def dense(matrix):
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def assert_same_answers(model, copy, rows):
    scores, others = model.decision_function(rows), copy.decision_function(rows)
    assert (scores.shape, scores.tobytes()) == (others.shape, others.tobytes())
    answers, theirs = model.predict(rows), copy.predict(rows)
    assert type(answers) is type(theirs)
    assert answers.dtype == theirs.dtype
    np.testing.assert_array_equal(dense(answers), dense(theirs))


# --- round trips -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_loaded_model_is_the_same_to_the_last_bit(name, path):
    model = clone(ESTIMATORS[name]).fit(X, Y)
    copy = saved_and_loaded(model, path)
    assert repr(copy) == repr(model)
    assert vars(copy).keys() == vars(model).keys()
    for rows in (X, X[:1], csr_array(X), X.astype(np.float32)):
        assert_same_answers(model, copy, rows)
    first = path.read_bytes()
    copy.save(path)
    assert path.read_bytes() == first


DATA = {
    "sparse features": (csr_matrix(X), Y),
    "sparse labels": (X, csc_array(Y.astype(np.int8))),
    "all sparse, float32": (csr_array(X.astype(np.float32)), csr_array(Y.astype(bool))),
    "one label": (X, Y[:, :1]),
    "labels that never vary": (X, Y[:, [1, 3]]),
    "two classes": (X, np.array(["no", "yes"])[Y[:, 0]]),
    "two classes in objects": (X, np.array(["no", "yes"], object)[Y[:, 0]]),
    "three classes": (X, Y[:, 0] + Y[:, 2] - 1.0),
    "booleans": (X, Y[:, 2].astype(bool)),
    "one class": (X, np.full(len(X), 7)),
    "names": (FRAME, pd.DataFrame(Y, columns=NAMES)),
    "one row": (X[:1], Y[:1]),
}
METHODS = {
    name: clone(ESTIMATORS[name]).set_params(decision=decision)
    for name, decision in {
        "mlchmf": "sign",
        "grople": "sign",
        "chains": "sign",
        "mlknn": "per_label",
        "scaled": "global",
    }.items()
}


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("method", METHODS)
def test_features_and_targets_of_every_kind(method, kind, path):
    features, targets = DATA[kind]
    model = clone(METHODS[method]).fit(features, targets)
    copy = saved_and_loaded(model, path)
    assert_same_answers(model, copy, features)
    assert copy.classes_.dtype == model.classes_.dtype
    assert copy.classes_.tolist() == model.classes_.tolist()
    assert copy.classes_ is copy.targets_.classes


def test_names_of_features_are_kept_and_asked_for(path):
    copy = saved_and_loaded(RidgeEmbedding().fit(FRAME, Y), path)
    assert copy.feature_names_in_.dtype == object
    assert copy.feature_names_in_.tolist() == list(FRAME.columns)
    assert type(copy.feature_names_in_[0]) is str
    with pytest.raises(ValueError, match="feature names should match"):
        copy.predict(FRAME[FRAME.columns[::-1]])


def test_a_loaded_model_can_be_fitted_cloned_and_pickled(path):
    model = clone(ESTIMATORS["mlchmf splitter"]).fit(X, Y)
    copy = saved_and_loaded(model, path)
    assert_same_answers(model, pickle.loads(pickle.dumps(copy)), X)
    assert_same_answers(model, clone(copy).fit(X, Y), X)
    assert_same_answers(model, copy.fit(X, Y), X)
    assert str(copy.tree_) == str(model.tree_)


def test_an_estimator_inside_predicts_by_itself(path):
    for name in ("tuned ridge", "tuned svm", "tuned sgd", "tuned plst"):
        model = clone(ESTIMATORS[name]).fit(X, Y)
        copy = saved_and_loaded(model, path)
        inside = copy.estimator_.predict(X)
        np.testing.assert_array_equal(dense(inside), dense(model.estimator_.predict(X)))
        assert copy.best_params_ == model.best_params_


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_sparse_matrices_come_back_as_they_were(data):
    shape = data.draw(st.tuples(st.integers(0, 6), st.integers(1, 6)))
    cells = st.sampled_from([0.0, 1.0, -2.5, 1e-300, np.inf])
    flat = data.draw(st.lists(cells, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    dtype = data.draw(st.sampled_from([np.float32, np.float64, np.bool_]))
    matrix = csr_array(np.array(flat).reshape(shape).astype(dtype))
    width = data.draw(st.sampled_from([np.int32, np.int64]))
    matrix.indices, matrix.indptr = matrix.indices.astype(width), matrix.indptr.astype(width)
    encoder = ModelEncoder()
    node = encoder.encode([matrix, matrix], "stored")
    one, two = ModelDecoder(encoder.tensors, Allowance(0)).decode(node)
    assert one is two
    assert one.shape == matrix.shape
    for part in ("data", "indices", "indptr"):
        mine, theirs = getattr(matrix, part), getattr(one, part)
        assert (mine.dtype, mine.tobytes()) == (theirs.dtype, theirs.tobytes())


#: No name has a null character.
texts = st.text(st.characters(exclude_characters="\0"))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.one_of(texts, texts.map(np.str_)), max_size=5))
def test_names_that_are_objects_come_back_as_they_were(names):
    array = np.empty(len(names), object)
    array[:] = names
    encoder = ModelEncoder()
    node = encoder.encode(array, "names")
    restored = ModelDecoder(encoder.tensors, Allowance(0)).decode(node)
    assert restored.dtype == object
    assert all(type(name) is str for name in restored)
    assert restored.tolist() == names


# --- what cannot be saved ----------------------------------------------------------------------

REFUSED = {
    "forest": (
        lambda: DecisionTuned(RandomForestClassifier(2, max_depth=1)),
        "estimator is a RandomForestClassifier, and a model file cannot hold it.*LinearSVC.*joblib",
    ),
    "forest inside": (
        lambda: DecisionTuned(OneVsRestClassifier(RandomForestClassifier(2, max_depth=1))),
        r"estimator\.estimator is a RandomForestClassifier",
    ),
    "kernel": (lambda: BinaryRelevance(SVC()), "estimator is a SVC, and a model file cannot"),
    "mixture": (
        lambda: MLCHMF(2, splitter=GaussianMixture(2), max_iter=2),
        "splitter is a GaussianMixture",
    ),
    "code": (
        lambda: GroPLE(2, grouping=KMeans(2, init=lambda X, k, random_state: X[:k], n_init=1)),
        r"grouping\.init is <function",
    ),
}


@pytest.mark.parametrize(("make", "sentence"), REFUSED.values(), ids=REFUSED)
def test_estimators_that_a_file_cannot_hold_get_a_sentence(make, sentence, path):
    model = make().fit(X, Y)
    path.write_text("as it was")
    with pytest.raises(ValueError, match=sentence) as caught:
        model.save(path)
    assert "\n" not in str(caught.value)
    assert path.read_text() == "as it was"
    assert os.listdir(path.parent) == [path.name]


def test_a_model_that_was_changed_out_of_shape_is_not_saved(path):
    model = MLkNN(3).fit(X, Y)
    model.posterior_ = model.posterior_[:, :-1]
    with pytest.raises(ValueError, match=r"not be loaded again: MLkNN\.posterior_ is for another"):
        model.save(path)
    model = MLkNN(3).fit(csr_array(X), Y)
    model.neighbours_.stored_.indices[:2] = model.neighbours_.stored_.indices[1::-1]
    with pytest.raises(ValueError, match=r"neighbours_\.stored_ cannot be in a model file: a spar"):
        model.save(path)
    with pytest.raises(NotFittedError):
        MLkNN().save(path)
    with pytest.raises(ValueError, match="A RidgeClassifier is not a model of marginmf"):
        save(RidgeClassifier().fit(X, Y[:, 0]), path)


def test_a_fitted_clusterer_among_the_parameters_is_kept_unfitted(path):
    clusterer = KMeans(2, n_init=1, random_state=0).fit(X)
    model = GroPLE(2, grouping=clusterer).fit(X, Y)
    copy = saved_and_loaded(model, path)
    assert repr(copy.grouping) == repr(clusterer)
    assert not hasattr(copy.grouping, "cluster_centers_")
    assert_same_answers(model, copy, X)


def test_only_changed_parameters_of_scikit_learn_are_in_the_file(path):
    """So that a file does not depend on which parameters a version of scikit-learn has."""
    encoder = ModelEncoder()
    name, params, fitted = encoder.encode(SVM, "estimator")["object"]
    assert (name, fitted) == ("LinearSVC", {})
    assert params.keys() == {"C", "class_weight"}
    fitted = OneVsRestClassifier(LogisticRegression(C=3)).fit(X, Y[:, [0, 2]])
    node = encoder.encode(fitted, "estimator_")
    copy = ModelDecoder(encoder.tensors, Allowance(0)).decode(node)
    assert repr(copy) == repr(fitted)
    np.testing.assert_array_equal(copy.predict_proba(X), fitted.predict_proba(X))


# --- descriptions ------------------------------------------------------------------------------


def test_a_description_tells_what_is_in_the_file(path):
    model = DecisionTuned(RidgeClassifier(alpha=2.0), decision="per_label").fit(X, Y)
    model.save(path)
    about = describe(path)
    finite = model.thresholds_[np.isfinite(model.thresholds_)]
    assert about.class_name == "DecisionTuned"
    assert about.counts == LabelCounts(5, 7, 40, finite.min(), finite.max())
    assert repr(about.params["estimator"]) == "RidgeClassifier(alpha=2.0)"
    assert about.params["decision"] == "per_label"


def test_a_description_of_classes_has_no_thresholds(path):
    RidgeEmbedding().fit(X, Y[:, 0] + Y[:, 2]).save(path)
    assert describe(path).counts == LabelCounts(labels=3, features=7, rows=40)


def test_a_description_reads_the_header_alone(path):
    clone(ESTIMATORS["mlchmf"]).fit(csr_array(X), Y).save(path)
    before = describe(path)
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    assert describe(path) == before
    with pytest.raises(ValueError, match="checksum"):
        marginmf.load(path)


def test_every_exported_estimator_is_tested_here():
    kinds = {kind for kind in SAVED.values() if issubclass(kind, LabelsEstimator)}
    assert set(marginmf.labels.METHODS.values()) < kinds
    assert kinds == {type(estimator) for estimator in ESTIMATORS.values()}
