"""Whether a part of a model is what `marginmf._utils.saved` asks for."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from marginmf._utils.saved import Either, ListOf, Names, Optional, Shaped, Stored, within
from marginmf._utils.types import Array, BoolArray
from marginmf.persistence.classes import class_named
from marginmf.persistence.errors import ModelFileError

#: How long each axis is.
Lengths = dict[str, int]

#: What names may be: booleans, numbers, text.
KINDS_OF_NAMES = "biufU"


def check_part(part: Any, wanted: Any, label: str, lengths: Lengths) -> None:
    """Raise `ModelFileError` unless a part is as wanted; an axis that is new gets its length."""
    match wanted:
        case Optional(inner):
            check_part(part, inner, label, lengths)
        case Either(first, second):
            trial = dict(lengths)
            try:
                check_part(part, first, label, trial)
            except ModelFileError:
                check_part(part, second, label, lengths)
            else:
                lengths.update(trial)
        case ListOf(each):
            if type(part) is not list or not part:
                raise ModelFileError(f"{label} is not a list, or is empty")
            for k, one in enumerate(part):
                check_part(one, each, f"{label}.{k}", lengths)
        case Shaped():
            check_shape(part, wanted, label, lengths)
        case Stored(axes):
            _check_stored(part, axes, label, lengths)
        case Names(axis):
            _check_names(part, axis, label, lengths)
        case _:
            kind: Any = class_named(wanted) if isinstance(wanted, str) else wanted
            if not isinstance(part, kind):
                raise ModelFileError(f"{label} is a {type(part).__name__}, which it cannot be")


def check_shape(array: Any, wanted: Shaped, label: str, lengths: Lengths) -> None:
    """Compare an array's type and axes; an axis that is new here gets its length."""
    if type(array) is not np.ndarray or array.dtype.name not in wanted.kinds:
        raise ModelFileError(f"{label} is not an array of {' or '.join(wanted.kinds)}")
    if not array.dtype.isnative:
        raise ModelFileError(f"{label} has its bytes in an order that is not this machine's")
    _check_axes(array.shape, wanted.axes, label, lengths)
    if wanted.index is not None and not within(array, lengths.get(wanted.index, 0)):
        raise ModelFileError(f"{label} has numbers of {wanted.index} that do not exist")


def divides(indptr: Array, n: int) -> bool:
    """Whether these are the ends of rows that n entries are divided among."""
    return bool(indptr[0] == 0 and indptr[-1] == n and (indptr[1:] >= indptr[:-1]).all())


def rises_in_rows(indices: Array, indptr: Array) -> bool:
    """Whether the numbers in every row are ascending and distinct."""
    rises: BoolArray = indices[1:] > indices[:-1]
    starts = indptr[1:-1]
    rises[starts[(starts > 0) & (starts < len(indices))] - 1] = True  # the next row begins anywhere
    return bool(rises.all())


def _check_axes(
    shape: tuple[int, ...], axes: tuple[str, ...], label: str, lengths: Lengths
) -> None:
    expected = [_length(axis, n, lengths) for axis, n in zip(axes, shape, strict=False)]
    if len(shape) != len(axes) or list(shape) != expected:
        raise ModelFileError(
            f"{label} has the shape {shape}, which does not fit ({', '.join(axes)})"
        )


def _length(axis: str, n: int, lengths: Lengths) -> int:
    shorter, _, more = axis.partition(" + ")
    extra = int(more or 0)
    return lengths.setdefault(shorter, n - extra) + extra


def _check_stored(matrix: Any, axes: tuple[str, str], label: str, lengths: Lengths) -> None:
    sparse = type(matrix) is csr_array
    values = matrix.data if sparse else matrix
    if type(values) is not np.ndarray or values.dtype not in (np.float32, np.float64):
        raise ModelFileError(f"{label} is not a matrix of float32 or float64")
    _check_axes(matrix.shape, axes, label, lengths)
    if not np.isfinite(values).all():
        raise ModelFileError(f"{label} has numbers that are not finite")


def _check_names(names: Any, axis: str, label: str, lengths: Lengths) -> None:
    # Objects have been looked at one by one when they were read: they are text.
    known = type(names) is np.ndarray and names.dtype.kind in KINDS_OF_NAMES + "O"
    if not known:
        raise ModelFileError(f"{label} is not an array of names")
    _check_axes(names.shape, (axis,), label, lengths)
