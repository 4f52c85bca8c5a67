"""Label models whose parameters, targets or matrices were changed: a sentence, and no model."""

import numpy as np
import pytest
from tampering import (
    attribute,
    both,
    document,
    find,
    find_csr,
    inside,
    objects_more,
    param,
    place,
    rename_class,
    rows_less,
    tensor,
    without,
)


def names(text):
    return tensor("targets_.classes", lambda _: np.frombuffer(text, np.uint8))


COUNTS = {"labels": 5, "features": 7, "rows": 40}
NO_THRESHOLDS = {"lowest_threshold": None, "highest_threshold": None}

CASES = {
    # counts and classes
    "counts of ratings": (
        "mlknn",
        document("counts", {"users": 1, "items": 1, "ratings": 1, "levels": 2}),
        "its counts cannot be understood",
    ),
    "counts in words": (
        "mlknn",
        document("counts", {**COUNTS, **NO_THRESHOLDS, "labels": "five"}),
        "its counts cannot be understood",
    ),
    "false counts": (
        "mlknn",
        document("counts", {**COUNTS, **NO_THRESHOLDS}),
        "its counts are not those of its model",
    ),
    "scikit-learn alone": ("mlknn", rename_class("LinearSVC"), "'LinearSVC' is not an estimator"),
    "foreign class": ("mlknn", rename_class("Pipeline"), "'Pipeline' is not an estimator"),
    "ratings model of labels": ("mlknn", rename_class("HMF"), "its counts cannot be understood"),
    "other method": ("mlknn", rename_class("PLST"), "PLST has no parameter 'n_neighbors'"),
    "foreign estimator inside": (
        "tuned ridge",
        param("estimator", {"object": ["Pipeline", {"steps": []}, {}]}),
        "'Pipeline' is not a class that a model can have parts of",
    ),
    "parameter that scikit-learn does not have": (
        "tuned ridge",
        param("estimator", {"object": ["RidgeClassifier", {"exec": "1"}, {}]}),
        "RidgeClassifier has no parameter 'exec'",
    ),
    "attribute that scikit-learn does not have": (
        "tuned ridge",
        inside("estimator_", "object", 2, "predict")("x"),
        "RidgeClassifier has no attribute 'predict'",
    ),
    # parameters that would fail later
    "decision of nothing": ("mlknn", param("decision", "best"), "cannot be used .decision='best'"),
    "measure of nothing": ("mlknn", param("tune_for", []), "cannot be used .tune_for="),
    "top1 in words": (
        "mlknn",
        param("top1_if_empty", "yes"),
        "cannot be used .top1_if_empty='yes'",
    ),
    "one fold": ("mlknn", param("cv", 1), "cannot be used .cv=1"),
    "no neighbours": ("mlknn", param("n_neighbors", 0), "cannot be used .n_neighbors=0"),
    "vote of nothing": ("mlchmf", param("vote", "loud"), "cannot be used .vote='loud'"),
    "rank of nothing": ("grople", param("n_factors", "many"), "cannot be used .n_factors="),
    "splitter that is no clusterer": (
        "mlchmf",
        both(param("splitter", {"object": ["LBFGS", {}]}), objects_more(1)),
        r"cannot be used .splitter=LBFGS\(memory=5\)",
    ),
    "estimator that is none": (
        "tuned ridge",
        both(param("estimator", 7), objects_more(-1)),
        "cannot be used .estimator=7",
    ),
    "estimator without an estimator": (
        "tuned svm",
        both(
            param("estimator", {"object": ["OneVsRestClassifier", {"estimator": 7}, {}]}),
            objects_more(-1),
        ),
        "the parameters of DecisionTuned cannot be used",
    ),
    # targets, thresholds and features
    "threshold that is no number": ("mlknn", place("thresholds_", 0, np.nan), "no threshold"),
    "threshold before all": ("mlknn", place("thresholds_", 0, -np.inf), "no threshold"),
    "threshold too few": (
        "mlknn",
        rows_less("thresholds_"),
        r"MLkNN\.thresholds_ has the shape \(4,\), which does not fit \(labels\)",
    ),
    "no thresholds": ("mlknn", without("thresholds_"), "thresholds_ is missing"),
    "no targets": ("mlknn", attribute("targets_", 7), "no object|which labels it predicts"),
    "targets that are neither": (
        "mlknn",
        inside("targets_", "object", 1, "vector")("no"),
        "does not say which labels it predicts",
    ),
    "answers in text": (
        "mlknn",
        inside("targets_", "object", 1, "dtype")({"dtype": "<U3"}),
        r"targets_\.dtype is <U3, which answers cannot have",
    ),
    "classes too few": ("mlknn", rows_less("targets_.classes"), "does not fit"),
    "classes on two axes": (
        "mlknn",
        tensor("targets_.classes", lambda array: array[:, None]),
        r"targets_\.classes has the shape \(5, 1\)",
    ),
    "classes that are not text": ("ridge", names(b"[1, 2]"), "a name is not text"),
    "classes that are no list": ("ridge", names(b'{"a": 1}'), "the names are not a list"),
    "classes that are not JSON": ("ridge", names(b"['a']"), "list of names is not valid JSON"),
    "classes of one axis more": (
        "ridge",
        tensor("targets_.classes", lambda array: array[None]),
        "the names are not a list",
    ),
    "other classes": (
        "ridge",
        attribute("classes_", {"text": {"tensor": "others"}}),
        "the array 'others' is missing",
    ),
    "no features": ("mlknn", attribute("n_features_in_", 0), "how many features it wants"),
    "features in words": ("mlknn", attribute("n_features_in_", "7"), "how many features it wants"),
    "another number of features": ("mlknn", attribute("n_features_in_", 8), r"\(rows, features\)"),
    "names of features that are numbers": (
        "mlknn",
        both(
            attribute("feature_names_in_", {"array": {"tensor": "more"}}),
            lambda parts: parts.tensors.update(more=np.arange(7)),
        ),
        "feature_names_in_ are not text",
    ),
    # sparse matrices
    "column that does not exist": (
        "mlknn",
        place("neighbours_.stored_.indices", 3, 7),
        "entries in columns that do not exist",
    ),
    "column before the first": (
        "mlknn",
        place("neighbours_.stored_.indices", 3, -1),
        "entries in columns that do not exist",
    ),
    "column twice": (
        "mlknn",
        lambda parts: place(
            "neighbours_.stored_.indices", 0, int(parts.tensors["neighbours_.stored_.indices"][1])
        )(parts),
        "not in the order of the columns",
    ),
    "rows that go back": (
        "mlknn",
        place("neighbours_.stored_.indptr", 3, 10**6),
        "not divided among its rows",
    ),
    "rows that end late": (
        "mlknn",
        place("neighbours_.stored_.indptr", -1, 10**6),
        "not divided among its rows",
    ),
    "rows too few": ("mlknn", rows_less("neighbours_.stored_.indptr"), "not divided among its"),
    "values too few": ("mlknn", rows_less("neighbours_.stored_.data"), "other values than entries"),
    "values that are not finite": (
        "mlknn",
        place("neighbours_.stored_.data", 0, np.inf),
        r"neighbours_\.stored_ has numbers that are not finite",
    ),
    "values that overflow": (
        "mlknn",
        place("neighbours_.stored_.data", 0, 1e200),
        "neighbours_ has rows that are too long to be compared",
    ),
    "values of another type": (
        "mlknn",
        both(
            tensor("neighbours_.stored_.data", lambda array: array.view(np.uint64)),
            lambda parts: find(parts.document, "neighbours_.stored_.data").update(dtype="<M8[s]"),
        ),
        "does not fit its tensor|other values than entries",
    ),
    "indices that are floats": (
        "mlknn",
        both(
            tensor("neighbours_.stored_.indices", lambda array: array.astype(np.float64)),
            lambda parts: find(parts.document, "neighbours_.stored_.indices").pop("dtype"),
        ),
        "indices of unknown types",
    ),
    "shape of three axes": (
        "mlknn",
        lambda parts: find_csr(parts.document, "neighbours_.stored_.data").update(shape=[40, 7, 1]),
        "has not two axes",
    ),
    "shape without end": (
        "mlknn",
        lambda parts: find_csr(parts.document, "neighbours_.stored_.data").update(
            shape=[40, 2**80]
        ),
        "a sparse matrix has the shape",
    ),
    "matrix of other parts": (
        "mlknn",
        lambda parts: find_csr(parts.document, "neighbours_.stored_.data").update(format="csc"),
        "a sparse matrix cannot be understood",
    ),
}


@pytest.mark.parametrize(("name", "tamper", "sentence"), CASES.values(), ids=CASES)
def test_hostile_label_models_get_a_sentence(name, tamper, sentence, refused):
    refused(name, tamper, sentence)
