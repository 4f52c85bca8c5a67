"""Sparse matrices that others have built: checked before anything compiled looks at them.

SciPy checks little of a matrix that is made of arrays, and nothing of one whose arrays are changed
later.  Its compiled routines, as ours, then read and write beyond the ends of other arrays.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from marginmf._utils.saved import are_row_ends, within
from marginmf._utils.types import Array


def settled(matrix: Any) -> Any:
    """Return a matrix that has noted whether its entries are in order, if it is sparse.

    SciPy notes it on the matrix when somebody first needs it: then another thread must not be in
    the middle of a copy.

    >>> sorted(vars(settled(sparse.csr_array(np.eye(2)))))[:2]
    ['_has_canonical_format', '_has_sorted_indices']
    """
    if sparse.issparse(matrix) and hasattr(matrix, "has_canonical_format"):
        _ = matrix.has_canonical_format, matrix.has_sorted_indices
    return matrix


def check_sparse(matrix: Any, what: str) -> None:
    """Raise ValueError unless every entry of a sparse matrix is inside it, in whatever format.

    Must come before any conversion, sum or product.  It takes one pass over the indices.  What is
    no sparse matrix is left to others.

    >>> matrix = sparse.csr_array(np.eye(2))
    >>> check_sparse(matrix, "X")
    >>> matrix.indices[1] = 7
    >>> check_sparse(matrix, "X")
    Traceback (most recent call last):
    ...
    ValueError: X is a damaged csr matrix: its index 7 is outside its 2 columns; make it again, ...
    """
    if not sparse.issparse(matrix):
        return
    find_flaws = _FLAWS.get(matrix.format)
    if find_flaws is None:
        raise ValueError(f"{what} is a sparse matrix of an unknown format: give {what}.tocsr().")
    for flaw in find_flaws(matrix):
        raise ValueError(
            f"{what} is a damaged {matrix.format} matrix: {flaw}; make it again, for example as "
            "scipy.sparse.coo_array((values, (rows, columns)), shape)."
        )


def _row_flaws(matrix: Any) -> Iterator[str]:
    """Yield what is wrong with csr, csc and bsr, whose rows (or columns) are divided by indptr."""
    data, indices, indptr = matrix.data, matrix.indices, matrix.indptr
    axes = list(zip((1, *matrix.shape)[-2:], ("rows", "columns"), strict=True))
    if matrix.format == "bsr":
        if not isinstance(data, np.ndarray) or data.ndim != 3 or 0 in data.shape[1:]:
            yield "its data are no array of blocks"
        sides = data.shape[1:]
        if any(n % side for (n, _), side in zip(axes, sides, strict=True)):
            yield f"its blocks of {sides[0]} by {sides[1]} do not fill its shape {matrix.shape}"
        axes = [
            (n // side, f"{name} of blocks") for (n, name), side in zip(axes, sides, strict=True)
        ]
    elif not isinstance(data, np.ndarray) or data.ndim != 1:
        yield "its data are no array of numbers in a row"
    (n_lines, lines), across = axes[::-1] if matrix.format == "csc" else axes
    yield from _index_flaws("indptr", indptr)
    yield from _index_flaws("indices", indices)
    if len(indptr) != n_lines + 1:
        yield f"its indptr has {len(indptr):,} numbers for {n_lines:,} {lines}, and needs one more"
    if len(data) != len(indices):
        yield f"it has {len(data):,} values and {len(indices):,} indices"
    if not are_row_ends(indptr, len(indices)):
        yield f"its indptr does not rise from 0 to its {len(indices):,} entries"
    yield from _outside(indices, *across)


def _pair_flaws(matrix: Any) -> Iterator[str]:
    """Yield what is wrong with coo, whose entries have an index for each axis."""
    # Older versions of SciPy know two axes alone.
    axes = matrix.coords if hasattr(matrix, "coords") else (matrix.row, matrix.col)
    if len(axes) != len(matrix.shape):
        yield f"it has {len(axes)} arrays of indices for the shape {matrix.shape}"
    for indices, n, name in zip(axes, matrix.shape, _axis_names(matrix), strict=True):
        yield from _index_flaws(f"indices of {name}", indices)
        if np.shape(matrix.data) != indices.shape:
            yield f"it has values of shape {np.shape(matrix.data)} and {len(indices):,} indices"
        yield from _outside(indices, n, name)


def _list_flaws(matrix: Any) -> Iterator[str]:
    """Yield what is wrong with lil, which has a list of columns and one of values for each row."""
    n_rows, n_columns = matrix.shape
    for parts in (matrix.rows, matrix.data):
        if not isinstance(parts, np.ndarray) or parts.shape != (n_rows,):
            yield f"it has no list for each of its {n_rows:,} rows"
        if not all(isinstance(part, list) for part in parts):
            yield "it has a row that is no list"
    lengths = zip(map(len, matrix.rows), map(len, matrix.data), strict=True)
    for row, (n_indices, n_values) in enumerate(lengths):
        if n_indices != n_values:
            yield f"its row {row} has {n_values:,} values and {n_indices:,} indices"
    yield from _outside(_whole(chain.from_iterable(matrix.rows)), n_columns, "columns")


def _key_flaws(matrix: Any) -> Iterator[str]:
    """Yield what is wrong with dok, a dictionary by index."""
    keys = list(matrix.keys())
    n_axes = len(matrix.shape)
    if n_axes > 1 and any(not isinstance(key, tuple) or len(key) != n_axes for key in keys):
        yield "it has a key that is no pair of indices"
    indices = _whole(chain.from_iterable(keys) if n_axes > 1 else keys).reshape(-1, n_axes)
    for column, n, name in zip(indices.T, matrix.shape, _axis_names(matrix), strict=True):
        yield from _outside(column, n, name)


def _diagonal_flaws(matrix: Any) -> Iterator[str]:
    """Yield what is wrong with dia, which has a row of values for each diagonal."""
    yield from _index_flaws("offsets", matrix.offsets)
    if np.ndim(matrix.data) != 2 or len(matrix.data) != len(matrix.offsets):
        yield f"it has values of shape {np.shape(matrix.data)} for {len(matrix.offsets):,} offsets"
    if len(np.unique(matrix.offsets)) < len(matrix.offsets):
        yield "it has a diagonal twice"


def _index_flaws(name: str, indices: Any) -> Iterator[str]:
    if not isinstance(indices, np.ndarray) or indices.ndim != 1 or indices.dtype.kind not in "iu":
        yield f"its {name} are no array of whole numbers"


def _outside(indices: Array, n: int, axis: str) -> Iterator[str]:
    if not within(indices, n):
        first = indices[np.argmax((indices < 0) | (indices >= n))]
        yield f"its index {first} is outside its {n:,} {axis}"


def _whole(indices: Any) -> Array:
    """Return Python's numbers as an array; an index that is no whole number as -1."""
    return np.array([k if isinstance(k, int | np.integer) else -1 for k in indices])


def _axis_names(matrix: Any) -> tuple[str, ...]:
    names = ("rows", "columns")
    return (
        names if len(matrix.shape) == 2 else tuple(f"axis {k}" for k, _ in enumerate(matrix.shape))
    )


_FLAWS: dict[str, Callable[[Any], Iterator[str]]] = {
    "csr": _row_flaws,
    "csc": _row_flaws,
    "bsr": _row_flaws,
    "coo": _pair_flaws,
    "lil": _list_flaws,
    "dok": _key_flaws,
    "dia": _diagonal_flaws,
}
