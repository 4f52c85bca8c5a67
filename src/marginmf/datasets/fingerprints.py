"""One number that tells whether two tables are the same to the last value."""

import hashlib
from typing import Any

import numpy as np

from marginmf._utils.types import Array
from marginmf.datasets.table import RatingsTable


def ratings_fingerprint(table: RatingsTable) -> str:
    """SHA-256 of users, items, ratings and timestamps in the order of the file.

    Numbers are little-endian and take 8 bytes; ids that are texts are UTF-8, a line each.
    """
    digest = hashlib.sha256()
    for ids in (table.users, table.items):
        if ids.dtype == np.int64:
            _add(digest, ids, "<i8")
        else:
            digest.update("\n".join(map(str, ids.tolist())).encode())
    _add(digest, table.ratings, "<f8")
    if table.timestamps is not None:
        _add(digest, table.timestamps, "<i8")
    return digest.hexdigest()


def labels_fingerprint(table: Any) -> str:
    """SHA-256 of features and labels, the same whether the features are sparse or dense.

    Of both matrices, the shape and the entries that are not zero, row by row; features as 4-byte
    numbers, which is what data folders keep.
    """
    from scipy import sparse

    digest = hashlib.sha256()
    for matrix, dtype in ((table.X, "<f4"), (table.Y, "<f4")):
        entries = sparse.csr_array(matrix, dtype=np.dtype(dtype), copy=True)
        entries.sum_duplicates()
        entries.eliminate_zeros()
        for values, kind in (
            (np.array(entries.shape), "<i8"),
            (entries.indptr, "<i8"),
            (entries.indices, "<i8"),
            (entries.data, dtype),
        ):
            _add(digest, values, kind)
    return digest.hexdigest()


def _add(digest: Any, values: Array, dtype: str) -> None:
    digest.update(np.ascontiguousarray(values, dtype=dtype).tobytes())
