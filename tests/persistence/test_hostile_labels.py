"""Label models whose files are malicious: a sentence, and no model."""

import numpy as np
import pytest

from tampering import (
    attribute,
    both,
    columns_less,
    document,
    find,
    find_csr,
    inside,
    objects_more,
    param,
    put,
    rename_class,
    rows_less,
    tensor,
    without,
)


def names(text):
    return tensor("targets_.classes", lambda _: np.frombuffer(text, np.uint8))


def node(number, field):
    return inside("tree_", "object", 1, "nodes", number, "object", 1, field)


def kept_name(parts):
    return next(
        name for name in parts.tensors if name.endswith("kept") and len(parts.tensors[name])
    )


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
    "threshold that is no number": ("mlknn", put("thresholds_", 0, np.nan), "no threshold"),
    "threshold before all": ("mlknn", put("thresholds_", 0, -np.inf), "no threshold"),
    "threshold too few": (
        "mlknn",
        rows_less("thresholds_"),
        r"MLkNN\.thresholds_ has the shape \(4,\), which does not fit \(labels\)",
    ),
    "no thresholds": ("mlknn", without("thresholds_"), "thresholds_ is missing"),
    "top1 of nobody": ("mlknn", without("top1_if_empty_"), "top1_if_empty_ is missing"),
    "depth in words": ("mlchmf", param("max_depth", "deep"), "cannot be used .max_depth='deep'"),
    "slope that falls": ("mlknn", put("calibration_.slopes", 0, -1.0), "slopes has a number below"),
    "intercept that is no number": (
        "mlknn",
        put("calibration_.intercepts", 0, np.nan),
        "intercepts has a number that is not finite",
    ),
    "curve too few": (
        "mlknn",
        rows_less("calibration_.slopes"),
        r"calibration_\.slopes has the shape \(4,\), which does not fit \(labels\)",
    ),
    "no targets": ("mlknn", attribute("targets_", 7), "no object|targets_ is of the type int"),
    "targets that are neither": (
        "mlknn",
        inside("targets_", "object", 1, "vector")("no"),
        r"targets_\.vector is of the type str, which it cannot be",
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
    "no features": (
        "mlknn",
        attribute("n_features_in_", 0),
        "is 0, which is no number",
    ),
    "features in words": ("mlknn", attribute("n_features_in_", "7"), "no number of features"),
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
        put("neighbours_.stored_.indices", 3, 7),
        "entries in columns that do not exist",
    ),
    "column before the first": (
        "mlknn",
        put("neighbours_.stored_.indices", 3, -1),
        "entries in columns that do not exist",
    ),
    "column twice": (
        "mlknn",
        lambda parts: put(
            "neighbours_.stored_.indices", 0, int(parts.tensors["neighbours_.stored_.indices"][1])
        )(parts),
        "not in column order",
    ),
    "rows that go back": (
        "mlknn",
        put("neighbours_.stored_.indptr", 3, 10**6),
        "not divided among its rows",
    ),
    "rows that end late": (
        "mlknn",
        put("neighbours_.stored_.indptr", -1, 10**6),
        "not divided among its rows",
    ),
    "rows too few": ("mlknn", rows_less("neighbours_.stored_.indptr"), "not divided among its"),
    "values too few": ("mlknn", rows_less("neighbours_.stored_.data"), "other values than entries"),
    "values that are not finite": (
        "mlknn",
        put("neighbours_.stored_.data", 0, np.inf),
        r"neighbours_\.stored_ has numbers that are not finite",
    ),
    "values that overflow": (
        "mlknn",
        put("neighbours_.stored_.data", 0, 1e200),
        "neighbours_.stored_ has numbers that are not finite, or too large",
    ),
    "values of another type": (
        "mlknn",
        both(
            tensor("neighbours_.stored_.data", lambda array: array.view(np.uint64)),
            lambda parts: find(parts.document, "neighbours_.stored_.data").update(dtype="<M8[s]"),
        ),
        "'<M8.s.' is not the type of an array",
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
    # neighbours
    "labels of other rows": (
        "mlknn",
        both(
            tensor("stored_labels_.indptr", lambda array: np.append(array, array[-1])),
            lambda parts: find_csr(parts.document, "stored_labels_.data").update(shape=[41, 5]),
        ),
        "stored_labels_ are not those of its neighbours",
    ),
    "labels that count twice": (
        "mlknn",
        put("stored_labels_.data", 0, 2.0),
        "stored_labels_ has something else than ones",
    ),
    "probabilities too few": (
        "mlknn",
        columns_less("posterior_"),
        "posterior_ is for another number of neighbours",
    ),
    "neighbours less than none": (
        "mlknn",
        inside("neighbours_", "object", 1, "n_neighbors")(-1),
        "has no neighbours to find",
    ),
    "neighbours without rows": (
        "mlknn",
        inside("neighbours_", "object", 2)({}),
        r"'neighbours_\.stored_\.data' belongs to nothing",
    ),
    # networks and stumps
    "weight that is not finite": (
        "bpmll",
        put("hidden_weights_", (0, 0), np.inf),
        r"hidden_weights_ has a number that is not finite",
    ),
    "threshold of a row in words": (
        "bpmll",
        attribute("threshold_intercept_", "0"),
        "threshold_intercept_ is of the type str",
    ),
    "layers that do not meet": ("bpmll", rows_less("output_weights_"), "does not fit"),
    "feature that no stump can have": (
        "adaboost mr",
        put("stump_features_", 0, 7),
        "stump_features_",
    ),
    "stump of one side": (
        "adaboost mr",
        tensor("stump_values_", lambda array: array[:, :1]),
        r"stump_values_ has the shape \(5, 1, 5\)",
    ),
    "cut that is no number": (
        "adaboost mr",
        put("stump_cuts_", 0, np.nan),
        "stump_cuts_ has a number that is not finite",
    ),
    # trees
    "node at another place": ("mlchmf", node(1, "index")(0), "nodes.1 is not at its"),
    "node that is its own parent": ("mlchmf", node(1, "parent")(1), "nodes.1 is not at its"),
    "node whose parent comes later": (
        "mlchmf",
        node(0, "parent")(5),
        "nodes.0 is not at its position",
    ),
    "node whose parent is nowhere": (
        "mlchmf",
        node(1, "parent")(-2),
        "nodes.1 is not at its position",
    ),
    "tree without nodes": (
        "mlchmf one node",
        both(
            inside("tree_", "object", 1, "nodes")([]),
            lambda parts: [parts.tensors.pop(key) for key in list(parts.tensors) if "node" in key],
        ),
        "no object|is not a list, or is empty",
    ),
    "row that does not exist": (
        "mlchmf",
        lambda parts: put(kept_name(parts), 0, 40)(parts),
        "keeps rows that do not exist",
    ),
    "feature that does not exist": (
        "mlchmf",
        put("tree_.nodes.0.features", 0, 7),
        r"nodes\.0\.features has numbers of features that do not exist",
    ),
    "weights of a feature too few": (
        "mlchmf",
        rows_less("tree_.nodes.0.U"),
        r"nodes\.0\.U has the shape \(7, 2\), which does not fit \(used \+ 1, factors\)",
    ),
    "factors of a label too few": (
        "mlchmf",
        rows_less("tree_.nodes.0.V"),  # in Fortran's order
        r"nodes\.0\.V has the shape \(2, 4\)",
    ),
    "keeper that does not exist": (
        "mlchmf",
        put("keepers_", 0, 99),
        "keepers_ has numbers of nodes that do not exist",
    ),
    "keepers too few": ("mlchmf", rows_less("keepers_"), "keepers_ are not those of its neighb"),
    "nodes with nothing to choose by": (
        "mlchmf",
        both(
            attribute("neighbours_", None),
            lambda parts: parts.tensors.pop("neighbours_.stored_"),
        ),
        "nodes, and nothing to choose by",
    ),
    # embeddings, chains and classifiers inside
    "map of a feature too few": (
        "grople",
        rows_less("feature_map_"),
        r"feature_map_ has the shape",
    ),
    "factors of another rank": ("grople", rows_less("label_factors_"), "which does not fit"),
    "label in a chain twice": (
        "chains",
        tensor("orders_", lambda array: array[:, [0, 1, 1]]),
        "orders_ are not orders of the labels that vary",
    ),
    "label that does not exist": (
        "chains",
        put("orders_", (0, 0), 9),
        "labels that do not exist",
    ),
    "chain without weights": ("chains", without("coef_"), r"coef_ is missing"),
    "links too few": ("chains", columns_less("link_coef_"), "link_coef_ has the shape"),
    "link without a classifier": (
        "chains neighbours",
        lambda parts: parts.fitted["estimators_"][0].pop(),
        "belongs to nothing|are not one for each link|no object",
    ),
    "link with a classifier of nothing": (
        "chains neighbours",
        inside("estimators_", 0, 2)({"object": ["MLkNN", {}, {}]}),
        "belongs to nothing|has not learned anything",
    ),
    "centre that belongs to no label": (
        "lift",
        put("n_centres_", 0, 1),
        "n_centres_ are not those of its centres",
    ),
    "centres out of sight": (
        "lift",
        put("centres_", (0, 0), 1e200),
        "centres_ has numbers that are not finite, or too large",
    ),
    "distances from nowhere": ("lift", put("origin_", 0, np.nan), "origin_ has a number that"),
    "label of a classifier that does not exist": (
        "lift",
        put("classifiers_", 0, 9),
        "classifiers that do not exist",
    ),
    "distances without weights": ("lift", without("coef_"), "estimators_ is missing"),
    "label-specific features without a classifier": (
        "lift neighbours",
        lambda parts: parts.fitted["estimators_"].pop(),
        "belongs to nothing|not one for each classifier|no object",
    ),
    "group without a chain": (
        "mlsf",
        lambda parts: parts.fitted["chains_"].pop(),
        "belongs to nothing|not one for each group|no object",
    ),
    "chain that is none": (
        "mlsf",
        inside("chains_", 0)(7),
        "is not the chain of a group|no object",
    ),
    "label of a group that does not exist": (
        "mlsf",
        put("label_groups_", 0, 9),
        "chains_ are not one for each group",
    ),
    "label before the first of a chain": ("mlsf", put("links_", 0, -1), "labels that no chain has"),
    "label far after the last": ("mlsf", put("links_", 0, 2**63 - 1), "labels that no chain has"),
    "label after the last of a chain": ("mlsf", put("links_", 0, 4), "scores . labels, but 5"),
    "factors that are no numbers": (
        "ssjdr",
        put("factor_intercept_", 0, np.nan),
        "factor_intercept_ has a number that is not finite",
    ),
    "embedding of another rank": ("ssjdr", rows_less("label_factors_"), "which does not fit"),
    "label without a classifier": (
        "relevance neighbours",
        inside("estimators_", 1)(7),
        r"estimators_\.1 has nothing to predict",
    ),
    "weights that are not there": (
        "relevance neighbours",
        attribute("coef_", None),
        "coef_ is missing",
    ),
    "combination of a set too many": (
        "rakel",
        put("set_ends_", 1, 99),
        "set_ends_ do not divide the combinations",
    ),
    "combination of something else than ones": (
        "rakel",
        put("combinations_.data", 0, 2.0),
        "combinations_ has something else than ones",
    ),
    "combination without a classifier": (
        "rakel",
        put("classifier_of_", 0, 99),
        "classifier_of_ has classifiers that do not exist",
    ),
    "labelset of a label that does not exist": (
        "rakel",
        put("labelsets_", (0, 0), 5),
        "labelsets_ has numbers of labels that do not exist",
    ),
    "classifiers of a feature too few": (
        "rakel",
        columns_less("classifiers_.coef"),
        r"classifiers_\.coef has the shape \(\d+, 6\)",
    ),
    "intercept that is not finite": (
        "clr",
        put("classifiers_.intercept", 0, np.nan),
        r"classifiers_\.intercept has a number that is not finite",
    ),
    "pair too few": ("clr", rows_less("pairs_"), "pairs_ are not two labels for each classifier"),
    "node that leads back": ("forest", put("left_", -1, 0), "left_ or .right_ leads back"),
    "node that is half a leaf": ("forest", put("right_", 0, 0), "do not agree about the leaves"),
    "leaf without shares": (
        "forest",
        both(put("left_", 0, 0), put("right_", 0, 0)),
        "leaf_shares_ are not one row for each leaf",
    ),
    "tree that begins nowhere": (
        "forest",
        put("roots_", 0, 10_000),
        "roots_ has numbers of nodes that do not exist",
    ),
    "split that is not finite": (
        "forest",
        put("split_values_", 0, np.nan),
        "split_values_ has a number that is not finite",
    ),
    "split of a feature that does not exist": (
        "forest",
        put("split_features_", 0, 7),
        "split_features_ has numbers of features that do not exist",
    ),
    "scale of a feature too few": ("scaled", rows_less("factor_"), "factor_ has the shape"),
    "scale that is not finite": ("scaled", put("offset_", 0, np.nan), "offset_ has a number"),
    "labels that vary too few": (
        "tuned ridge",
        tensor("_labels.varying", lambda array: array[:-1]),
        r"_labels\.varying has the shape \(4,\)",
    ),
    "labels that vary too many": (
        "tuned ridge",
        tensor("_labels.varying", lambda array: np.ones_like(array)),
        "estimator_ scores 3 labels, but 5 are wanted of it",
    ),
    "coefficients of a feature too few": (
        "tuned ridge",
        rows_less("estimator_.coef_"),  # in Fortran's order
        r"estimator_\.coef_ has the shape \(3, 6\)",
    ),
    "intercept too few": ("tuned ridge", rows_less("estimator_.intercept_"), "intercept_ has the"),
    "estimator that has learned nothing": (
        "tuned svm",
        inside("estimator_")({"object": ["LinearSVC", {}, {}]}),
        "belongs to nothing|has not learned anything",
    ),
    "classifier of several labels for one": (
        "tuned svm",
        tensor("estimator_.estimators_.0.coef_", lambda array: np.vstack([array, array])),
        "has the shape|scores 2 labels, but 1",
    ),
}


@pytest.mark.parametrize(("name", "tamper", "sentence"), CASES.values(), ids=CASES)
def test_hostile_label_models_get_a_sentence(name, tamper, sentence, refused):
    refused(name, tamper, sentence)
