"""The table that every label dataset becomes: features, label sets, and what is known of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from marginmf._utils.ids import check_names
from marginmf._utils.sparse import check_sparse
from marginmf._utils.types import Array
from marginmf.datasets.labels.columns import NO_FEATURES, find_columns
from marginmf.datasets.table import SPLITS, check_rows

Indexes = npt.NDArray[np.int64]
#: Below this share of values that are not zero, features are kept as a sparse matrix.
SPARSE_BELOW = 0.1
#: A file may have as many rows or columns as this, whatever is in them, and more if it has an entry
#: for so many of them.
MOST_EMPTY_COLUMNS, COLUMNS_PER_ENTRY = 1 << 22, 64


@dataclass(frozen=True, repr=False, eq=False)
class LabelsTable:
    """Samples with their features and their labels, in the order of their file.

    Parameters
    ----------
    name : str
        Short name of the dataset, or the name of the file it was read from.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The features: kept as a NumPy array, or as a ``csr_array`` where they are sparse;
        ``float32`` stays what it is, anything else becomes ``float64``.
    Y : array-like or sparse matrix of shape (n_samples, n_labels)
        1 where a sample has a label, else 0; kept as a ``csr_array`` of ``int64``.
    feature_names : sequence of str, optional
        Names of the columns of X.
    label_names : sequence of str, optional
        Names of the columns of Y; by default ``label1``, ``label2`` and so on.
    train_idx, test_idx : array-like of int, optional
        The rows that the owner of the dataset trains and tests on.
    source : str
        One phrase that says where the dataset came from.

    Examples
    --------
    >>> table = LabelsTable("songs", [[0.5], [2.0], [1.0]], [[1, 0], [1, 1], [0, 0]],
    ...                     label_names=["calm", "sad"])
    >>> table
    LabelsTable('songs': 3 samples, 1 feature (dense), 2 labels, 1 a sample)
    >>> table.cardinality, table.density
    (1.0, 0.5)
    >>> table.subset([1, 2]).Y.toarray().tolist()
    [[1, 1], [0, 0]]
    """

    name: str
    X: Any
    Y: Any
    feature_names: tuple[str, ...] | None = None
    label_names: tuple[str, ...] = ()
    train_idx: Indexes | None = None
    test_idx: Indexes | None = None
    source: str = ""

    def __post_init__(self) -> None:
        check_sparse(self.X, "X")
        check_sparse(self.Y, "Y")
        X, Y = _features(self.X), _indicators(self.Y)
        if X.ndim != 2 or Y.ndim != 2 or X.shape[0] != Y.shape[0]:
            raise ValueError(
                f"The features and the labels of a LabelsTable have a row for each sample, "
                f"but their shapes are {X.shape} and {Y.shape}."
            )
        labels = self.label_names or [f"label{number + 1}" for number in range(Y.shape[1])]
        fields: dict[str, Any] = {"X": X, "Y": Y, "label_names": _check_names(labels, Y, "label")}
        if self.feature_names is not None:
            fields["feature_names"] = _check_names(self.feature_names, X, "feature")
        for part in SPLITS:
            if getattr(self, part) is not None:
                fields[part] = check_rows(getattr(self, part), X.shape[0], part)
        for field, value in fields.items():
            object.__setattr__(self, field, value)  # the way to fill in a frozen dataclass

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.Y.shape[1])

    @property
    def cardinality(self) -> float:
        """Mean number of labels of a sample."""
        return float(self.Y.nnz) / max(self.n_samples, 1)

    @property
    def density(self) -> float:
        """Share of the labels that a sample has, on average."""
        return self.cardinality / max(self.n_labels, 1)

    def subset(self, rows: Any) -> "LabelsTable":
        """Return some samples, by index or by a mask; the owner's split is left out."""
        mask = np.asarray(rows)
        chosen = np.flatnonzero(mask) if mask.dtype == bool else mask
        chosen = check_rows(chosen, self.n_samples, "rows")
        return replace(self, X=self.X[chosen], Y=self.Y[chosen], train_idx=None, test_idx=None)

    def most_used_features(self, n_features: int) -> "LabelsTable":
        """Return only the features with the largest sums, the largest first, as 1 where not 0.

        Of TF-IDF this is the rule by which 944 words of the RCV1 subsets were chosen, as they
        circulate: it gives subsets 1 to 3 back column by column.  Document frequency does not.

        >>> table = LabelsTable("stories", [[0.1, 0.0, 0.9], [0.2, 0.5, 0.0]], [[1], [0]])
        >>> table.most_used_features(2).X.tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        sums = np.asarray(self.X.sum(axis=0, dtype=np.float64)).ravel()
        chosen = np.argsort(-sums, kind="stable")[:n_features]
        names = self.feature_names and tuple(self.feature_names[k] for k in chosen)
        occurs = (self.X[:, chosen] != 0).astype(self.X.dtype)
        return replace(self, X=occurs, feature_names=names)

    def __len__(self) -> int:
        return self.n_samples

    def __repr__(self) -> str:
        form = "sparse" if sparse.issparse(self.X) else "dense"
        text = (
            f"{_count(self.n_samples, 'sample')}, {_count(self.n_features, 'feature')} "
            f"({form}), {_count(self.n_labels, 'label')}, {self.cardinality:.4g} a sample"
        )
        return f"LabelsTable({self.name!r}: {text}{f'; {self.source}' if self.source else ''})"


def compress_features(X: Array) -> Any:
    """Return features as a sparse matrix if nearly all of them are zero, else as they are."""
    return sparse.csr_array(X) if np.count_nonzero(X) < SPARSE_BELOW * X.size else X


def stack_features(blocks: Sequence[Any]) -> Any:
    """Return the rows of all blocks in one matrix, dense or sparse as most of its values say."""
    if not any(map(sparse.issparse, blocks)):
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
    X = sparse.vstack([sparse.csr_array(block) for block in blocks], format="csr")
    few = all(map(sparse.issparse, blocks)) or X.nnz < SPARSE_BELOW * X.shape[0] * X.shape[1]
    return X if few else X.toarray()


def stack_parts(train: LabelsTable, test: LabelsTable | None = None) -> LabelsTable:
    """Return the training rows, then the test rows, in one table that says which are which."""
    if test is None:
        return train
    rows = np.arange(train.n_samples + test.n_samples)
    return replace(
        train,
        X=stack_features([train.X, test.X]),
        Y=sparse.vstack([train.Y, test.Y], format="csr"),
        train_idx=rows[: train.n_samples],
        test_idx=rows[train.n_samples :],
    )


def drop_features(table: LabelsTable, ignored: Sequence[str], where: str) -> LabelsTable:
    """Leave features out of a table whose labels stand apart from them."""
    if not ignored:
        return table
    names = table.feature_names
    if names is None:
        raise ValueError(f"{where}: its features have no names; leave ignore= out.")
    dropped = set(find_columns(names, ignored, where))
    kept = [index for index in range(len(names)) if index not in dropped]
    if not kept:
        raise ValueError(f"{where} {NO_FEATURES}")
    return replace(table, X=table.X[:, kept], feature_names=tuple(names[k] for k in kept))


def check_width(
    n: int, n_entries: int, what: str, remedy: str = "leave out those that are empty"
) -> None:
    """Raise ValueError if a file counts rows or columns that its entries say nothing of.

    What follows takes memory for every column: a few bytes must not claim a billion of them.  Data
    sets of extreme classification have some millions, few of which occur in an excerpt.
    """
    if n > max(MOST_EMPTY_COLUMNS, COLUMNS_PER_ENTRY * n_entries):
        raise ValueError(
            f"there are {n:,} {what} and {n_entries:,} entries, which is out of proportion; "
            f"{remedy}."
        )


def all_finite(X: Any) -> bool:
    """Tell whether a matrix, dense or sparse, holds finite numbers only."""
    values = X.data if sparse.issparse(X) else X
    return values.dtype.kind in "fiub" and bool(np.isfinite(values).all())


def _features(X: Any) -> Any:
    if sparse.issparse(X):
        X = _compact(sparse.csr_array(X))
        X.sum_duplicates()
    else:
        X = np.asarray(X)
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _indicators(Y: Any) -> Any:
    Y = sparse.csr_array(Y if sparse.issparse(Y) else np.atleast_2d(np.asarray(Y)), copy=True)
    Y.sum_duplicates()
    wrong = Y.data[~np.isin(Y.data, (0, 1))]
    if len(wrong):
        raise ValueError(f"The labels of a LabelsTable are 0 or 1, but one of them is {wrong[0]}.")
    Y = _compact(Y.astype(np.int64))
    Y.eliminate_zeros()
    return Y


def _compact(matrix: Any) -> Any:
    """Return a matrix whose indices take half the memory, where they can."""
    if matrix.indices.dtype == np.int32 or max(matrix.nnz, *matrix.shape) >= 2**31:
        return matrix
    parts = (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32))
    return sparse.csr_array(parts, shape=matrix.shape)


def _check_names(names: Sequence[str], matrix: Any, what: str) -> tuple[str, ...]:
    if len(names) != matrix.shape[1]:
        n_columns = _count(matrix.shape[1], what)
        raise ValueError(f"There are {len(names)} {what} names for {n_columns}.")
    texts = tuple(map(str, names))
    check_names(texts, what)
    return texts


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
