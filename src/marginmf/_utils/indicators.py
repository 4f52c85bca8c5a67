"""Label sets as indicator tables: a row for each sample, a column for each label, 0 and 1 in it.

Users have them as arrays, lists, data frames or sparse matrices of any number type.  Here they
become a `scipy.sparse.csr_array` of True: what follows costs as much as there are positives.
"""

from typing import Any

import numpy as np
from scipy import sparse

from marginmf._utils.ids import shown
from marginmf._utils.sparse import check_sparse
from marginmf._utils.types import Array, BoolArray, IntArray

HINT = "scikit-learn's MultiLabelBinarizer makes one from lists of labels."


def as_indicator(labels: Any, what: str = "Y", hint: str = HINT) -> Any:
    """Return label sets as a `scipy.sparse.csr_array` of True, sorted, without stored zeros.

    The argument is not changed, and a sparse one never becomes dense.  In messages it is called
    ``what``; the hint says what to do where it is not a table.

    >>> as_indicator([[0, 1, 1], [1, 0, 0]]).indices.tolist()
    [1, 2, 0]
    """
    try:
        values = labels if sparse.issparse(labels) else np.asarray(labels)
    except ValueError:
        raise _not_a_table("has rows of different lengths", what, hint) from None
    check_sparse(values, what)
    if values.ndim != 2:
        raise _not_a_table(f"has {values.ndim} dimension{'s' * (values.ndim != 1)}", what, hint)
    for length, name in zip(values.shape, ("rows", "labels"), strict=True):
        if length == 0:
            raise ValueError(f"{what} has no {name}: its shape is {values.shape}.")
    if sparse.issparse(values):
        return _from_sparse(values, what)
    return sparse.csr_array(_as_booleans(values, what))


def as_indicators(true: Any, predicted: Any) -> tuple[Any, Any]:
    """Return true and predicted label sets as `as_indicator` does; they must fit together.

    >>> true, predicted = as_indicators([[0, 1]], [[1, 1]])
    >>> true.multiply(predicted).nnz
    1
    """
    _refuse_other_order(true, predicted)
    pair = as_indicator(true, "Y"), as_indicator(predicted, "The prediction")
    if pair[0].shape != pair[1].shape:
        raise ValueError(
            f"True and predicted label sets must have one shape, but theirs are {pair[0].shape} "
            f"and {pair[1].shape}."
        )
    return pair


def counts(indicator: Any, axis: int) -> IntArray:
    """Return how many positives every label (axis 0) or every row (axis 1) has.

    >>> counts(as_indicator([[0, 1, 1], [0, 1, 0]]), 0), counts(as_indicator([[0, 1, 1]]), 1)
    (array([0, 2, 1]), array([2]))
    """
    if axis == 0:
        return np.bincount(indicator.indices, minlength=indicator.shape[1])
    return np.diff(indicator.indptr).astype(np.int64)


def column_names(table: Any) -> list[Any]:
    """Return the names of the columns of a data frame, or of an Arrow table; else none.

    >>> column_names([[0, 1]])
    []
    """
    return list(getattr(table, "column_names", getattr(table, "columns", [])))


def _not_a_table(found: str, what: str, hint: str) -> ValueError:
    return ValueError(
        f"{what} {found}, but label sets are a table of 0 and 1 with a row for each sample and a "
        f"column for each label; {hint}"
    )


def _as_booleans(values: Array, what: str) -> BoolArray:
    if values.dtype.kind == "b":
        return values
    if values.dtype.kind in "iufc":
        binary = (values == 0) | (values == 1)
    else:
        binary = np.frompyfunc(_is_binary, 1, 1)(values).astype(bool)
    if not binary.all():
        row, column = np.unravel_index(np.argmin(binary), values.shape)
        raise _not_binary(values[row, column], int(row), int(column), what)
    return values.astype(bool)


def _is_binary(value: Any) -> bool:
    try:
        return bool(value == 0 or value == 1)
    except (TypeError, ValueError):
        return False  # pandas.NA and arrays refuse to say whether they are


def _from_sparse(values: Any, what: str) -> Any:
    table = sparse.csr_array(values)
    # A copy before each change in place: the arrays may be those of the user.
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    faulty = (table.data != 0) & (table.data != 1)
    if faulty.any():
        entry = int(np.argmax(faulty))
        row = int(np.searchsorted(table.indptr, entry, side="right")) - 1
        raise _not_binary(table.data[entry], row, int(table.indices[entry]), what)
    if not np.all(table.data):
        table = table.copy()
        table.eliminate_zeros()
    positive = np.ones(table.nnz, bool)
    return sparse.csr_array((positive, table.indices, table.indptr), shape=table.shape)


def _not_binary(value: Any, row: int, column: int, what: str) -> ValueError:
    return ValueError(
        f"{what} has the value {shown(value)} in row {row}, column {column}, but label sets are "
        "written with 0 and 1 alone."
    )


def _refuse_other_order(true: Any, predicted: Any) -> None:
    """Refuse two data frames with the same labels in different orders: all would seem wrong."""
    ours, theirs = column_names(true), column_names(predicted)
    if len(ours) != len(theirs) or set(ours) != set(theirs):
        return  # names of other kinds, such as those that pandas gives to nameless columns
    for column, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if one != other:
            raise ValueError(
                f"Y and the prediction have the same labels in different orders: column {column} "
                f"is {shown(one)} in one and {shown(other)} in the other. Put the columns into "
                "one order."
            )
