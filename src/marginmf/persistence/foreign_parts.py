"""Estimators of scikit-learn that a label model may hold.

As parameters they may be unfitted; what they have learned is kept for linear classifiers, which
are a matrix and a vector, and for one of these for each label.
"""

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from marginmf._utils.saved import ANYTHING, Either, ListOf, Names, Optional, floats
from marginmf.labels.wrappers import n_scores
from marginmf.persistence.errors import ModelFileError
from marginmf.persistence.shapes import Lengths


def is_foreign(kind: Any) -> bool:
    """Whether a class is one of scikit-learn's."""
    return str(kind.__module__).partition(".")[0] == "sklearn"


def changed_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters that are not at their defaults.

    The others are left to the scikit-learn that loads the file: versions add parameters, and
    take them away, and a parameter that was not set should be no obstacle then.

    >>> from sklearn.svm import LinearSVC
    >>> changed_parameters(LinearSVC(C=2.0))
    {'C': 2.0}
    """
    kind: Any = type(estimator)
    defaults = _defaults(kind)
    params = estimator.get_params(deep=False)
    return {name: value for name, value in params.items() if not _same(value, defaults[name])}


def feature_count(model: Any, name: str) -> int:
    """Return how many features a fitted estimator wants."""
    n_features = getattr(model, "n_features_in_", None)
    if type(n_features) is not int or n_features < 1:
        raise ModelFileError(f"{name} does not say how many features it wants")
    return n_features


def foreign_lengths(model: Any, name: str) -> Lengths:
    """Return how many features a fitted estimator has; what only codes labels has none."""
    if hasattr(model, "coef_") or hasattr(model, "estimators_"):
        return {"features": feature_count(model, name)}
    return {}


def check_linear(model: Any, name: str, lengths: Lengths) -> None:
    """Refuse a single row of coefficients with several intercepts."""
    if model.coef_.ndim == 1 and np.size(model.intercept_) != 1:
        raise ModelFileError(f"{name}.intercept_ has other rows than its coefficients")


def check_one_each(model: Any, name: str, lengths: Lengths) -> None:
    """Refuse classifiers of single labels that score another number of them."""
    for k, each in enumerate(model.estimators_):
        found = n_scores(each)
        if found is None:
            raise ModelFileError(
                f"{name}.estimators_.{k} has not learned anything that gives scores"
            )
        if found != 1:
            raise ModelFileError(f"{name}.estimators_.{k} scores more than one label")


#: What a linear classifier of scikit-learn has learned.
LINEAR = {
    "coef_": Either(floats("features"), floats("rows", "features")),
    "intercept_": Either(float, floats("rows")),
    "n_features_in_": int,
    "feature_names_in_": Optional(Names("features")),
    "n_iter_": Optional(ANYTHING),
}

#: As `marginmf.persistence.state.STATE`; what is not here is left out.
FOREIGN_STATE: dict[str, dict[str, Any]] = {
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
FOREIGN_RULES: dict[str, Callable[[Any, str, Lengths], None]] = {
    "LinearSVC": check_linear,
    "LogisticRegression": check_linear,
    "RidgeClassifier": check_linear,
    "SGDClassifier": check_linear,
    "OneVsRestClassifier": check_one_each,
}


@lru_cache
def _defaults(kind: Any) -> dict[str, Any]:
    parameters = inspect.signature(kind).parameters.values()
    return {each.name: each.default for each in parameters}


def _same(value: Any, default: Any) -> bool:
    return value is default or (
        type(value) is type(default)
        and isinstance(value, bool | int | float | str)
        and value == default
    )
