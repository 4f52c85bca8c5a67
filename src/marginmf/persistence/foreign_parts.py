"""Estimators of scikit-learn that a label model may hold.

As parameters they may be unfitted; what they have learned is kept for linear classifiers, which
are a matrix and a vector, and for one of these for each label.
"""

import inspect
from functools import lru_cache
from typing import Any

import numpy as np

from marginmf.labels.base import LabelsEstimator
from marginmf.persistence.errors import ModelFileError
from marginmf.persistence.shapes import Lengths


def is_foreign(kind: Any) -> bool:
    """Whether a class is one of scikit-learn's."""
    return str(kind.__module__).partition(".")[0] == "sklearn"


def changed_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters that are not at their defaults.

    The others are left to the scikit-learn that loads the file: versions add parameters, and
    take them away, and a parameter that nobody has set should be no obstacle then.

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


def score_columns(model: Any, name: str) -> int:
    """Return how many labels a fitted estimator gives scores for, once its shapes are checked."""
    if isinstance(model, LabelsEstimator) and hasattr(model, "targets_"):
        n_columns: int = model.targets_.n_columns
        return n_columns
    if is_foreign(type(model)):
        if hasattr(model, "coef_"):
            return 1 if model.coef_.ndim == 1 else len(model.coef_)
        if hasattr(model, "estimators_"):
            return len(model.estimators_)
    raise ModelFileError(f"{name} has not learned anything that gives scores")


def check_linear(model: Any, name: str, lengths: Lengths) -> None:
    """Refuse a single row of coefficients with several intercepts."""
    if model.coef_.ndim == 1 and np.size(model.intercept_) != 1:
        raise ModelFileError(f"{name}.intercept_ has other rows than its coefficients")


def check_one_each(model: Any, name: str, lengths: Lengths) -> None:
    """Refuse classifiers of single labels that score another number of them."""
    for k, each in enumerate(model.estimators_):
        if score_columns(each, f"{name}.estimators_.{k}") != 1:
            raise ModelFileError(f"{name}.estimators_.{k} scores more than one label")


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
