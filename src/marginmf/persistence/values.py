"""Single values, lists of ids, arrays and sparse matrices as JSON and tensors, and back.

Text, booleans, None and finite numbers are what JSON has; every other type is an object with one
name, ``{"tuple": [1, 2]}``.  Types are exact: a subclass is another type, which could not be
restored.  Lists of ids and names are tensors too, the bytes of a JSON list, so that a file with
millions of ids has a small header.
"""

import struct
from collections.abc import Iterable
from math import isfinite
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from marginmf._utils.ids import LONGEST_ID, are_plain, as_objects, check_ids, shown
from marginmf._utils.saved import are_row_ends, are_sorted_in_rows, within
from marginmf._utils.sparse import settled
from marginmf._utils.tensor_files import (
    TENSOR_TYPES,
    TYPE_NAMES,
    Allowance,
    InvalidFileError,
    as_bytes,
    read_json,
    write_json,
)
from marginmf._utils.types import Array

#: Whole numbers from here on are written in hexadecimal, which has no limit of digits.
BIG = 2**63
#: Whole numbers with more digits than this are no ids and no seeds.  What is computed from them
#: takes the square of their length.
MOST_DIGITS = 1000
#: How many ids may have the same hash.  Of text there is one in 2**64; numbers can be made up.
MOST_ALIKE = 50
#: How many bytes of a list of texts are read at a time.
CHUNK = 1 << 16
#: Tuples in tuples, and so on, are kept up to here.
MAX_DEPTH = 50
#: What JSON does not have, by its name in the file.
TAGS = ("int", "float", "numpy")
#: What earlier versions kept as well.
FORMER_TAGS = ("bytes", "date", "datetime", "timedelta", "decimal", "uuid")
#: The arrays of a sparse matrix, by their names in SciPy and in the file.
CSR_PARTS = ("data", "indices", "indptr")
#: No matrix has this many columns: positions in it would not be 64-bit numbers.
MOST_COLUMNS = 1 << 62
#: From here on arrays are narrowed by half only.
MANY_BYTES = 1 << 20
#: Text may hold half a surrogate pair, which is no character but a possible file name.
_ERRORS = "surrogatepass"


class NotAnAtomError(ValueError):
    """A value whose type has no exact form here."""


def encode_atom(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON, or raise `NotAnAtomError`.

    >>> encode_atom(("a", 2**70, float("inf")))
    {'tuple': ['a', {'int': '0x400000000000000000'}, {'float': '7ff0000000000000'}]}
    """
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int and value.bit_length() <= 4 * MOST_DIGITS:
        return value if -BIG <= value < BIG else {"int": hex(value)}
    if kind is float:
        # Infinities and NaN by their bits, because JSON has no word for them.
        return value if isfinite(value) else {"float": struct.pack(">d", value).hex()}
    if kind is tuple and depth < MAX_DEPTH:
        return {"tuple": [encode_atom(part, depth + 1) for part in value]}
    if kind is np.str_:
        return str.__str__(value)  # NumPy's own drops zeros at the end
    if isinstance(value, np.generic) and is_storable(value.dtype) and value.dtype.kind != "U":
        return {"numpy": [value.dtype.str, value.tobytes().hex()]}
    raise NotAnAtomError


def decode_atom(node: Any, depth: int = 0) -> Any:
    """Return the value that JSON stands for, or raise `InvalidFileError`.

    >>> decode_atom({"tuple": ["a", {"int": "0x10"}]})
    ('a', 16)
    """
    if node is None or isinstance(node, str | int | float):
        return node
    if isinstance(node, dict) and len(node) == 1:
        ((tag, content),) = node.items()
        if tag == "tuple" and isinstance(content, list) and depth < MAX_DEPTH:
            return tuple(decode_atom(part, depth + 1) for part in content)
        if tag in TAGS or tag in FORMER_TAGS:
            return read_tagged(tag, content)
    raise InvalidFileError(f"{node!r:.60} is not a value that is known here")


def read_tagged(tag: str, content: Any) -> Any:
    """Return a value of a type that JSON does not have."""
    if tag in FORMER_TAGS:
        raise InvalidFileError(
            f"it holds a value of the type {tag!r}, which model files no longer hold: fit the "
            "model again, with ids that are text or numbers"
        )
    try:
        match tag, content:
            case "int", str() if len(content) <= MOST_DIGITS + 3:  # with its sign and 0x
                return int(content, 16)
            case "float", str():
                return float(struct.unpack(">d", bytes.fromhex(content))[0])
            case "numpy", ["str", str(text)]:  # as earlier versions wrote NumPy's text
                return text
            case "numpy", [name, str(text)]:
                dtype, data = read_dtype(name), bytes.fromhex(text)
                bad = dtype.kind == "U" or (dtype.kind == "b" and data[:1] > b"\1")
                if len(data) == dtype.itemsize and not bad:
                    return np.frombuffer(data, dtype)[0]
    except (ValueError, struct.error):
        pass
    raise InvalidFileError(f"{content!r:.60} is not of the type {tag!r}")


def ids_to_array(ids: Array, what: str) -> Array:
    """Return ids as an int64 array, or as the bytes of a JSON list; refuse uncommon types."""
    return ids if ids.dtype == np.int64 else _to_bytes(_encode_id(one, what) for one in ids)


def ids_from_array(array: Array, what: str, allowance: Allowance) -> Array:
    """Return distinct ids, in their order."""
    if array.ndim == 1 and array.dtype == np.int64:
        ids = array
        distinct = bool((ids[1:] > ids[:-1]).all())
    elif array.ndim == 1 and array.dtype == np.uint8:
        ids = _read_list(array, f"{what} ids", allowance)
        if not all(map(_is_id, ids)):
            raise InvalidFileError(f"the {what} ids are not all text, numbers or tuples of these")
        distinct = _are_distinct(ids)
    else:
        raise InvalidFileError(f"the {what} ids are not a list")
    if not distinct:
        raise InvalidFileError(f"the {what} ids are not distinct, or not in order")
    if ids.dtype == object:
        try:
            check_ids(ids, what)
        except ValueError as error:
            raise InvalidFileError(str(error)[:-1]) from None
    return ids


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
    return _to_bytes(map(encode_atom, array.tolist()))


def text_from_array(array: Array, allowance: Allowance) -> Array:
    """Return the objects whose text this is."""
    if array.ndim != 1 or array.dtype != np.uint8:
        raise InvalidFileError("the names are not a list")
    names = _read_list(array, "names", allowance)
    if not is_text(names):
        raise InvalidFileError("a name is not text")
    if not are_plain(names):
        raise InvalidFileError(f"a name is longer than {LONGEST_ID:,} characters, or has a null")
    return names


def _encode_id(value: Any, what: str) -> Any:
    if not _is_id(plain := _as_python(value)):
        raise ValueError(
            f"The {what} id {shown(value)} is of the type {type(value).__name__}, which a model "
            "file cannot hold. Ids in a file may be whole numbers, text, floats, booleans and "
            "tuples of these: convert the ids, to text for example, and fit again."
        )
    return encode_atom(plain)


def _as_python(value: Any) -> Any:
    """Return one of NumPy's numbers or texts as Python's own, which equals it."""
    if isinstance(value, np.str_):
        return str.__str__(value)
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return value.item()
    return tuple(map(_as_python, value)) if type(value) is tuple else value


def _is_id(value: Any, depth: int = 0) -> bool:
    if type(value) is tuple:
        return depth < MAX_DEPTH and all(_is_id(part, depth + 1) for part in value)
    # NaN is not equal to itself, and would never be found.
    return type(value) in (int, str, bool) or (type(value) is float and value == value)


def _to_bytes(nodes: Iterable[Any]) -> Array:
    return np.frombuffer(write_json(list(nodes)).encode("utf-8", _ERRORS), np.uint8)


def _read_list(array: Array, what: str, allowance: Allowance) -> Array:
    try:
        allowance.take_json(array.tobytes(), copies=1)
        values: Any = _read_texts(array)
        if values is None:
            allowance.take_json(array.tobytes(), copies=1)
            nodes = read_json(str(array.data, "utf-8", _ERRORS), f"the list of {what}")
            if not isinstance(nodes, list):
                raise InvalidFileError(f"the {what} are not a list")
            values = map(decode_atom, nodes)
    except UnicodeDecodeError:
        raise InvalidFileError(f"the list of {what} is not text") from None
    allowance.take(-array.nbytes)  # nothing else needs the bytes
    if not isinstance(values, list):
        return as_objects(values)
    texts = np.empty(len(values), object)  # without a copy of the list, which may be long
    texts[:] = values
    return texts


def ask_for_list(array: Array, allowance: Allowance) -> None:
    """Take from an allowance what it takes to read a list."""
    # Where not all of it is text without escapes, it is read as a whole.
    plain = bytes(array[:2]) == b'["' and not (array == ord("\\")).any()
    for _ in range(1 if plain else 2):
        allowance.take_json(array.tobytes(), copies=1)
    allowance.take(-array.nbytes)


def _read_texts(array: Array) -> list[str] | None:
    """Return the texts of a JSON list; None if there is anything else, such as an escape.

    Chunk after chunk: the text of millions of ids takes as much memory as they do.
    """
    if array.size < 4 or bytes(array[:2]) != b'["' or bytes(array[-2:]) != b'"]':
        return None
    if array.min() < 0x20:
        return None
    data, texts, start, stop = array.data, list[str](), 2, len(array) - 2
    while True:
        chunk = bytes(data[start : min(start + CHUNK, stop)])
        last = start + len(chunk) == stop
        end = len(chunk) if last else chunk.rfind(b'","')
        if end < 0 or b"\\" in chunk:
            return None
        found = chunk[:end].decode("utf-8", _ERRORS).split('","')
        if chunk.count(b'"', 0, end) != 2 * (len(found) - 1):
            return None
        texts += found
        if last:
            return texts
        start += end + 3


def _are_distinct(ids: Array) -> bool:
    """Whether no two ids are equal, without a set of them, which would take as much as they do."""
    hashes = np.sort(np.fromiter(map(hash, ids), np.int64, len(ids)))
    found, n = np.unique(hashes[1:][hashes[1:] == hashes[:-1]], return_counts=True)
    if n.max(initial=0) > MOST_ALIKE:
        raise InvalidFileError("thousands of its ids were made to be looked up slowly")
    alike = set(found.tolist())
    suspects = [one for one in ids if hash(one) in alike] if alike else []
    return len(set(suspects)) == len(suspects)


# A tensor is an array in C order of one of twelve types.  What it takes to restore the original is
# kept as a small note: its dtype, where that differs, and its order in memory.


def is_storable(dtype: np.dtype[Any]) -> bool:
    """Whether values of this type are numbers or text that mean the same on every machine.

    >>> is_storable(np.dtype("<U5")), is_storable(np.dtype(object))
    (True, False)
    """
    # "g" is the long double, whose size depends on the machine.
    return dtype.kind in "biufU" and dtype.char != "g" and dtype.itemsize > 0


def read_dtype(text: Any) -> np.dtype[Any]:
    """Return the dtype of that name, or raise `InvalidFileError`."""
    try:
        if isinstance(text, str) and len(text) <= 32:
            dtype = np.dtype(text)
            if dtype.str == text and is_storable(dtype):
                return dtype
    except (TypeError, ValueError):
        pass
    raise InvalidFileError(f"{text!r:.60} is not the type of an array")


def to_tensor(array: Array) -> tuple[Array, dict[str, str]]:
    """Return a tensor and the note that restores the array from it.

    Whole numbers are kept in the smallest type that holds them all; many of them, in one that is at
    most half as wide, because a loaded model may take a few times the memory of its file only.

    >>> tensor, note = to_tensor(np.array([7, 300]))
    >>> tensor.dtype, note
    (dtype('uint16'), {'dtype': '<i8'})
    """
    dtype, note = array.dtype, {}
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        array, note = array.T, {"order": "F"}
    tensor = np.asarray(array, order="C")
    if dtype.str not in TYPE_NAMES:
        # Text and big-endian numbers: as bytes, along one more axis.
        tensor = as_bytes(tensor).reshape(*tensor.shape, dtype.itemsize)
    elif dtype.kind in "iu":
        tensor = _narrowed(tensor)
    if tensor.dtype != dtype:
        note["dtype"] = dtype.str
    return tensor, note


def from_tensor(tensor: Array, note: dict[str, Any], allowance: Allowance) -> Array:
    """Return the array that a tensor and its note stand for."""
    if not note.keys() <= {"dtype", "order"} or note.get("order", "F") != "F":
        raise InvalidFileError("the note on an array cannot be understood")
    if tensor.dtype == np.bool_ and as_bytes(tensor).max(initial=0) > 1:
        raise InvalidFileError("an array of booleans holds something else")
    if "dtype" in note:
        dtype = read_dtype(note["dtype"])
        if dtype.str in TYPE_NAMES:
            allowance.take(tensor.size * (dtype.itemsize - tensor.itemsize))
        tensor = _restored(tensor, dtype)
    return tensor.T if "order" in note else tensor


def _narrowed(array: Array) -> Array:
    if array.size == 0:
        return array
    low, high = int(array.min()), int(array.max())
    least = array.itemsize // 2 if array.nbytes > MANY_BYTES else 1
    for name in ("U8", "U16", "U32") if low >= 0 else ("I8", "I16", "I32"):
        dtype = TENSOR_TYPES[name]
        bounds = np.iinfo(dtype)
        if bounds.min <= low and high <= bounds.max and least <= dtype.itemsize < array.itemsize:
            return array.astype(dtype)
    return array


def _restored(tensor: Array, dtype: np.dtype[Any]) -> Array:
    narrowed = dtype.str in TYPE_NAMES
    if narrowed and tensor.dtype.kind + dtype.kind in ("uu", "ui", "ii"):
        if np.can_cast(tensor.dtype, dtype):
            return tensor.astype(dtype)
    elif not narrowed and tensor.dtype == np.uint8 and tensor.shape[-1:] == (dtype.itemsize,):
        if dtype.kind == "U" and tensor.size and tensor.view(dtype.str[0] + "u4").max() > 0x10FFFF:
            raise InvalidFileError("an array of text holds something that is not text")
        return tensor.reshape(-1).view(dtype).reshape(tensor.shape[:-1])
    raise InvalidFileError(f"an array of type {dtype} does not fit its tensor")


def check_csr(shape: Any, data: Array, indices: Array, indptr: Array) -> None:
    """Raise `InvalidFileError` unless these are a matrix with sorted rows and no entry twice.

    SciPy's compiled routines do not check indices: a column that does not exist would be read or
    written beyond the end of an array.
    """
    if not isinstance(shape, list | tuple) or len(shape) != 2:
        raise InvalidFileError("a sparse matrix has not two axes")
    if not all(type(n) is int and 0 <= n < MOST_COLUMNS for n in shape):
        raise InvalidFileError(f"a sparse matrix has the shape {list(shape)!r:.60}")
    n_rows, n_columns = shape
    flat = all(type(part) is np.ndarray and part.ndim == 1 for part in (data, indices, indptr))
    if not flat or indices.dtype not in (np.int32, np.int64) or indptr.dtype != indices.dtype:
        raise InvalidFileError("a sparse matrix has indices of unknown types")
    if data.dtype.kind not in "biuf" or not data.dtype.isnative or len(data) != len(indices):
        raise InvalidFileError("a sparse matrix has other values than entries")
    if len(indptr) != n_rows + 1 or not are_row_ends(indptr, len(data)):
        raise InvalidFileError("a sparse matrix has entries that are not divided among its rows")
    if not within(indices, n_columns):
        raise InvalidFileError("a sparse matrix has entries in columns that do not exist")
    if not are_sorted_in_rows(indices, indptr):
        raise InvalidFileError("a sparse matrix has entries that are not in column order")


def csr_from(shape: Any, data: Array, indices: Array, indptr: Array) -> csr_array:
    """Return the matrix of these parts, once they have been checked."""
    check_csr(shape, data, indices, indptr)
    matrix = csr_array((data, indices, indptr), shape=tuple(shape))
    # SciPy would choose the type of the indices itself.
    matrix.indices, matrix.indptr = indices, indptr
    return settled(matrix)
