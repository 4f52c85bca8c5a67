"""What a classifier is asked to learn, read from whatever users have, and given back alike.

Inside, there is one form: an indicator matrix with a column a label.  Targets with one class a
row (a vector) become one column for two classes, and a column a class for more.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from marginmf._typing import Array, BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Targets:
    """How to give answers in the form of the targets that were learned.

    Parameters
    ----------
    classes : array
        The names of the labels, or their numbers; for vectors, the classes in ascending order.
    vector : bool
        Whether rows have one class each, instead of a set of labels.
    sparse : bool
        Whether label sets are given back as a sparse matrix.
    dtype : dtype
        The type of the answers.
    """

    classes: Array
    vector: bool
    sparse: bool
    dtype: np.dtype[Any]

    @property
    def n_columns(self) -> int:
        """How many columns the indicator has."""
        if self.vector and len(self.classes) <= 2:
            return 1
        return len(self.classes)

    def scores(self, scores: FloatArray) -> FloatArray:
        """Return scores as scikit-learn wants them: a vector for two classes."""
        return scores[:, 0] if self.vector and self.n_columns == 1 else scores

    def class_of(self, scores: FloatArray) -> Array:
        """Return the class of every row, for vectors."""
        codes: IntArray
        if len(self.classes) == 1:
            codes = np.zeros(len(scores), np.int64)
        elif self.n_columns == 1:
            codes = (scores[:, 0] > 0).astype(np.int64)
        else:
            codes = np.argmax(scores, axis=1)
        found: Array = self.classes[codes]
        return found

    def sets(self, blocks: list[BoolArray]) -> Any:
        """Return label sets, given which labels are there block by block."""
        if not self.sparse:
            return np.concatenate(blocks).astype(self.dtype)
        columns = [np.nonzero(block)[1] for block in blocks]
        counts = np.concatenate([block.sum(axis=1) for block in blocks])
        indices: IntArray = np.concatenate(columns)
        ones = np.ones(len(indices), self.dtype)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        return csr_array((ones, indices, indptr), shape=(len(counts), len(self.classes)))


def read_targets(y: Any, names: Any = None) -> tuple[csr_array, Targets]:
    """Return the indicator of targets, and how to give answers back.

    Parameters
    ----------
    y : array or sparse matrix
        An indicator matrix of zeros and ones, or a vector of classes.
    names : sequence of str, optional
        The names of the labels.

    Examples
    --------
    >>> indicator, targets = read_targets(np.array([[1, 0], [1, 1]]), ["rock", "jazz"])
    >>> indicator.toarray(), targets.classes
    (array([[1., 0.],
           [1., 1.]]), array(['rock', 'jazz'], dtype='<U4'))
    """
    if issparse(y):
        indicator = csr_array(y)
        _check_binary_sparse(indicator)
        return _ones(indicator), Targets(_names(names, y.shape[1]), False, True, y.dtype)
    y = np.asarray(y)
    if y.ndim == 2 and (y.shape[1] != 1 or _is_binary(y)):
        _check_binary(y)
        dtype = np.dtype(np.int64) if y.dtype.kind == "O" else y.dtype
        indicator = csr_array(y.astype(np.float64))
        return indicator, Targets(_names(names, y.shape[1]), False, False, dtype)
    if y.ndim > 2:
        raise ValueError(f"Y has {y.ndim} dimensions; give a matrix with a column for each label.")
    y = y.ravel()
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    targets = Targets(classes, True, False, classes.dtype)
    if targets.n_columns == 1:
        return csr_array((codes == 1).astype(np.float64)[:, None]), targets
    rows = np.arange(len(y))
    shape = (len(y), len(classes))
    return csr_array((np.ones(len(y)), (rows, codes)), shape=shape), targets


def _names(names: Any, n_labels: int) -> Array:
    return np.arange(n_labels) if names is None else np.asarray(names)


def _ones(indicator: csr_array) -> csr_array:
    """Return the indicator with ones alone stored, in order; what was given is not changed."""
    data = indicator.data.astype(np.float64)
    clean = csr_array((data, indicator.indices.copy(), indicator.indptr.copy()), indicator.shape)
    clean.eliminate_zeros()
    clean.sort_indices()
    return clean


def _is_binary(y: Array) -> bool:
    if y.dtype.kind == "b":
        return True
    if y.dtype.kind not in "iufO":
        return False
    return bool(((y == 0) | (y == 1)).all())


def _check_binary(y: Array) -> None:
    if _is_binary(y):
        return
    if y.dtype.kind == "f" and type_of_target(y[:, 0]) == "continuous":
        check_classification_targets(y)
    wrong = np.ones(y.shape, bool) if y.dtype.kind in "US" else ~((y == 0) | (y == 1))
    row, column = (int(k[0]) for k in np.nonzero(wrong))
    _refuse(y[row, column], row, column)


def _check_binary_sparse(indicator: csr_array) -> None:
    if not indicator.has_canonical_format:
        doubled = indicator.copy()
        doubled.sum_duplicates()
        if doubled.nnz != indicator.nnz:
            raise ValueError(
                "Y stores some entries twice; call Y.sum_duplicates() and see that only zeros and "
                "ones remain."
            )
    wrong = np.flatnonzero((indicator.data != 0) & (indicator.data != 1))
    if len(wrong):
        row = int(np.searchsorted(indicator.indptr, wrong[0], side="right")) - 1
        _refuse(indicator.data[wrong[0]], row, int(indicator.indices[wrong[0]]))


def _refuse(value: Any, row: int, column: int) -> None:
    raise ValueError(
        f"Y has the value {value!s} in row {row}, column {column}, where only 0 and 1 can be; a "
        "column says which rows have its label (sklearn.preprocessing.MultiLabelBinarizer makes "
        "such a matrix of lists of labels)."
    )
