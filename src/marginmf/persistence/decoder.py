"""From a JSON document and tensors back to a model.

Nothing is run but the constructors of the classes that a file may name, and whatever does not
belong is refused.  Whether the parts fit one another is for `marginmf.persistence.checks` to say.
"""

from collections.abc import Mapping
from inspect import Parameter
from typing import Any

import numpy as np

from marginmf._utils.tensor_files import InvalidFileError, TensorHeader
from marginmf.persistence.classes import (
    can_learn,
    class_named,
    constructor_parameters,
    fitted_attributes,
)
from marginmf.persistence.encoder import LOSSES
from marginmf.persistence.values import (
    CSR_PARTS,
    FORMER_TAGS,
    MAX_DEPTH,
    TAGS,
    csr_from,
    decode_atom,
    from_tensor,
    ids_from_array,
    read_dtype,
    read_tagged,
    text_from_array,
)

#: What refers to the same thing twice, and that to another twice, and so on, would be endless for
#: whoever looks at all of it.  A header has fewer values unless it has them by reference.
MAX_VALUES = 1 << 24
#: What a method reads that is called like it, and those of them that a file may refer to again.
_KINDS = ("tuple", "dict", "pairs", "dtype", "loss", "same")
_SHAREABLE = ("array", "text", "csr", "ids", "generator", "object")


class ModelDecoder:
    """Decodes one model; every tensor is taken once, so that none is left over or used twice."""

    def __init__(self, tensors: Mapping[str, Any]) -> None:
        self._tensors = dict(tensors)
        self._shared: list[tuple[Any, int]] = []
        self._n_values = 0

    def decode(self, node: Any, depth: int = 0) -> Any:
        """Return the value that JSON stands for."""
        if depth > MAX_DEPTH:
            raise InvalidFileError("its contents are nested too deeply")
        self._n_values += 1
        if self._n_values > MAX_VALUES:
            raise InvalidFileError("its contents refer to one another without end")
        if node is None or isinstance(node, str | int | float):
            return node
        if isinstance(node, list):
            return [self.decode(part, depth + 1) for part in node]
        if not isinstance(node, dict) or len(node) != 1:
            raise InvalidFileError(f"{node!r:.60} is not a value that is known here")
        ((tag, content),) = node.items()
        if tag in TAGS or tag in FORMER_TAGS:
            return read_tagged(tag, content)
        if tag in _KINDS:
            return getattr(self, f"_{tag}")(content, depth)
        if tag in _SHAREABLE:
            before = self._n_values
            value = getattr(self, f"_{tag}")(content, depth)
            if not isinstance(value, tuple):
                self._shared.append((value, self._n_values - before))
            return value
        raise InvalidFileError(f"{tag!r:.60} is not a kind of value that is known here")

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
        parts = {decode_atom(key): self.decode(part, depth + 1) for key, part in pairs}
        if len(parts) < len(pairs):
            raise InvalidFileError("a dictionary has the same key twice")
        return parts

    def _dtype(self, content: Any, depth: int) -> np.dtype[Any]:
        # The name of a type is harmless; an array of this one would not be.
        return np.dtype(object) if content == "|O" else read_dtype(content)

    def _loss(self, content: Any, depth: int) -> Any:
        if not isinstance(content, str) or content not in LOSSES:
            raise InvalidFileError(f"the loss {content!r:.60} is not known")
        return LOSSES[content]

    def _same(self, content: Any, depth: int) -> Any:
        if type(content) is not int or not 0 <= content < len(self._shared):
            raise InvalidFileError(f"there is no object {content!r:.60} to refer to")
        value, n_values = self._shared[content]
        self._n_values += n_values
        return value

    def _array(self, content: Any, depth: int) -> Any:
        note = dict(_of_type(content, dict))
        name = note.pop("tensor", None)
        if not isinstance(name, str) or name not in self._tensors:
            raise InvalidFileError(f"the array {name!r:.60} is missing")
        return self._take(name, note)

    def _take(self, name: str, note: dict[str, Any]) -> Any:
        return from_tensor(self._tensors.pop(name), note)

    def _text(self, content: Any, depth: int) -> Any:
        return text_from_array(self._array(content, depth))

    def _csr(self, content: Any, depth: int) -> Any:
        if not isinstance(content, dict) or content.keys() != {"shape", *CSR_PARTS}:
            raise InvalidFileError("a sparse matrix cannot be understood")
        parts = (self._array(content[name], depth) for name in CSR_PARTS)
        return csr_from(content["shape"], *parts)

    def _ids(self, content: Any, depth: int) -> Any:
        if not isinstance(content, dict) or content.keys() != {"what", "array"}:
            raise InvalidFileError("a list of ids cannot be understood")
        what = _of_type(content["what"], str)
        kind: Any = class_named("ids")
        index = kind.__new__(kind)
        index.__setstate__(
            {"ids": ids_from_array(self._array(content["array"], depth), what), "what": what}
        )
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
        _refuse_strangers(fields, known, f"{name} has no parameter")
        for field, default in known.items():
            if default is Parameter.empty and field not in fields:
                raise InvalidFileError(f"{name} lacks its {field}")
        try:
            value = kind(**fields)
        except (TypeError, ValueError) as error:
            raise InvalidFileError(f"{name} cannot be made of its parts ({error})") from None
        for attributes in fitted:
            _refuse_strangers(attributes, fitted_attributes(kind), f"{name} has no attribute")
            value.__dict__.update(attributes)
        return value


class HeaderDecoder(ModelDecoder):
    """A decoder that knows only what the header says of the arrays, and describes them in words."""

    def __init__(self, header: TensorHeader) -> None:
        super().__init__(dict.fromkeys(header.tensors))
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


def _refuse_strangers(names: Mapping[str, Any], known: Mapping[str, Any], what: str) -> None:
    for name in names:
        if name not in known:
            raise InvalidFileError(f"{what} {name!r:.60}")
