"""From a model to a JSON document and tensors.

JSON has text, numbers, booleans, None and lists; everything else is an object with one name that
says what it is: ``{"tuple": [...]}``, ``{"array": {...}}``, ``{"object": [class, fields]}``.  An
object that occurs again is ``{"same": k}``: the k-th shareable object whose end was reached.
"""

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator

from marginmf._utils.types import Array
from marginmf.losses import REAL, TWO_LEVEL, RealLoss, TwoLevelLoss
from marginmf.persistence.arrays import is_storable, to_tensor
from marginmf.persistence.atoms import MAX_DEPTH, NotAnAtomError, encode_atom
from marginmf.persistence.classes import constructor_parameters, is_known
from marginmf.persistence.errors import ModelFileError
from marginmf.persistence.foreign_parts import changed_parameters, is_foreign
from marginmf.persistence.generators import generator_state
from marginmf.persistence.ids import ids_to_array, is_text, text_to_array
from marginmf.persistence.sparse import PARTS, check_csr
from marginmf.persistence.state import can_learn, fitted_attributes
from marginmf.ratings.ids import IdIndex

LOSSES = {**TWO_LEVEL, **REAL}
#: What ``random_state`` may be beside numbers.
SOURCES = (
    np.random.Generator,
    np.random.RandomState,
    np.random.BitGenerator,
    np.random.SeedSequence,
)


class Encoder:
    """Encodes one model; `tensors` fills up meanwhile."""

    def __init__(self) -> None:
        self.tensors: dict[str, Array] = {}
        # By identity, with the object itself so that its identity is not given to another.
        self._shared: dict[int, tuple[int, Any]] = {}

    def encode(self, value: Any, place: str, depth: int = 0) -> Any:
        """Return a value as JSON; its place in the model is for messages and tensors' names."""
        if depth > MAX_DEPTH:
            raise ValueError(f"{place} is nested too deeply for a model file, or holds itself.")
        kind = type(value)
        if kind is list:
            return self._parts(value, place, depth)
        if kind is tuple:
            return {"tuple": self._parts(value, place, depth)}
        if kind is dict:
            return self._dict(value, place, depth)
        if isinstance(value, np.dtype) and (is_storable(value) or value.kind == "O"):
            return {"dtype": value.str}
        if isinstance(value, TwoLevelLoss | RealLoss) and LOSSES.get(value.name) is value:
            return {"loss": value.name}
        try:
            return encode_atom(value)
        except NotAnAtomError:
            return self._shareable(value, place, depth)

    def _shareable(self, value: Any, place: str, depth: int) -> Any:
        if id(value) in self._shared:
            return {"same": self._shared[id(value)][0]}
        node: dict[str, Any]
        if type(value) is np.ndarray and is_storable(value.dtype):
            node = {"array": self._array(value, place)}
        elif is_text(value):
            node = {"text": self._array(text_to_array(value), place)}
        elif type(value) is csr_array:
            node = {"csr": self._csr(value, place)}
        elif type(value) is IdIndex:
            ids = self._array(ids_to_array(value), place)
            node = {"ids": {"what": value.what, "array": ids}}
        elif (state := generator_state(value)) is not None:
            node = {"generator": self.encode(state, place, depth + 1)}
        elif is_known(value):
            node = {"object": self._object(value, place, depth)}
        else:
            raise ValueError(_unstorable(value, place))
        # A named tuple is as cheap to write again as to refer to, and there are thousands.
        if not isinstance(value, tuple):
            self._shared[id(value)] = (len(self._shared), value)
        return node

    def _array(self, array: Array, place: str) -> dict[str, str]:
        while place in self.tensors:  # names in dictionaries may have dots of their own
            place += "'"
        self.tensors[place], note = to_tensor(array)
        return {"tensor": place, **note}

    def _csr(self, matrix: csr_array, place: str) -> dict[str, Any]:
        parts = {name: getattr(matrix, name) for name in PARTS}
        shape = [int(n) for n in matrix.shape]
        try:
            check_csr(shape, **parts)
        except ModelFileError as error:
            raise ValueError(f"{place} cannot be in a model file: {error}.") from None
        arrays = {name: self._array(part, _join(place, name)) for name, part in parts.items()}
        return {"shape": shape, **arrays}

    def _object(self, value: Any, place: str, depth: int) -> list[Any]:
        kind: Any = type(value)
        names = constructor_parameters(kind)
        if is_foreign(kind):
            fields = changed_parameters(value)
        else:
            fields = {name: getattr(value, name) for name in names}
        if not can_learn(kind):
            return [kind.__name__, self._named(fields, place, depth)]
        return [
            kind.__name__,
            self._named(_about_the_model(fields), place, depth),
            self._named(_fitted(value, names, place), place, depth),
        ]

    def _parts(self, values: Any, place: str, depth: int) -> list[Any]:
        return [self.encode(part, _join(place, k), depth + 1) for k, part in enumerate(values)]

    def _dict(self, values: dict[Any, Any], place: str, depth: int) -> dict[str, Any]:
        if all(type(name) is str for name in values):
            return {"dict": self._named(values, place, depth)}
        pairs = [
            [self._key(name, place), self.encode(part, _join(place, name), depth + 1)]
            for name, part in values.items()
        ]
        return {"pairs": pairs}

    @staticmethod
    def _key(name: Any, place: str) -> Any:
        try:
            return encode_atom(name)
        except NotAnAtomError:
            raise ValueError(
                f"{place} is a dictionary with the key {name!r}, but a model file can hold keys "
                "of text, numbers and the like only."
            ) from None

    def _named(self, values: dict[str, Any], place: str, depth: int) -> dict[str, Any]:
        return {
            name: self.encode(part, _join(place, name), depth + 1) for name, part in values.items()
        }


def _about_the_model(params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters without those that only a running fit can have."""
    params = dict(params)
    if params.get("callbacks"):
        params["callbacks"] = ()
    source = params.get("random_state")
    if isinstance(source, SOURCES) and generator_state(source) is None:
        params["random_state"] = None
    return params


def _fitted(value: Any, params: Any, place: str) -> dict[str, Any]:
    """Return the fitted attributes, without what is derived from them."""
    kind: Any = type(value)
    known = fitted_attributes(kind)
    if is_foreign(kind):
        return {name: part for name, part in vars(value).items() if name in known}
    fitted = {}
    for name, attribute in vars(value).items():
        if name in params or isinstance(getattr(kind, name, None), cached_property):
            continue
        if name not in known:
            raise ValueError(
                f"{_join(place, name)} is no attribute that {kind.__name__} has by itself, and a "
                "model file cannot hold others: delete it first."
            )
        fitted[name] = attribute
    return fitted


def _join(place: str, part: object) -> str:
    return f"{place}.{part}" if place else str(part)


def _unstorable(value: Any, place: str) -> str:
    if isinstance(value, TwoLevelLoss | RealLoss):
        return (
            f"{place} is a loss of your own, {value.name!r}, and a model file holds no code. Use "
            f"one of {', '.join(map(repr, LOSSES))}, or pickle the model instead."
        )
    what = type(value).__name__
    if isinstance(value, BaseEstimator) and is_foreign(type(value)):
        return (
            f"{place} is a {what}, and a model file cannot hold it. Of scikit-learn's estimators "
            "it can hold linear classifiers (LinearSVC, LogisticRegression, RidgeClassifier, "
            "SGDClassifier), OneVsRestClassifier over one of these, and k-means, spectral and "
            "agglomerative clustering. Use one of them, or save the model with joblib, whose "
            "files may run any program when they are loaded."
        )
    if isinstance(value, np.ndarray):
        what = f"array of {value.dtype}" if type(value) is np.ndarray else what
    shown = " ".join(f"{value!r:.80}".split())
    return (
        f"{place} is {shown}, of the type {what}, which a model file cannot hold: it holds "
        "numbers, text, arrays and objects of marginmf's own classes, but no code. Change it, or "
        "pickle the model instead."
    )
