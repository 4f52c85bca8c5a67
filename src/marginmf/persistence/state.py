"""The fitted attributes of every estimator and what they must be: a new one is added here.

A file is refused unless its arrays have these shapes, because the compiled kernels do not check
the bounds of arrays: factors with a row too few would be read beyond their end.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from marginmf.persistence.classes import constructor_parameters
from marginmf.persistence.demands import (
    ANYTHING,
    Either,
    ListOf,
    Names,
    Optional,
    counts,
    flags,
    floats,
)
from marginmf.persistence.foreign_parts import check_linear, check_one_each
from marginmf.persistence.label_parts import check_label_model, check_targets, check_tuned
from marginmf.persistence.shapes import Lengths
from marginmf.ratings.base import RatingsEstimator
from marginmf.ratings.data import Ratings
from marginmf.ratings.fallback import LevelFrequencies
from marginmf.ratings.ids import IdIndex

#: How it was learned.
TRAINING = {
    "history_": list,
    "n_iter_": ANYTHING,
    "n_evaluations_": ANYTHING,
    "stop_reason_": ANYTHING,
}

#: What a linear classifier of scikit-learn has learned.
LINEAR = {
    "coef_": Either(floats("features"), floats("rows", "features")),
    "intercept_": Either(float, floats("rows")),
    "n_features_in_": int,
    "feature_names_in_": Optional(Names("features")),
    "n_iter_": Optional(ANYTHING),
}

#: By class; an estimator also has the attributes of its bases.  See `marginmf.persistence.demands`.
#: Estimators and ratings that stand anywhere in these attributes must have as many users, items
#: and levels, or features, as the estimator itself.
STATE: dict[str, dict[str, Any]] = {
    "RatingsEstimator": {
        "users_": IdIndex,
        "items_": IdIndex,
        "levels_": floats("levels"),
        "ratings_": Ratings,
        "_frequencies": LevelFrequencies,
        "_calibration_seed": Optional(int),
        "_calibrator": Optional("Calibrator"),
    },
    "Factoriser": {
        **TRAINING,
        "reg_": float,
        "reg_path_": Optional("RegularisationPath"),
        "user_factors_": floats("users", "factors"),
        "item_factors_": floats("items", "factors"),
    },
    "HMF": {
        "reg_": ListOf(float),
        "reg_path_": Optional(ListOf("RegularisationPath")),
        "user_factors_": floats("stages", "users", "factors"),
        "item_factors_": floats("stages", "items", "factors"),
    },
    "MMMF": {"thresholds_": floats("users", "stages")},
    "PMMMF": {"prototypes_": floats("users", "levels"), "boundaries_": floats("users", "stages")},
    "BiasOnly": {
        **TRAINING,
        "mean_": float,
        "user_biases_": floats("users"),
        "item_biases_": floats("items"),
    },
    "LeastSquares": {"offsets_": "BiasOnly"},
    "MarginEnsemble": {"members_": ListOf(ListOf(RatingsEstimator)), "_calibrator": "Calibrator"},
    # Parts that are not estimators: here the attributes are the constructor's parameters.
    "LevelFrequencies": {
        "by_user": counts("users", "levels"),
        "by_item": counts("items", "levels"),
        "overall": floats("levels"),
    },
    "Calibrator": {
        "weights": floats("stages", "features"),
        "intercepts": floats("stages"),
        "bounds": floats("ends", "features"),
    },
    "RegularisationPath": {
        "regs": floats("candidates"),
        "errors": floats("candidates", "holdouts"),
        "metric": str,
    },
    "LBFGS": {"memory": int},
    # --- labels ---
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
    "Varying": {"varying": flags("labels"), "always": flags("labels")},
    # --- scikit-learn: what is not here is left out ---
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

#: What else must hold of an object, once its attributes are as they should be.
RULES: dict[str, Callable[[Any, str, Lengths], None]] = {
    "LabelsEstimator": check_label_model,
    "Targets": check_targets,
    "DecisionTuned": check_tuned,
    "LinearSVC": check_linear,
    "LogisticRegression": check_linear,
    "RidgeClassifier": check_linear,
    "SGDClassifier": check_linear,
    "OneVsRestClassifier": check_one_each,
}


@lru_cache
def fitted_attributes(kind: Any) -> dict[str, Any]:
    """Return what a class wants of its attributes.

    >>> from marginmf.ratings import HMF
    >>> fitted_attributes(HMF)["user_factors_"].axes
    ('stages', 'users', 'factors')
    """
    attributes: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        attributes.update(STATE.get(base.__name__, {}))
    return attributes


@lru_cache
def can_learn(kind: Any) -> bool:
    """Whether objects of a class have fitted attributes beside their constructor's parameters.

    >>> from marginmf.ratings import HMF
    >>> from marginmf.solvers import LBFGS
    >>> can_learn(HMF), can_learn(LBFGS)
    (True, False)
    """
    if issubclass(kind, BaseEstimator):
        return True
    return not fitted_attributes(kind).keys() <= constructor_parameters(kind).keys()


def rules_of(kind: Any) -> list[Callable[[Any, str, Lengths], None]]:
    """Return what else must hold of objects of a class, those of its bases first."""
    return [RULES[base.__name__] for base in reversed(kind.__mro__) if base.__name__ in RULES]
