"""The fitted attributes of label models, and of the estimators of scikit-learn inside them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from marginmf.labels.base import LabelsEstimator
from marginmf.persistence.demands import (
    ANYTHING,
    HISTORY,
    Either,
    ListOf,
    Names,
    Optional,
    Stored,
    counts,
    flags,
    floats,
    places,
)
from marginmf.persistence.foreign_parts import check_linear, check_one_each
from marginmf.persistence.label_parts import check_label_model, check_targets
from marginmf.persistence.label_rules import (
    check_binary_relevance,
    check_chains,
    check_mlchmf,
    check_mlknn,
    check_neighbours,
    check_scaled,
    check_tree,
    check_tuned,
)
from marginmf.persistence.shapes import Lengths

Rule = Callable[[Any, str, Lengths], None]

#: What methods have that embed labels and map features onto the embedding.
LABEL_SPACE = {
    "label_factors_": floats("factors", "labels"),
    "feature_map_": floats("features", "factors"),
    "feature_means_": floats("features"),
    "label_means_": floats("labels"),
}

#: What a linear classifier of scikit-learn has learned.
LINEAR = {
    "coef_": Either(floats("features"), floats("rows", "features")),
    "intercept_": Either(float, floats("rows")),
    "n_features_in_": int,
    "feature_names_in_": Optional(Names("features")),
    "n_iter_": Optional(ANYTHING),
}

#: As `marginmf.persistence.state.STATE`.
LABEL_STATE: dict[str, dict[str, Any]] = {
    "LabelsEstimator": {
        "targets_": "Targets",
        "classes_": Names("classes"),
        "thresholds_": Optional(floats("labels")),
        "n_features_in_": int,
        "feature_names_in_": Optional(Names("features")),
        "n_samples_fit_": int,
    },
    "DecisionTuned": {
        "estimator_": BaseEstimator,
        "best_params_": dict,
        "cv_values_": Optional(ListOf(float)),
        "_labels": "Varying",
    },
    "Targets": {"classes": Names("classes"), "vector": bool, "sparse": bool, "dtype": np.dtype},
    "Scaled": {
        "estimator_": LabelsEstimator,
        "offset_": floats("features"),
        "factor_": floats("features"),
    },
    "MLCHMF": {
        "tree_": "EmbeddingTree",
        "tolerance_": float,
        "vote_": str,
        "neighbours_": Optional("Neighbours"),
        "keepers_": counts("kept"),
        "n_iter_": int,
    },
    "GroPLE": {**LABEL_SPACE, **HISTORY, "label_groups_": counts("labels")},
    "BinaryRelevance": {
        "coef_": Optional(floats("labels", "features")),
        "intercept_": Optional(floats("labels")),
        "estimators_": Optional(list),
        "_labels": "Varying",
    },
    "ClassifierChains": {
        "orders_": places("chains", "links", along="labels"),
        "coef_": Optional(floats("chains", "links", "features")),
        "link_coef_": Optional(floats("chains", "links", "links")),
        "intercept_": Optional(floats("chains", "links")),
        "estimators_": Optional(ListOf(list)),
        "_labels": "Varying",
    },
    "MLkNN": {
        "neighbours_": "Neighbours",
        "stored_labels_": Stored(("rows", "labels")),
        "prior_": floats("labels"),
        "posterior_": floats("labels", "numbers"),
    },
    "PLST": LABEL_SPACE,
    "CPLST": LABEL_SPACE,
    "RidgeEmbedding": {"coef_": floats("labels", "features"), "intercept_": floats("labels")},
    # Parts of these.
    "EmbeddingTree": {"nodes": ListOf("Node"), "n_samples": int},
    "Node": {
        "index": int,
        "depth": int,
        "parent": int,
        "size": int,
        "kept": counts("kept"),
        "objective": float,
        "n_iter": int,
        "features": places("used", along="features"),
        "U": floats("used + 1", "factors"),
        "V": floats("factors", "labels"),
    },
    "Neighbours": {"n_neighbors": int, "stored_": Stored(("rows", "features"))},
    "Varying": {"varying": flags("labels"), "always": flags("labels")},
    # scikit-learn: what is not here is left out.
    "LinearSVC": {**LINEAR, "classes_": Names("classes")},
    "LogisticRegression": {**LINEAR, "classes_": Names("classes")},
    "RidgeClassifier": {**LINEAR, "_label_binarizer": "LabelBinarizer"},
    "SGDClassifier": {**LINEAR, "classes_": Names("classes")},
    "OneVsRestClassifier": {
        "estimators_": ListOf(BaseEstimator),
        "label_binarizer_": "LabelBinarizer",
        "n_features_in_": int,
    },
    "LabelBinarizer": {"classes_": Names("classes"), "y_type_": str, "sparse_input_": bool},
}

#: Attributes whose estimators have features of their own; a rule says which.
SEPARATE = {("ClassifierChains", "estimators_")}

#: What else must hold of an object, once its attributes are as they should be.
RULES: dict[str, Rule] = {
    "LabelsEstimator": check_label_model,
    "Targets": check_targets,
    "DecisionTuned": check_tuned,
    "Scaled": check_scaled,
    "MLCHMF": check_mlchmf,
    "EmbeddingTree": check_tree,
    "Neighbours": check_neighbours,
    "MLkNN": check_mlknn,
    "BinaryRelevance": check_binary_relevance,
    "ClassifierChains": check_chains,
    "LinearSVC": check_linear,
    "LogisticRegression": check_linear,
    "RidgeClassifier": check_linear,
    "SGDClassifier": check_linear,
    "OneVsRestClassifier": check_one_each,
}
