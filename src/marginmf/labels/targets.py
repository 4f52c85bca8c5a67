"""What a classifier is asked to learn, read from any form, and answers given back in that form.

Inside is an indicator matrix with a column for each label.  A vector of classes becomes one column
for two classes, and a column for each class if there are more.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.multiclass import check_classification_targets

from marginmf._utils.ids import is_missing
from marginmf._utils.indicators import as_indicator, column_names
from marginmf._utils.parameters import LARGEST
from marginmf._utils.saved import Names, saved
from marginmf._utils.sparse import check_sparse
from marginmf._utils.types import Array, BoolArray, Float64Array, FloatArray, IntArray
from marginmf.labels.algebra.matrices import with_small_indices


@saved
@dataclass(frozen=True, eq=False)
class Targets:
    """How to give answers in the form of the targets that were learned."""

    #: The names of the labels, or their numbers; for vectors, the classes in ascending order.
    classes: Array
    #: Whether rows have one class each, instead of a set of labels.
    vector: bool
    #: Whether label sets are given back as a sparse matrix.
    sparse: bool
    #: The type of the answers.
    dtype: np.dtype[Any]

    _saved: ClassVar[dict[str, Any]] = {
        "classes": Names("classes"),
        "vector": bool,
        "sparse": bool,
        "dtype": np.dtype,
    }

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        if len(self.classes) == 0:
            yield ".classes is empty"
        if self.dtype.kind not in ("biufUO" if self.vector else "biuf"):
            yield f".dtype is {self.dtype}, which answers cannot have"

    def __len__(self) -> int:
        return self.n_columns

    @property
    def n_columns(self) -> int:
        """How many columns the indicator has."""
        return 1 if self.vector and len(self.classes) <= 2 else len(self.classes)

    def scores(self, scores: FloatArray) -> FloatArray:
        """Return scores as scikit-learn wants them: a vector for two classes."""
        return scores[:, 0] if self.vector and self.n_columns == 1 else scores

    def probabilities(self, found: Float64Array) -> Float64Array:
        """Return probabilities of labels, or of classes, which are adjusted to add up to 1."""
        if not self.vector:
            return found
        if self.n_columns == 1:
            found = np.column_stack([1.0 - found, found])[:, : len(self.classes)]
        return found / found.sum(axis=1, keepdims=True)

    def codes_of(self, scores: FloatArray) -> IntArray:
        """Return the index of every row's class, for vectors."""
        if len(self.classes) == 1:
            return np.zeros(len(scores), np.int64)
        if self.n_columns == 1:
            return (scores[:, 0] > 0).astype(np.int64)
        return np.argmax(scores, axis=1)

    def class_of(self, scores: FloatArray) -> Array:
        """Return the class of every row, for vectors."""
        return self.classes[self.codes_of(scores)]

    def sets(self, blocks: Iterable[BoolArray]) -> Any:
        """Return label sets, given which labels are there, block by block."""
        if not self.sparse:
            return np.concatenate([block.astype(self.dtype) for block in blocks])
        # Only what is there is kept of each block.
        entries = [(block.sum(axis=1), np.nonzero(block)[1]) for block in blocks]
        counts, indices = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        indptr = np.concatenate([[0], np.cumsum(counts)])
        ones = np.ones(len(indices), self.dtype)
        return csr_array((ones, indices, indptr), shape=(len(counts), len(self.classes)))


def read_targets(y: Any, names: Any = None) -> tuple[csr_array, Targets]:
    """Return the indicator of targets, a matrix or a vector of classes, and how to answer alike."""
    if issparse(y) or (np.ndim(y) == 2 and (np.shape(y)[1] != 1 or _is_binary(np.asarray(y)))):
        # Objects that are all 0 and 1 come back as whole numbers.
        dtype = np.dtype(np.int64) if y.dtype.kind == "O" else y.dtype
        indicator = as_indicator(y).astype(np.float64)
        classes = np.arange(y.shape[1]) if names is None else np.asarray(names)
        return indicator, Targets(classes, False, issparse(y), dtype)
    y = np.asarray(y)
    if y.ndim > 2:
        raise ValueError(f"Y has {y.ndim} dimensions; give a matrix with a column for each label.")
    y = y.ravel()
    try:
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in y})
        raise ValueError(
            f"y has values of kinds that cannot be compared ({', '.join(kinds)}); use one kind."
        ) from None
    targets = Targets(classes, True, False, classes.dtype)
    if targets.n_columns == 1:
        return csr_array((codes == 1).astype(np.float64)[:, None]), targets
    cells = (np.arange(len(y)), codes)
    return csr_array((np.ones(len(y)), cells), shape=(len(y), len(classes))), targets


def _is_binary(y: Array) -> bool:
    return y.dtype.kind in "biufO" and bool(((y == 0) | (y == 1)).all())


def as_features(X: Any, estimator: Any) -> Any:
    """Return a dense array or a `csr_array` in order, never changed in place; refuse NaN."""
    if not issparse(X):
        _check_finite(X, X, estimator)
        return X
    features = csr_array(X)
    if not features.has_canonical_format:
        features = features.copy()
        features.sum_duplicates()
    _check_finite(features, features.data, estimator)
    return with_small_indices(features)


def check_forms(X: Any, y: Any) -> None:
    """Refuse damaged matrices, and forms that a line of Python turns into what is needed."""
    for name, given in (("X", X), ("y", y)):
        check_sparse(given, name)
        if type(given).__name__ == "LazyFrame":
            raise ValueError(f"{name} is a lazy frame without rows yet: give {name}.collect().")
    check_none_missing(y)
    many = (list, tuple, set, frozenset)
    rows = [row for row in (y if isinstance(y, many) else ()) if isinstance(row, many)]
    if (
        getattr(getattr(y, "dtype", None), "kind", "") == "O" and getattr(y, "ndim", 0) == 1
    ):  # a column of lists
        rows = [row for row in np.asarray(y) if isinstance(row, many)]
    if not rows:
        return
    words = any(isinstance(label, str) for row in rows for label in row)
    if words or isinstance(rows[0], set | frozenset) or len({len(row) for row in rows}) > 1:
        raise ValueError(
            f"y holds lists of labels, such as {rows[0]!r}: give "
            "sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y)."
        )


def check_none_missing(y: Any) -> None:
    """Refuse a vector of classes in which one is missing, before anything tries to compare it."""
    if y is None or issparse(y):
        return
    try:
        values = np.asarray(y)
    except ValueError:  # rows of different lengths: scikit-learn says so
        return
    if values.ndim != 1 or values.dtype.kind != "O":
        return
    for row, value in enumerate(values):
        if is_missing(value):
            raise ValueError(
                f"y has no value in row {row}; leave out rows whose class is not known."
            )


def label_names(y: Any) -> list[str] | None:
    """Return the column names of a data frame of labels, else None."""
    columns = column_names(y)
    return columns if columns and all(isinstance(name, str) for name in columns) else None


def _check_finite(X: Any, values: Array, estimator: Any) -> None:
    if values.size == 0:
        return
    least, greatest = float(values.min()), float(values.max())
    if max(-least, greatest) <= LARGEST:
        return
    if np.isfinite([least, greatest]).all():
        raise ValueError(
            f"X has values as large as {max(-least, greatest):.3g}, whose squares cannot be added "
            "up; scale the features (sklearn.preprocessing.MaxAbsScaler, or marginmf's Scaled)."
        )
    flat = int(np.argmin(np.isfinite(values)))
    row, column = divmod(flat, X.shape[1])
    if issparse(X):
        row = int(np.searchsorted(X.indptr, flat, side="right")) - 1
        column = int(X.indices[flat])
    names = getattr(estimator, "feature_names_in_", None)
    shown = f"column {column}" if names is None else f"column {str(names[column])!r}"
    found = values.ravel()[flat]
    value = "NaN" if np.isnan(found) else str(found)
    raise ValueError(
        f"X has {value} in row {row}, {shown}; {type(estimator).__name__} needs finite numbers: "
        "fill the gaps (sklearn.impute.SimpleImputer) or leave those rows out."
    )
