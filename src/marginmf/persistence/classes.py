"""Which classes a model file may name, what it holds of each, and whether its parts fit together.

Our own classes declare themselves (`marginmf._utils.saved`); those of scikit-learn are in a table
here.  A file has the name of a class alone, so a class may move to another module, but not change
its name.  Objects are stored by the parameters of their constructors, which suits dataclasses,
named tuples and estimators alike; what can be fitted has its fitted attributes on top.

After `check_model` a prediction cannot go wrong, whoever made the file: arrays have the shapes that
their classes declare, every code is within the arrays that it is an index into, and the estimator
itself would take every parameter.  Compiled kernels do not check the bounds of arrays: factors with
a row too few would be read beyond their end.
"""

import inspect
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from marginmf._utils.saved import (
    ANYTHING,
    LARGEST_SAVED,
    SAVED,
    Either,
    Length,
    ListOf,
    Names,
    Optional,
    Scale,
    Shaped,
    Sized,
    Stored,
    are_within,
    declared,
    floats,
    within,
)
from marginmf._utils.tensor_files import InvalidFileError

#: The packages that declare classes, imported when a file names one that is not known yet.  By
#: name, because they are built on this one.
PACKAGES = ("marginmf.ratings", "marginmf.labels")
#: How long each axis is.
Lengths = dict[str, int]
#: The axes that an estimator inside another has in common with it.
SHARED_AXES = ("users", "items", "levels", "stages", "features")
#: What names may be: booleans, numbers, text, and objects, which were read as text.
KINDS_OF_NAMES = "biufUO"

_LINEAR = {
    "coef_": Either(floats("features"), floats("rows", "features")),
    "intercept_": Either(float, floats("rows")),
    "n_features_in_": Length("features"),
    "feature_names_in_": Optional(Names("features")),
    "n_iter_": Optional(ANYTHING),
}
_CLASSIFIER = {**_LINEAR, "classes_": Names("classes")}
_CLUSTERERS = (
    *("KMeans", "BisectingKMeans", "MiniBatchKMeans"),
    *("AgglomerativeClustering", "SpectralClustering"),
)

#: The classes of scikit-learn that a file may name: where each is imported from, and the fitted
#: attributes that are kept of it.  Those with none are parameters.
FOREIGN: dict[str, tuple[str, dict[str, Any]]] = {
    **dict.fromkeys(_CLUSTERERS, ("sklearn.cluster", {})),
    "LabelBinarizer": (
        "sklearn.preprocessing",
        {"classes_": Names("classes"), "y_type_": str, "sparse_input_": bool},
    ),
    "LinearSVC": ("sklearn.svm", _CLASSIFIER),
    "LogisticRegression": ("sklearn.linear_model", _CLASSIFIER),
    "OneVsRestClassifier": (
        "sklearn.multiclass",
        {
            "estimators_": ListOf(BaseEstimator),
            "label_binarizer_": "LabelBinarizer",
            "n_features_in_": Length("features"),
        },
    ),
    "Ridge": ("sklearn.linear_model", {}),
    "RidgeClassifier": ("sklearn.linear_model", {**_LINEAR, "_label_binarizer": "LabelBinarizer"}),
    "SGDClassifier": ("sklearn.linear_model", _CLASSIFIER),
}


def class_named(name: str) -> type[Any] | None:
    """Return the class of that name, or None if it is not one that a file may name.

    >>> class_named("HMF"), class_named("Popen")
    (<class 'marginmf.ratings.max_margin.HMF'>, None)
    """
    if name in FOREIGN:
        return getattr(import_module(FOREIGN[name][0]), name)
    for package in PACKAGES:
        if name not in SAVED:
            import_module(package)
    return SAVED.get(name)


def is_known(value: Any) -> bool:
    """Whether an object is of a class that a file may name, not of a subclass."""
    name = type(value).__name__
    return type(value) in (SAVED.get(name), class_named(name) if name in FOREIGN else None)


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
    beside = fitted_attributes(kind).keys() - constructor_parameters(kind).keys()
    return issubclass(kind, BaseEstimator) or bool(beside)


def stored_parameters(value: Any) -> dict[str, Any]:
    """Return the parameters of an object that a file holds: of scikit-learn's, those that were set.

    Versions of scikit-learn add and remove parameters, which must not matter if they were not set.

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


# --- do the parts fit together? ---------------------------------------------------------------


def check_model(model: Any) -> None:
    """Raise `InvalidFileError` unless the model is whole."""
    ModelChecker().check_object(model, type(model).__name__, {})


class ModelChecker:
    """Checks all parts of one model against what their classes declare."""

    def __init__(self) -> None:
        # By identity: members of an ensemble share their ratings, which are long.
        self._seen: set[int] = set()

    def check(self, value: Any, name: str, expected: Lengths | None) -> None:
        """Check what a value is made of; nothing is expected of the size of parameters (None)."""
        kind: Any = type(value)
        if issubclass(kind, BaseEstimator):
            # One that is a parameter may be unfitted, and so may one that was learned, where the
            # model that holds it says when.
            learned = fitted_attributes(kind).keys() & vars(value).keys()
            optional = is_foreign(kind) or kind._unfitted_inside
            if learned or (expected is not None and not optional):
                self.check_object(value, name, expected)
        elif is_known(value):
            self.check_object(value, name, expected)
        elif isinstance(value, dict):
            for key, part in value.items():
                self.check(part, f"{name}.{key}", expected)
        elif isinstance(value, list | tuple):
            for k, part in enumerate(value):
                self.check(part, f"{name}.{k}", expected)

    def check_object(self, value: Any, name: str, expected: Lengths | None) -> None:
        """Check an object of a known class; an estimator must be fitted."""
        kind: Any = type(value)
        estimator = issubclass(kind, BaseEstimator)
        wanted, params = fitted_attributes(kind), constructor_parameters(kind)
        lengths = dict(expected or {})
        if estimator:
            lengths = {axis: n for axis, n in lengths.items() if axis in SHARED_AXES}
        # First what the lengths of axes come from; the others are compared with that.
        axes = {key: one for key, one in wanted.items() if isinstance(one, Sized | Length | Scale)}
        self._check_attributes(value, axes, name, lengths)
        if axes and id(value) in self._seen:
            return
        self._seen.add(id(value))
        parts = vars(value) if estimator else {part: getattr(value, part) for part in params}
        for attribute, part in parts.items():
            apart = estimator and attribute in (*params, *getattr(kind, "_separate", ()))
            self.check(part, f"{name}.{attribute}", None if apart else lengths)
        rest = {key: each for key, each in wanted.items() if key not in axes}
        self._check_attributes(value, rest, name, lengths)
        if estimator:
            try:
                get_tags(value)  # asked at every prediction, and a parameter may answer
                if not is_foreign(kind):
                    value._check_loaded()
            except Exception as error:  # a parameter may be anything, and so may what it leads to
                text = f"the parameters of {name} cannot be used ({error})"
                raise InvalidFileError(text) from None
        try:
            flaw = next(iter(_flaws(value, lengths)), None)
        except Exception as error:  # what is optional may be missing at an odd place
            raise InvalidFileError(f"the parts of {name} do not fit ({error})") from None
        if flaw is not None:
            raise InvalidFileError(f"{name}{flaw}")

    def _check_attributes(
        self, value: Any, wanted: dict[str, Any], name: str, lengths: Lengths
    ) -> None:
        for attribute, each in wanted.items():
            part = getattr(value, attribute, None)
            if part is not None:
                self._check_part(part, each, f"{name}.{attribute}", lengths)
            elif not isinstance(each, Optional):
                raise InvalidFileError(f"{name}.{attribute} is missing")

    def _check_part(self, part: Any, wanted: Any, label: str, lengths: Lengths) -> None:
        """Raise unless a part is as wanted; an axis that is new gets its length."""
        match wanted:
            case Optional(inner):
                self._check_part(part, inner, label, lengths)
            case Either(first, second):
                trial = dict(lengths)
                try:
                    self._check_part(part, first, label, trial)
                except InvalidFileError:
                    self._check_part(part, second, label, lengths)
                else:
                    lengths.update(trial)
            case ListOf(each):
                if type(part) is not list or not part:
                    raise InvalidFileError(f"{label} is not a list, or is empty")
                for k, one in enumerate(part):
                    self._check_part(one, each, f"{label}.{k}", lengths)
            case Sized(kind, axis):
                self._check_part(part, kind, label, lengths)
                self.check(part, label, {})
                _check_axes((len(part),), (axis,), label, lengths)
            case Length(axis):
                if type(part) is not int or part < 1:
                    raise InvalidFileError(f"{label} is {part!r:.60}, which is no number of {axis}")
                _check_axes((part,), (axis,), label, lengths)
            case Scale(axis):
                _check_array(part, Shaped(("float64",), (axis,)), label, lengths)
                if len(part) < 2 or not (np.diff(part) > 0).all():
                    raise InvalidFileError(f"{label} are not levels in rising order")
                lengths.setdefault("stages", len(part) - 1)
            case Shaped():
                _check_array(part, wanted, label, lengths)
            case Stored(axes):
                _check_stored(part, axes, label, lengths)
            case Names(axis):
                if type(part) is not np.ndarray or part.dtype.kind not in KINDS_OF_NAMES:
                    raise InvalidFileError(f"{label} is not an array of names")
                _check_axes(part.shape, (axis,), label, lengths)
            case _:
                required: Any = class_named(wanted) if isinstance(wanted, str) else wanted
                # True is an int of Python, but no number that anybody would save.
                if not isinstance(part, required) or (required is int and type(part) is bool):
                    found = type(part).__name__
                    raise InvalidFileError(f"{label} is of the type {found}, which it cannot be")
                if required is float and not abs(part) <= LARGEST_SAVED:
                    raise InvalidFileError(f"{label} is {part}, which is not finite, or too large")


def _flaws(value: Any, lengths: Lengths) -> Any:
    """Return what is wrong with an object although its attributes have the right shapes."""
    if hasattr(value, "_flaws"):
        return value._flaws(lengths)
    if is_foreign(type(value)) and hasattr(value, "coef_") and value.coef_.ndim == 1:
        several = np.size(value.intercept_) != 1
        return [".intercept_ has other rows than its coefficients"] * several
    return []


def _check_array(array: Any, wanted: Shaped, label: str, lengths: Lengths) -> None:
    if type(array) is not np.ndarray or array.dtype.name not in wanted.kinds:
        raise InvalidFileError(f"{label} is not an array of {' or '.join(wanted.kinds)}")
    if not array.dtype.isnative:
        raise InvalidFileError(f"{label} has its bytes in an order that is not this machine's")
    _check_axes(array.shape, wanted.axes, label, lengths)
    if wanted.index is not None and not within(array, lengths.get(wanted.index, 0)):
        raise InvalidFileError(f"{label} has numbers of {wanted.index} that do not exist")
    if array.dtype.kind == "f" and wanted.most and not are_within(array, wanted.most):
        raise InvalidFileError(f"{label} has a number that is not finite, or too large")


def _check_stored(matrix: Any, axes: tuple[str, str], label: str, lengths: Lengths) -> None:
    values = matrix.data if type(matrix) is csr_array else matrix
    if type(values) is not np.ndarray or values.dtype not in (np.float32, np.float64):
        raise InvalidFileError(f"{label} is not a matrix of float32 or float64")
    _check_axes(matrix.shape, axes, label, lengths)
    if not are_within(values, LARGEST_SAVED):
        raise InvalidFileError(f"{label} has numbers that are not finite, or too large")


def _check_axes(shape: tuple[int, ...], axes: Sequence[str], label: str, lengths: Lengths) -> None:
    expected = []
    for axis, n in zip(axes, shape, strict=False):
        shorter, _, more = axis.partition(" + ")
        extra = int(more or 0)
        known = int(axis) if axis.isdigit() else lengths.setdefault(shorter, n - extra)
        expected.append(known + extra)
    if len(shape) != len(axes) or list(shape) != expected:
        text = f"{label} has the shape {shape}, which does not fit ({', '.join(axes)})"
        raise InvalidFileError(text)
