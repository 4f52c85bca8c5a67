"""Arrays as tensors that safetensors knows, and back to the very same arrays.

A tensor is an array in C order of one of twelve types.  What it takes to restore the original is
kept as a small note: its dtype, where that differs, and its order in memory.
"""

from typing import Any

import numpy as np

from marginmf._utils.types import Array
from marginmf.persistence.errors import ModelFileError

#: The types of tensors by their names in the file.  All are little-endian, as the format says.
TENSOR_TYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype("|b1"),
    "U8": np.dtype("|u1"),
    "I8": np.dtype("|i1"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "F16": np.dtype("<f2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
}
TYPE_NAMES = {dtype.str: name for name, dtype in TENSOR_TYPES.items()}


def is_storable(dtype: np.dtype[Any]) -> bool:
    """Whether values of this type are bytes that mean the same on every machine.

    >>> is_storable(np.dtype("<U5")), is_storable(np.dtype(object))
    (True, False)
    """
    # "g" and "G" are the long doubles, whose size depends on the machine.
    return dtype.kind in "biufcSUMm" and dtype.char not in "gG" and dtype.itemsize > 0


def read_dtype(text: Any) -> np.dtype[Any]:
    """Return the dtype of that name, or raise `ModelFileError`."""
    try:
        if isinstance(text, str) and len(text) <= 32:
            dtype = np.dtype(text)
            if dtype.str == text and is_storable(dtype):
                return dtype
    except (TypeError, ValueError):
        pass
    raise ModelFileError(f"{text!r:.60} is not the type of an array")


def to_tensor(array: Array) -> tuple[Array, dict[str, str]]:
    """Return a tensor and the note that restores the array from it.

    Whole numbers are kept in the smallest type that holds them all.

    >>> tensor, note = to_tensor(np.array([7, 300]))
    >>> tensor.dtype, note
    (dtype('uint16'), {'dtype': '<i8'})
    """
    dtype, note = array.dtype, {}
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        array, note = array.T, {"order": "F"}
    tensor = np.asarray(array, order="C")
    if dtype.str not in TYPE_NAMES:
        # Text, times, complex numbers and big-endian numbers: as bytes, along one more axis.
        tensor = as_bytes(tensor).reshape(*tensor.shape, dtype.itemsize)
    elif dtype.kind in "iu":
        tensor = _narrowed(tensor)
    if tensor.dtype != dtype:
        note["dtype"] = dtype.str
    return tensor, note


def from_tensor(tensor: Array, note: dict[str, Any]) -> Array:
    """Return the array that a tensor and its note stand for."""
    if not note.keys() <= {"dtype", "order"} or note.get("order", "F") != "F":
        raise ModelFileError("the note on an array cannot be understood")
    if tensor.dtype == np.bool_ and as_bytes(tensor).max(initial=0) > 1:
        raise ModelFileError("an array of booleans holds something else")
    if "dtype" in note:
        tensor = _restored(tensor, read_dtype(note["dtype"]))
    return tensor.T if "order" in note else tensor


def as_bytes(array: Array) -> Array:
    """Return the bytes of an array in C order, without a copy."""
    return array.reshape(-1).view(np.uint8)


def _narrowed(array: Array) -> Array:
    if array.size == 0:
        return array
    low, high = int(array.min()), int(array.max())
    for name in ("U8", "U16", "U32") if low >= 0 else ("I8", "I16", "I32"):
        dtype = TENSOR_TYPES[name]
        bounds = np.iinfo(dtype)
        if bounds.min <= low and high <= bounds.max and dtype.itemsize < array.itemsize:
            return array.astype(dtype)
    return array


def _restored(tensor: Array, dtype: np.dtype[Any]) -> Array:
    narrowed = dtype.str in TYPE_NAMES
    if narrowed and tensor.dtype.kind + dtype.kind in ("uu", "ui", "ii"):
        if np.can_cast(tensor.dtype, dtype):
            return tensor.astype(dtype)
    elif not narrowed and tensor.dtype == np.uint8 and tensor.shape[-1:] == (dtype.itemsize,):
        return _from_bytes(tensor, dtype)
    raise ModelFileError(f"an array of type {dtype} does not fit its tensor")


def _from_bytes(tensor: Array, dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "U" and tensor.size and tensor.view(dtype.str[0] + "u4").max() > 0x10FFFF:
        raise ModelFileError("an array of text holds something that is not text")
    return tensor.reshape(-1).view(dtype).reshape(tensor.shape[:-1])
