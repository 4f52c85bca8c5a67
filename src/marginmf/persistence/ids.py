"""Vocabularies of ids: whole numbers as an array, all others as JSON in an array of bytes.

Names of labels and features that are objects are kept likewise.

In the tensors and not in the header, so that a file with millions of ids still has a small header.
"""

from typing import Any

import numpy as np

from marginmf._utils.ids import as_objects, shown
from marginmf._utils.types import Array
from marginmf.persistence.atoms import NotAnAtomError, decode_atom, encode_atom
from marginmf.persistence.errors import ModelFileError
from marginmf.persistence.json_text import read_json, write_json
from marginmf.ratings.ids import IdIndex

#: Text may hold half a surrogate pair, which is no character but a possible file name.
_ERRORS = "surrogatepass"


def ids_to_array(index: IdIndex) -> Array:
    """Return the ids as an int64 array, or as the bytes of a JSON list.

    Raises
    ------
    ValueError
        If an id is of a type that has no exact form in JSON.
    """
    if index.ids.dtype == np.int64:
        return index.ids
    return _as_bytes([_encode(value, index.what) for value in index.ids.tolist()])


def ids_from_array(array: Array, what: str) -> IdIndex:
    """Return the vocabulary whose ids these are, in their order."""
    if array.ndim == 1 and array.dtype == np.int64:
        ids = array
        distinct = bool((ids[1:] > ids[:-1]).all())
    elif array.ndim == 1 and array.dtype == np.uint8:
        ids = _read_objects(array, f"{what} ids")
        try:
            distinct = len(set(ids.tolist())) == len(ids)
        except TypeError:  # the signalling NaN of Decimal
            raise ModelFileError(f"a {what} id is not hashable") from None
    else:
        raise ModelFileError(f"the {what} ids are not a list")
    if not distinct:
        raise ModelFileError(f"the {what} ids are not distinct, or not in order")
    index = IdIndex.__new__(IdIndex)
    index.__setstate__({"ids": ids, "what": what})
    return index


def is_text(array: Any) -> bool:
    """Whether something is a vector of objects that are all text.

    >>> is_text(np.array(["a", "b"], object)), is_text(np.array(["a", 1], object))
    (True, False)
    """
    if type(array) is not np.ndarray or array.dtype.kind != "O" or array.ndim != 1:
        return False
    return all(type(value) in (str, np.str_) for value in array.tolist())


def text_to_array(array: Array) -> Array:
    """Return objects that are text as the bytes of a JSON list."""
    return _as_bytes([encode_atom(value) for value in array.tolist()])


def text_from_array(array: Array) -> Array:
    """Return the objects whose text this is."""
    if array.ndim != 1 or array.dtype != np.uint8:
        raise ModelFileError("the names are not a list")
    names = _read_objects(array, "names")
    if not is_text(names):
        raise ModelFileError("a name is not text")
    return names


def _as_bytes(nodes: list[Any]) -> Array:
    return np.frombuffer(write_json(nodes).encode("utf-8", _ERRORS), np.uint8)


def _encode(value: Any, what: str) -> Any:
    try:
        return encode_atom(value)
    except NotAnAtomError:
        raise ValueError(
            f"The {what} id {shown(value)} is of the type {type(value).__name__}, which a model "
            "file cannot hold. Ids may be whole numbers, text, floats, booleans, bytes, dates, "
            "datetimes (in UTC or at a fixed offset), timedeltas, Decimals, UUIDs, and tuples of "
            "these: convert the ids and fit again."
        ) from None


def _read_objects(array: Array, what: str) -> Array:
    try:
        text = array.tobytes().decode("utf-8", _ERRORS)
    except UnicodeDecodeError:
        raise ModelFileError(f"the list of {what} is not text") from None
    nodes = read_json(text, f"the list of {what}")
    if not isinstance(nodes, list):
        raise ModelFileError(f"the {what} are not a list")
    return as_objects(decode_atom(node) for node in nodes)
