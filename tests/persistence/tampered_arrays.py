"""Every array that a model file holds, and what may be wrong with it."""

import numpy as np

from tampering import DTYPES, every_node, find


def arrays(parts):
    """Return the names of the tensors that are arrays by themselves, not lists in JSON."""
    lists = {
        node["tensor"]
        for container, key in every_node(parts.document, [])
        for node in [_list_in(container, key)]
        if node is not None
    }
    return [name for name in parts.tensors if name not in lists]


def _list_in(container, key):
    if key == "text":
        return container[key]
    node = container[key]["array"] if key == "ids" else None
    return None if node is None or "dtype" in node else node


def read(parts, name):
    """Return the array that a tensor stands for."""
    note, tensor = find(parts.document, name), parts.tensors[name]
    if "dtype" in note:
        dtype = np.dtype(note["dtype"])
        wide = dtype.kind == "U" or dtype.str.startswith(">")
        tensor = tensor.view(dtype)[..., 0] if wide else tensor.astype(dtype)
    return tensor.T if "order" in note else tensor


def write(parts, name, array):
    """Put an array in the place of one that is there."""
    note, array = find(parts.document, name), np.array(array, order="C")
    note.pop("dtype", None)
    note.pop("order", None)
    if array.dtype.kind == "U":
        note["dtype"] = array.dtype.str
        array = array.view(np.uint8).reshape(*array.shape, array.dtype.itemsize)
    parts.tensors[name] = array


def other_shapes(array):
    """Return the same numbers in other shapes, by what was done to them."""
    made = {"axis more": array[None]}
    if array.ndim == 0:
        return made
    made["axis less"] = array[0] if len(array) else np.zeros(array.shape[1:], array.dtype)
    for axis, name in enumerate(("row", "column", "layer")[: array.ndim]):
        last = array.take([-1], axis) if array.size else np.ones_like(array, shape=1)
        if array.size:
            made[f"a {name} less"] = np.delete(array, -1, axis)
            made[f"a {name} more"] = np.concatenate([array, last], axis)
            made[f"no {name}s"] = array.take([], axis)
    if array.ndim > 1 and array.shape != array.shape[::-1]:
        made["transposed"] = array.T
    return {what: made[what] for what in made if made[what].shape != array.shape}


def other_types(array):
    """Return the same numbers as other types."""
    names = {"f": ("<f2", "<i8"), "i": ("<f8", "|u1", "<u8"), "u": ("<f8",), "b": ("|u1",)}
    kinds = [kind for kind in names.get(array.dtype.kind, ()) if kind != array.dtype.str]
    assert set(kinds) <= {np.dtype(each).str for each in DTYPES.values()}
    with np.errstate(all="ignore"):
        return {f"as {kind}": array.astype(kind) for kind in kinds}


def other_values(array):
    """Return arrays of the same shape and type with other numbers."""
    if array.size == 0:
        return {}
    numbers = {"zeros": np.zeros_like(array)}
    if array.dtype.kind == "f":
        most = float(np.finfo(array.dtype).max)
        for value in (np.nan, np.inf, -np.inf, most, -most, -1.0):
            numbers[f"a {value:g}"] = _with(array, value)
        numbers["all the most"] = np.full_like(array, most)
    elif array.dtype.kind in "iu":
        bounds = np.iinfo(array.dtype)
        for value in (-1, int(array.max()) + 1, array.size, bounds.max, bounds.min):
            if bounds.min <= value <= bounds.max:
                numbers[f"a {value}"] = _with(array, value)
        numbers["backwards"] = array[::-1]
    elif array.dtype.kind == "b":
        numbers["the opposite"] = ~array
    return numbers


def _with(array, value):
    changed = array.copy()
    changed.reshape(-1)[[0, -1]] = value
    return changed
