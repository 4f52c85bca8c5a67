"""Which classes a model file may name, and what it holds of each; nothing else is ever made of it.

Our own classes declare themselves (`marginmf._utils.saved`); those of scikit-learn are in a table
here.  A file has the name of a class alone, so a class may move to another module, but not change
its name.  Objects are stored by the parameters of their constructors, which suits dataclasses,
named tuples and estimators alike; what can be fitted has its fitted attributes on top.
"""

import inspect
from functools import lru_cache
from importlib import import_module
from typing import Any

from sklearn.base import BaseEstimator

from marginmf._utils.saved import (
    ANYTHING,
    SAVED,
    Either,
    Length,
    ListOf,
    Names,
    Optional,
    declared,
    floats,
)

#: The packages that declare classes, imported when a file names one that is not known yet.  By
#: name, because they are built on this one.
PACKAGES = ("marginmf.ratings", "marginmf.labels")

_LINEAR = {
    "coef_": Either(floats("features"), floats("rows", "features")),
    "intercept_": Either(float, floats("rows")),
    "n_features_in_": Length("features"),
    "feature_names_in_": Optional(Names("features")),
    "n_iter_": Optional(ANYTHING),
}
_CLASSIFIER = {**_LINEAR, "classes_": Names("classes")}

#: The classes of scikit-learn that a file may name: where each is imported from, and the fitted
#: attributes that are kept of it.  Those with none are parameters.
FOREIGN: dict[str, tuple[str, dict[str, Any]]] = {
    "AgglomerativeClustering": ("sklearn.cluster", {}),
    "BisectingKMeans": ("sklearn.cluster", {}),
    "KMeans": ("sklearn.cluster", {}),
    "LabelBinarizer": (
        "sklearn.preprocessing",
        {"classes_": Names("classes"), "y_type_": str, "sparse_input_": bool},
    ),
    "LinearSVC": ("sklearn.svm", _CLASSIFIER),
    "LogisticRegression": ("sklearn.linear_model", _CLASSIFIER),
    "MiniBatchKMeans": ("sklearn.cluster", {}),
    "OneVsRestClassifier": (
        "sklearn.multiclass",
        {
            "estimators_": ListOf(BaseEstimator),
            "label_binarizer_": "LabelBinarizer",
            "n_features_in_": Length("features"),
        },
    ),
    "Ridge": ("sklearn.linear_model", {}),
    "RidgeClassifier": (
        "sklearn.linear_model",
        {**_LINEAR, "_label_binarizer": "LabelBinarizer"},
    ),
    "SGDClassifier": ("sklearn.linear_model", _CLASSIFIER),
    "SpectralClustering": ("sklearn.cluster", {}),
}


def class_named(name: str) -> type[Any] | None:
    """Return the class of that name, or None if it is not one that a file may name.

    >>> class_named("HMF"), class_named("Popen")
    (<class 'marginmf.ratings.max_margin.HMF'>, None)
    """
    if name in FOREIGN:
        found: type[Any] = getattr(import_module(FOREIGN[name][0]), name)
        return found
    for package in PACKAGES:
        if name not in SAVED:
            import_module(package)
    return SAVED.get(name)


def is_known(value: Any) -> bool:
    """Whether an object is of a class that a file may name, not of a subclass."""
    kind: Any = type(value)
    name = kind.__name__
    return SAVED.get(name) is kind or (name in FOREIGN and class_named(name) is kind)


def is_foreign(kind: Any) -> bool:
    """Whether a class is one of scikit-learn's."""
    return str(kind.__module__).partition(".")[0] == "sklearn"


@lru_cache
def constructor_parameters(kind: Any) -> dict[str, Any]:
    """Return the names of the constructor's parameters and their defaults, if any.

    >>> constructor_parameters(class_named("LBFGS"))
    {'memory': 5}
    """
    return {each.name: each.default for each in inspect.signature(kind).parameters.values()}


@lru_cache
def fitted_attributes(kind: Any) -> dict[str, Any]:
    """Return what a file holds of the attributes of a class, and what each must be.

    >>> fitted_attributes(class_named("HMF"))["user_factors_"].axes
    ('stages', 'users', 'factors')
    """
    return FOREIGN.get(kind.__name__, ("", {}))[1] if is_foreign(kind) else declared(kind)


def can_learn(kind: Any) -> bool:
    """Whether objects of a class have fitted attributes beside their constructor's parameters.

    >>> can_learn(class_named("HMF")), can_learn(class_named("LBFGS"))
    (True, False)
    """
    if issubclass(kind, BaseEstimator):
        return True
    return not fitted_attributes(kind).keys() <= constructor_parameters(kind).keys()


def stored_parameters(value: Any) -> dict[str, Any]:
    """Return the parameters of an object that a file holds: of scikit-learn's, those that were set.

    The others are left to the scikit-learn that loads the file: versions add parameters, and take
    them away, and a parameter that was not set should be no obstacle then.

    >>> from sklearn.svm import LinearSVC
    >>> stored_parameters(LinearSVC(C=2.0))
    {'C': 2.0}
    """
    kind: Any = type(value)
    params = constructor_parameters(kind)
    values = {name: getattr(value, name) for name in params}
    if not is_foreign(kind):
        return values
    return {name: part for name, part in values.items() if not _is_default(part, params[name])}


def _is_default(value: Any, default: Any) -> bool:
    plain = type(value) is type(default) and isinstance(value, bool | int | float | str)
    return value is default or (plain and bool(value == default))
