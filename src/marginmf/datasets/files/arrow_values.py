"""What Arrow's columns mean: ids, ratings and times.

Numbers and texts, which is what they mostly are, are taken as whole arrays. Anything else goes
through `values`, one by one, so that all files with types follow the same rules.
"""

from typing import Any

import numpy as np

from marginmf._utils.types import Float64Array
from marginmf.datasets.files import values
from marginmf.datasets.files.arrow import strings
from marginmf.datasets.files.blocks import CellFault, Encoded, IdBlock, Int64Array

DAY = 86_400
PARTS_OF_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def ids(column: Any, what: str) -> IdBlock:
    """Return whole numbers if all values are, else texts and numbers as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _complete(column, f"{what} id")
    if _fits_int64(column.type):
        return _int64(column)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        encoded = column.dictionary_encode()
        if not pc.any(pc.equal(pc.utf8_trim_whitespace(encoded.dictionary), "")).as_py():
            return Encoded(strings(encoded.dictionary), encoded.indices.to_numpy())
    return values.ids(column.to_pylist(), what)


def ratings(column: Any) -> Float64Array:
    """Return finite numbers."""
    import pyarrow as pa

    column = _complete(column, "rating")
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        numbers: Float64Array = column.to_numpy(zero_copy_only=False).astype(np.float64)
        if np.isfinite(numbers).all():
            return numbers
    return values.ratings(column.to_pylist())


def times(column: Any) -> Int64Array:
    """Return seconds since 1970."""
    import pyarrow as pa

    column = _complete(column, "timestamp")
    if _fits_int64(column.type):
        return _int64(column)
    if pa.types.is_timestamp(column.type):
        return _int64(column) // PARTS_OF_SECOND[column.type.unit]
    if pa.types.is_date(column.type):
        return _int64(column.cast(pa.date32()).cast(pa.int32())) * DAY
    return values.times(column.to_pylist())


def perhaps_times(column: Any) -> Int64Array | None:
    """Return the values if all are whole numbers, as many digits as a time may have."""
    return None if column.null_count else values.perhaps_times(column.to_pylist())


def _complete(column: Any, what: str) -> Any:
    """Return a column, its dictionary resolved, in which no value is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise CellFault(row, f"the {what} is missing", "fill it in")
    return column


def _fits_int64(type_: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(type_) and not pa.types.is_uint64(type_))


def _int64(column: Any) -> Int64Array:
    import pyarrow as pa

    numbers: Int64Array = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers
