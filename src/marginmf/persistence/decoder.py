"""From a JSON document and tensors back to a model.

Nothing is run but the constructors of the classes on the list, and whatever does not belong is
refused.  Whether the parts fit one another is for `marginmf.persistence.checks` to say.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from marginmf.persistence.arrays import from_tensor, read_dtype
from marginmf.persistence.atoms import MAX_DEPTH, READERS, decode_atom, read_atom
from marginmf.persistence.classes import class_named, constructor_parameters
from marginmf.persistence.encoder import LOSSES
from marginmf.persistence.errors import ModelFileError
from marginmf.persistence.generators import generator_from
from marginmf.persistence.ids import ids_from_array, text_from_array
from marginmf.persistence.sparse import PARTS, csr_from
from marginmf.persistence.state import can_learn, fitted_attributes

#: What refers to the same thing twice, and that to another twice, and so on, would be endless for
#: whoever looks at all of it.  A header has not so many values unless it says them by reference.
MAX_VALUES = 1 << 24


class Decoder:
    """Decodes one model; every tensor is taken once, so that none is left over or used twice."""

    def __init__(self, tensors: Mapping[str, Any]) -> None:
        self._tensors = dict(tensors)
        self._shared: list[tuple[Any, int]] = []
        self._n_values = 0

    def decode(self, node: Any, depth: int = 0) -> Any:
        """Return the value that JSON stands for."""
        if depth > MAX_DEPTH:
            raise ModelFileError("its contents are nested too deeply")
        self._n_values += 1
        if self._n_values > MAX_VALUES:
            raise ModelFileError("its contents refer to one another without end")
        if node is None or isinstance(node, str | int | float):
            return node
        if isinstance(node, list):
            return [self.decode(part, depth + 1) for part in node]
        if not isinstance(node, dict) or len(node) != 1:
            raise ModelFileError(f"{node!r:.60} is not a value that is known here")
        ((tag, content),) = node.items()
        if tag in READERS:
            return read_atom(tag, content)
        if tag in _PLAIN:
            return getattr(self, _PLAIN[tag])(content, depth)
        if tag in _SHAREABLE:
            before = self._n_values
            value = getattr(self, _SHAREABLE[tag])(content, depth)
            if not isinstance(value, tuple):
                self._shared.append((value, self._n_values - before))
            return value
        raise ModelFileError(f"{tag!r:.60} is not a kind of value that is known here")

    def finish(self) -> None:
        """Refuse tensors that nothing has asked for."""
        for name in self._tensors:
            raise ModelFileError(f"the array {name!r:.60} belongs to nothing")

    def _tuple(self, content: Any, depth: int) -> tuple[Any, ...]:
        return tuple(self.decode(part, depth + 1) for part in of_type(content, list))

    def _dict(self, content: Any, depth: int) -> dict[str, Any]:
        parts = of_type(content, dict).items()
        return {name: self.decode(part, depth + 1) for name, part in parts}

    def _pairs(self, content: Any, depth: int) -> dict[Any, Any]:
        pairs = [of_type(pair, list) for pair in of_type(content, list)]
        if any(len(pair) != 2 for pair in pairs):
            raise ModelFileError("the pairs of a dictionary cannot be understood")
        try:
            parts = {decode_atom(key): self.decode(part, depth + 1) for key, part in pairs}
        except TypeError:  # the signalling NaN of Decimal
            raise ModelFileError("a key of a dictionary is not hashable") from None
        if len(parts) < len(pairs):
            raise ModelFileError("a dictionary has the same key twice")
        return parts

    def _dtype(self, content: Any, depth: int) -> np.dtype[Any]:
        # The name of a type is harmless; an array of this one would not be.
        return np.dtype(object) if content == "|O" else read_dtype(content)

    def _loss(self, content: Any, depth: int) -> Any:
        if not isinstance(content, str) or content not in LOSSES:
            raise ModelFileError(f"the loss {content!r:.60} is not known")
        return LOSSES[content]

    def _same(self, content: Any, depth: int) -> Any:
        if type(content) is not int or not 0 <= content < len(self._shared):
            raise ModelFileError(f"there is no object {content!r:.60} to refer to")
        value, n_values = self._shared[content]
        self._n_values += n_values
        return value

    def _array(self, content: Any, depth: int) -> Any:
        note = dict(of_type(content, dict))
        name = note.pop("tensor", None)
        if not isinstance(name, str) or name not in self._tensors:
            raise ModelFileError(f"the array {name!r:.60} is missing")
        return self._take(name, note)

    def _take(self, name: str, note: dict[str, Any]) -> Any:
        return from_tensor(self._tensors.pop(name), note)

    def _text(self, content: Any, depth: int) -> Any:
        return text_from_array(self._array(content, depth))

    def _csr(self, content: Any, depth: int) -> Any:
        if not isinstance(content, dict) or content.keys() != {"shape", *PARTS}:
            raise ModelFileError("a sparse matrix cannot be understood")
        return csr_from(content["shape"], *(self._array(content[name], depth) for name in PARTS))

    def _ids(self, content: Any, depth: int) -> Any:
        if not isinstance(content, dict) or content.keys() != {"what", "array"}:
            raise ModelFileError("a list of ids cannot be understood")
        return ids_from_array(self._array(content["array"], depth), of_type(content["what"], str))

    def _generator(self, content: Any, depth: int) -> Any:
        return generator_from(self.decode(content, depth + 1))

    def _object(self, content: Any, depth: int) -> Any:
        name, *parts = of_type(content, list) or [None]
        kind: Any = class_named(name) if isinstance(name, str) else None
        if kind is None:
            raise ModelFileError(f"{name!r:.60} is not a class that a model can have parts of")
        if len(parts) != (2 if can_learn(kind) else 1):
            raise ModelFileError(f"the parts of {name} cannot be understood")
        fields, *fitted = (self._dict(part, depth) for part in parts)
        known = constructor_parameters(kind)
        _refuse_strangers(fields, known, f"{name} has no parameter")
        for field, required in known.items():
            if required and field not in fields:
                raise ModelFileError(f"{name} lacks its {field}")
        try:
            value = kind(**fields)
        except (TypeError, ValueError) as error:
            raise ModelFileError(f"{name} cannot be made of its parts ({error})") from None
        for attributes in fitted:
            _refuse_strangers(attributes, fitted_attributes(kind), f"{name} has no attribute")
            value.__dict__.update(attributes)
        return value


#: The method that reads each kind of value, by its name in the file.
_PLAIN = {
    "tuple": "_tuple",
    "dict": "_dict",
    "pairs": "_pairs",
    "dtype": "_dtype",
    "loss": "_loss",
    "same": "_same",
}

#: The same for what a file may refer to again.
_SHAREABLE = {
    "array": "_array",
    "text": "_text",
    "csr": "_csr",
    "ids": "_ids",
    "generator": "_generator",
    "object": "_object",
}


def of_type(content: Any, kind: type[Any]) -> Any:
    """Return what stands in a document if it is of that type."""
    if not isinstance(content, kind):
        raise ModelFileError(f"{content!r:.60} stands where a {kind.__name__} should be")
    return content


def _refuse_strangers(names: Mapping[str, Any], known: Mapping[str, Any], what: str) -> None:
    for name in names:
        if name not in known:
            raise ModelFileError(f"{what} {name!r:.60}")
