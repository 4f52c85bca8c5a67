"""From a model to a JSON document and tensors, and back.

JSON has text, numbers, booleans, None and lists; everything else is an object with one name that
says what it is: ``{"tuple": [...]}``, ``{"array": {...}}``, ``{"object": [class, fields]}``.  An
object that occurs again is ``{"same": k}``: the k-th shareable object whose end was reached.
Decoding runs nothing but the constructors of the classes that a file may name, and refuses whatever
does not belong; whether the parts fit one another is checked by `marginmf.persistence.classes`.
"""

from collections.abc import Mapping
from functools import cached_property
from inspect import Parameter
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator

from marginmf._utils.saved import SAVED
from marginmf._utils.tensor_files import Allowance, InvalidFileError, TensorHeader
from marginmf._utils.types import Array
from marginmf.losses import REAL, TWO_LEVEL, RealLoss, TwoLevelLoss
from marginmf.persistence import values
from marginmf.persistence.classes import (
    can_learn,
    class_named,
    constructor_parameters,
    fitted_attributes,
    is_foreign,
    is_known,
    stored_parameters,
)
from marginmf.persistence.values import CSR_PARTS, MAX_DEPTH, encode_atom

LOSSES = {**TWO_LEVEL, **REAL}
#: What ``random_state`` may be beside numbers.  It is not kept: it goes on changing with every fit,
#: and any state of a generator from elsewhere would have to be trusted.
GENERATORS = (
    *(np.random.Generator, np.random.RandomState),
    *(np.random.BitGenerator, np.random.SeedSequence),
)
#: How many bytes of an array take about as long to check as one other value.
BYTES_PER_VALUE = 1 << 12
#: How many keys of a dictionary may be other than text.  Numbers can be made up whose hashes are
#: the same, and each of them would be compared with all others.
MOST_KEYS = 1000
#: What a method of that name decodes, and those of them that a file may refer to again.
_KINDS = ("tuple", "dict", "pairs", "dtype", "loss", "same")
_SHAREABLE = ("array", "text", "csr", "ids", "generator", "object")


class ModelEncoder:
    """Encodes one model; `tensors` fills up meanwhile."""

    def __init__(self) -> None:
        self.tensors: dict[str, Array] = {}
        # By identity, with the object itself so that its identity is not given to another.
        self._shared: dict[int, tuple[int, Any]] = {}
        self._n_bytes = 0
        self._lists: list[Array] = []

    def ask(self, allowance: Allowance) -> None:
        """Take from the allowance of a file what it takes to decode all this."""
        for array in self._lists:  # models begin with their ids
            values.ask_for_list(array, allowance)
        allowance.take(self._n_bytes)

    def encode(self, value: Any, path: str, depth: int = 0) -> Any:
        """Return a value as JSON; its path in the model is for messages and tensors' names."""
        if depth > MAX_DEPTH:
            raise ValueError(f"{path} is nested too deeply for a model file, or holds itself.")
        kind = type(value)
        if kind is list or kind is tuple:
            items = [self.encode(part, _join(path, k), depth + 1) for k, part in enumerate(value)]
            return items if kind is list else {"tuple": items}
        if kind is dict:
            return self._dict(value, path, depth)
        if isinstance(value, np.dtype) and (values.is_storable(value) or value.kind == "O"):
            return {"dtype": value.str}
        if isinstance(value, TwoLevelLoss | RealLoss) and LOSSES.get(value.name) is value:
            return {"loss": value.name}
        try:
            return encode_atom(value)
        except values.NotAnAtomError:
            return self._shareable(value, path, depth)

    def _shareable(self, value: Any, path: str, depth: int) -> Any:
        if id(value) in self._shared:
            return {"same": self._shared[id(value)][0]}
        node: dict[str, Any]
        if type(value) is np.ndarray and values.is_storable(value.dtype):
            node = {"array": self._array(value, path)}
        elif values.is_text(value):
            self._lists.append(values.text_to_array(value))
            node = {"text": self._array(self._lists[-1], path)}
        elif type(value) is csr_array:
            node = {"csr": self._csr(value, path)}
        elif type(value) is SAVED.get("ids"):
            ids = values.ids_to_array(value.ids, value.what)
            if ids is not value.ids:
                self._lists.append(ids)
            node = {"ids": {"what": value.what, "array": self._array(ids, path)}}
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
        self.tensors[path], note = values.to_tensor(array)
        self._n_bytes += array.nbytes - self.tensors[path].nbytes
        return {"tensor": path, **note}

    def _csr(self, matrix: csr_array, path: str) -> dict[str, Any]:
        parts = {name: getattr(matrix, name) for name in CSR_PARTS}
        shape = [int(n) for n in matrix.shape]
        try:
            values.check_csr(shape, **parts)
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

    def _named(self, parts: dict[str, Any], path: str, depth: int) -> dict[str, Any]:
        return {key: self.encode(part, _join(path, key), depth + 1) for key, part in parts.items()}

    def _dict(self, parts: dict[Any, Any], path: str, depth: int) -> dict[str, Any]:
        if all(type(key) is str for key in parts):
            return {"dict": self._named(parts, path, depth)}
        if len(parts) > MOST_KEYS:
            raise ValueError(f"{path} has over {MOST_KEYS} keys that are not text: use an array.")
        pairs = []
        for key, part in parts.items():
            try:
                pairs.append([encode_atom(key), self.encode(part, _join(path, key), depth + 1)])
            except values.NotAnAtomError:
                raise ValueError(
                    f"{path} is a dictionary with the key {key!r}, but a model file can hold keys "
                    "of text, numbers and the like only."
                ) from None
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


class ModelDecoder:
    """Decodes one model; every tensor is taken once, so that none is left over or used twice."""

    def __init__(self, tensors: Mapping[str, Any], allowance: Allowance) -> None:
        self._tensors, self._allowance = dict(tensors), allowance
        # What may be referred to again, and how many values it has.
        self._shared: list[tuple[Any, int]] = []
        self._n_values = 0

    def decode(self, node: Any, depth: int = 0) -> Any:
        """Return the value that JSON stands for."""
        if depth > MAX_DEPTH:
            raise InvalidFileError("its contents are nested too deeply")
        self._n_values += 1
        if isinstance(node, list):
            return [self.decode(part, depth + 1) for part in node]
        if not isinstance(node, dict) or len(node) != 1:
            return values.decode_atom(node)
        ((tag, content),) = node.items()
        if tag in _KINDS:
            return getattr(self, f"_{tag}")(content, depth)
        if tag in _SHAREABLE:
            before = self._n_values
            value = getattr(self, f"_{tag}")(content, depth)
            self._n_values += getattr(value, "nbytes", 0) // BYTES_PER_VALUE
            if not isinstance(value, tuple):
                self._shared.append((value, self._n_values - before))
            return value
        return values.decode_atom(node)

    def finish(self) -> None:
        """Refuse tensors that nothing has asked for."""
        for name in self._tensors:
            raise InvalidFileError(f"the array {name!r:.60} belongs to nothing")

    def _tuple(self, content: Any, depth: int) -> tuple[Any, ...]:
        return tuple(self.decode(part, depth + 1) for part in _of_type(content, list))

    def _dict(self, content: Any, depth: int) -> dict[str, Any]:
        parts = _of_type(content, dict).items()
        return {name: self.decode(part, depth + 1) for name, part in parts}

    def _pairs(self, content: Any, depth: int) -> dict[Any, Any]:
        pairs = [_of_type(pair, list) for pair in _of_type(content, list)]
        if any(len(pair) != 2 for pair in pairs):
            raise InvalidFileError("the pairs of a dictionary cannot be understood")
        if len(pairs) > MOST_KEYS:
            raise InvalidFileError(f"a dictionary has over {MOST_KEYS} keys that are not text")
        parts = {values.decode_atom(key): self.decode(part, depth + 1) for key, part in pairs}
        if len(parts) < len(pairs):
            raise InvalidFileError("a dictionary has the same key twice")
        return parts

    def _dtype(self, content: Any, depth: int) -> np.dtype[Any]:
        # The name of a type is harmless; an array of this one would not be.
        return np.dtype(object) if content == "|O" else values.read_dtype(content)

    def _loss(self, content: Any, depth: int) -> Any:
        if not isinstance(content, str) or content not in LOSSES:
            raise InvalidFileError(f"the loss {content!r:.60} is not known")
        return LOSSES[content]

    def _same(self, content: Any, depth: int) -> Any:
        if type(content) is not int or not 0 <= content < len(self._shared):
            raise InvalidFileError(f"there is no object {content!r:.60} to refer to")
        value, n_values = self._shared[content]
        # Few references suffice for endlessly many values: one object refers to another twice, that
        # to a third twice, and so on.
        self._n_values += n_values
        self._allowance.take_values(n_values)
        return value

    def _array(self, content: Any, depth: int) -> Any:
        note = dict(_of_type(content, dict))
        name = note.pop("tensor", None)
        if not isinstance(name, str) or name not in self._tensors:
            raise InvalidFileError(f"the array {name!r:.60} is missing")
        return self._take(name, note)

    def _take(self, name: str, note: dict[str, Any]) -> Any:
        return values.from_tensor(self._tensors.pop(name), note, self._allowance)

    def _text(self, content: Any, depth: int) -> Any:
        return values.text_from_array(self._array(content, depth), self._allowance)

    def _csr(self, content: Any, depth: int) -> Any:
        if not isinstance(content, dict) or content.keys() != {"shape", *CSR_PARTS}:
            raise InvalidFileError("a sparse matrix cannot be understood")
        parts = (self._array(content[name], depth) for name in CSR_PARTS)
        return values.csr_from(content["shape"], *parts)

    def _ids(self, content: Any, depth: int) -> Any:
        if not isinstance(content, dict) or content.keys() != {"what", "array"}:
            raise InvalidFileError("a list of ids cannot be understood")
        what = _of_type(content["what"], str)
        array = self._array(content["array"], depth)
        ids = values.ids_from_array(array, what, self._allowance)
        kind: Any = class_named("ids")
        index = kind.__new__(kind)
        index.__dict__.update(ids=ids, what=what)
        return index

    def _generator(self, content: Any, depth: int) -> None:
        """Return None: earlier versions kept the state of a generator that was a parameter."""

    def _object(self, content: Any, depth: int) -> Any:
        name, *parts = _of_type(content, list) or [None]
        kind: Any = class_named(name) if isinstance(name, str) else None
        if kind is None or kind.__name__ != name:
            raise InvalidFileError(f"{name!r:.60} is not a class that a model can have parts of")
        if len(parts) != (2 if can_learn(kind) else 1):
            raise InvalidFileError(f"the parts of {name} cannot be understood")
        fields, *fitted = (self._dict(part, depth) for part in parts)
        known = constructor_parameters(kind)
        _refuse_unknown(fields, known, f"{name} has no parameter")
        for field, default in known.items():
            if default is Parameter.empty and field not in fields:
                raise InvalidFileError(f"{name} lacks its {field}")
        try:
            value = kind(**fields)
        except (TypeError, ValueError) as error:
            raise InvalidFileError(f"{name} cannot be made of its parts ({error})") from None
        for attributes in fitted:
            _refuse_unknown(attributes, fitted_attributes(kind), f"{name} has no attribute")
            value.__dict__.update(attributes)
        return value


class HeaderDecoder(ModelDecoder):
    """A decoder that knows only what the header says of the arrays, and describes them in words."""

    def __init__(self, header: TensorHeader) -> None:
        super().__init__(dict.fromkeys(header.tensors), header.allowance)
        self._header = header

    def _take(self, name: str, note: dict[str, Any]) -> str:
        return f"array of shape {self._header.tensors[name].shape}"

    def _text(self, content: Any, depth: int) -> str:
        self._array(content, depth)
        return "array of text"

    def _csr(self, content: Any, depth: int) -> str:
        parts = _of_type(content, dict)
        for name in CSR_PARTS:
            self._array(parts.get(name), depth)
        return f"sparse array of shape {parts.get('shape')!r:.60}"

    def _ids(self, content: Any, depth: int) -> str:
        self._array(_of_type(content, dict).get("array"), depth)
        return "list of ids"


def _of_type(content: Any, kind: type[Any]) -> Any:
    if not isinstance(content, kind):
        raise InvalidFileError(f"{content!r:.60} stands where a {kind.__name__} should be")
    return content


def _refuse_unknown(names: Mapping[str, Any], known: Mapping[str, Any], what: str) -> None:
    for name in names:
        if name not in known:
            raise InvalidFileError(f"{what} {name!r:.60}")
