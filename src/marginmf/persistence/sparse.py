"""Sparse matrices: the three arrays of a `csr_array`, looked at before anything uses them.

SciPy's compiled routines do not check indices: a column that does not exist would be read or
written beyond the end of an array.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from marginmf._utils.saved import within
from marginmf._utils.types import Array
from marginmf.persistence.errors import ModelFileError
from marginmf.persistence.shapes import divides, rises_in_rows

#: The arrays, by their names in SciPy and in the file.
PARTS = ("data", "indices", "indptr")
#: No matrix has so many columns: places in it would not be 64-bit numbers.
MOST_COLUMNS = 1 << 62


def check_csr(shape: Any, data: Array, indices: Array, indptr: Array) -> None:
    """Raise `ModelFileError` unless these are a matrix with sorted rows and no entry twice."""
    if not isinstance(shape, list | tuple) or len(shape) != 2:
        raise ModelFileError("a sparse matrix has not two axes")
    if not all(type(n) is int and 0 <= n < MOST_COLUMNS for n in shape):
        raise ModelFileError(f"a sparse matrix has the shape {list(shape)!r:.60}")
    n_rows, n_columns = shape
    flat = all(type(part) is np.ndarray and part.ndim == 1 for part in (data, indices, indptr))
    if not flat or indices.dtype not in (np.int32, np.int64) or indptr.dtype != indices.dtype:
        raise ModelFileError("a sparse matrix has indices of unknown types")
    if data.dtype.kind not in "biuf" or not data.dtype.isnative or len(data) != len(indices):
        raise ModelFileError("a sparse matrix has other values than entries")
    if len(indptr) != n_rows + 1 or not divides(indptr, len(data)):
        raise ModelFileError("a sparse matrix has entries that are not divided among its rows")
    if not within(indices, n_columns):
        raise ModelFileError("a sparse matrix has entries in columns that do not exist")
    if not rises_in_rows(indices, indptr):
        raise ModelFileError("a sparse matrix has entries that are not in the order of the columns")


def csr_from(shape: Any, data: Array, indices: Array, indptr: Array) -> csr_array:
    """Return the matrix of these parts, once they have been looked at."""
    check_csr(shape, data, indices, indptr)
    matrix = csr_array((data, indices, indptr), shape=tuple(shape))
    # SciPy would choose the type of the indices itself.
    matrix.indices, matrix.indptr = indices, indptr
    return matrix
