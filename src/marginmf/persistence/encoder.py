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

from marginmf._utils.saved import SAVED
from marginmf._utils.tensor_files import InvalidFileError
from marginmf._utils.types import Array
from marginmf.losses import REAL, TWO_LEVEL, RealLoss, TwoLevelLoss
from marginmf.persistence.classes import (
    can_learn,
    constructor_parameters,
    fitted_attributes,
    is_foreign,
    is_known,
    stored_parameters,
)
from marginmf.persistence.values import (
    CSR_PARTS,
    MAX_DEPTH,
    NotAnAtomError,
    check_csr,
    encode_atom,
    ids_to_array,
    is_storable,
    is_text,
    text_to_array,
    to_tensor,
)

LOSSES = {**TWO_LEVEL, **REAL}
#: What ``random_state`` may be beside numbers.  It is not kept: it goes on changing with every fit,
#: and any state of a generator from elsewhere would have to be trusted.
GENERATORS = (
    np.random.Generator,
    np.random.RandomState,
    np.random.BitGenerator,
    np.random.SeedSequence,
)


class ModelEncoder:
    """Encodes one model; `tensors` fills up meanwhile."""

    def __init__(self) -> None:
        self.tensors: dict[str, Array] = {}
        # By identity, with the object itself so that its identity is not given to another.
        self._shared: dict[int, tuple[int, Any]] = {}

    def encode(self, value: Any, path: str, depth: int = 0) -> Any:
        """Return a value as JSON; its path in the model is for messages and tensors' names."""
        if depth > MAX_DEPTH:
            raise ValueError(f"{path} is nested too deeply for a model file, or holds itself.")
        kind = type(value)
        if kind is list:
            return self._items(value, path, depth)
        if kind is tuple:
            return {"tuple": self._items(value, path, depth)}
        if kind is dict:
            return self._dict(value, path, depth)
        if isinstance(value, np.dtype) and (is_storable(value) or value.kind == "O"):
            return {"dtype": value.str}
        if isinstance(value, TwoLevelLoss | RealLoss) and LOSSES.get(value.name) is value:
            return {"loss": value.name}
        try:
            return encode_atom(value)
        except NotAnAtomError:
            return self._shareable(value, path, depth)

    def _shareable(self, value: Any, path: str, depth: int) -> Any:
        if id(value) in self._shared:
            return {"same": self._shared[id(value)][0]}
        node: dict[str, Any]
        if type(value) is np.ndarray and is_storable(value.dtype):
            node = {"array": self._array(value, path)}
        elif is_text(value):
            node = {"text": self._array(text_to_array(value), path)}
        elif type(value) is csr_array:
            node = {"csr": self._csr(value, path)}
        elif type(value) is SAVED.get("ids"):
            array = self._array(ids_to_array(value.ids, value.what), path)
            node = {"ids": {"what": value.what, "array": array}}
        elif is_known(value):
            node = {"object": self._object(value, path, depth)}
        else:
            raise ValueError(_unstorable(value, path))
        # A named tuple is as cheap to write again as to refer to, and there are thousands.
        if not isinstance(value, tuple):
            self._shared[id(value)] = (len(self._shared), value)
        return node

    def _array(self, array: Array, path: str) -> dict[str, str]:
        while path in self.tensors:  # names in dictionaries may have dots of their own
            path += "'"
        self.tensors[path], note = to_tensor(array)
        return {"tensor": path, **note}

    def _csr(self, matrix: csr_array, path: str) -> dict[str, Any]:
        parts = {name: getattr(matrix, name) for name in CSR_PARTS}
        shape = [int(n) for n in matrix.shape]
        try:
            check_csr(shape, **parts)
        except InvalidFileError as error:
            raise ValueError(f"{path} cannot be in a model file: {error}.") from None
        arrays = {name: self._array(part, _join(path, name)) for name, part in parts.items()}
        return {"shape": shape, **arrays}

    def _object(self, value: Any, path: str, depth: int) -> list[Any]:
        kind: Any = type(value)
        params = stored_parameters(value)
        if not can_learn(kind):
            return [kind.__name__, self._named(params, path, depth)]
        # Parameters that only a running fit can have are left out.
        if params.get("callbacks"):
            params["callbacks"] = ()
        if isinstance(params.get("random_state"), GENERATORS):
            params["random_state"] = None
        groups = (params, _fitted(value, path))
        return [kind.__name__, *(self._named(group, path, depth) for group in groups)]

    def _items(self, values: Any, path: str, depth: int) -> list[Any]:
        return [self.encode(part, _join(path, k), depth + 1) for k, part in enumerate(values)]

    def _named(self, values: dict[str, Any], path: str, depth: int) -> dict[str, Any]:
        return {
            name: self.encode(part, _join(path, name), depth + 1) for name, part in values.items()
        }

    def _dict(self, values: dict[Any, Any], path: str, depth: int) -> dict[str, Any]:
        if all(type(name) is str for name in values):
            return {"dict": self._named(values, path, depth)}
        pairs = []
        for name, part in values.items():
            try:
                key = encode_atom(name)
            except NotAnAtomError:
                raise ValueError(
                    f"{path} is a dictionary with the key {name!r}, but a model file can hold "
                    "keys of text, numbers and the like only."
                ) from None
            pairs.append([key, self.encode(part, _join(path, name), depth + 1)])
        return {"pairs": pairs}


def _fitted(value: Any, path: str) -> dict[str, Any]:
    """Return the fitted attributes, without what is derived from them."""
    kind: Any = type(value)
    known, params = fitted_attributes(kind), constructor_parameters(kind)
    if is_foreign(kind):
        return {name: part for name, part in vars(value).items() if name in known}
    fitted = {}
    for name, attribute in vars(value).items():
        if name in params or isinstance(getattr(kind, name, None), cached_property):
            continue
        if name not in known:
            raise ValueError(
                f"{_join(path, name)} is no attribute that {kind.__name__} has by itself, and a "
                "model file cannot hold others: delete it first."
            )
        fitted[name] = attribute
    return fitted


def _join(path: str, part: object) -> str:
    return f"{path}.{part}" if path else str(part)


def _unstorable(value: Any, path: str) -> str:
    if isinstance(value, TwoLevelLoss | RealLoss):
        return (
            f"{path} is a loss of your own, {value.name!r}, and a model file holds no code. Use "
            f"one of {', '.join(map(repr, LOSSES))}, or pickle the model instead."
        )
    what = type(value).__name__
    if isinstance(value, BaseEstimator) and is_foreign(type(value)):
        return (
            f"{path} is a {what}, and a model file cannot hold it. Of scikit-learn's estimators "
            "it can hold linear classifiers (LinearSVC, LogisticRegression, RidgeClassifier, "
            "SGDClassifier), OneVsRestClassifier over one of these, and k-means, spectral and "
            "agglomerative clustering. Use one of them, or save the model with joblib, whose "
            "files may run any program when they are loaded."
        )
    if type(value) is np.ndarray:
        what = f"array of {value.dtype}"
    shown = " ".join(f"{value!r:.80}".split())
    return (
        f"{path} is {shown}, of the type {what}, which a model file cannot hold: it holds "
        "numbers, text, arrays and objects of marginmf's own classes, but no code. Change it, or "
        "pickle the model instead."
    )
