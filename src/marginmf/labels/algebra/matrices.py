"""Rows and columns of X, dense or sparse alike, and products of centred features and labels.

``X^T X``, ``X^T Y`` and ``Y^T Y`` of centred X and Y are all that a least-squares fit needs,
however many rows there are.  Sparse features are never made dense, and ``X^T X`` is formed only
where that is cheaper than to multiply by X and its transpose.  Sums over rows are in float64.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array, issparse
from scipy.sparse.linalg import LinearOperator, eigsh

from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends.labels import mirror, sparse_times, upper_gram

#: A mean whose square is this many times the mean square around it is taken off before products.
FAR_OFF = 100.0
#: The most bytes that ``X^T X`` may take.
MOST_BYTES = 2**30
#: About how many numbers a block of a matrix has.
BLOCK = 2**22
#: Blocks of sparse features are small beside a matrix of this many columns.
MOST_COLUMNS = 256
#: More labels than this have a sparse ``Y^T Y``.
MOST_DENSE_LABELS = 4096
#: About how many times `Normal.apply` is called in a fit.
APPLICATIONS = 50
#: How much slower than in dense products a multiplication is, in the product of a sparse matrix
#: with a dense one, and with itself; and how many multiplications every number of the latter takes
#: besides (measured; their ratios are all that matters).
SPARSE_DENSE, SPARSE_SPARSE, EACH_FORMED = 5, 60, 250

#: Eigenvalues below this share of the largest are zero, but for rounding.
ZERO = 1e-10


def take_rows(X: Any, rows: IntArray) -> Any:
    """Return some rows; sparse ones without zeros that are stored, and with small indices."""
    X = X[rows]
    if not issparse(X):
        return X
    X.eliminate_zeros()
    return with_small_indices(X)


def with_small_indices(X: csr_array) -> csr_array:
    """Return the same matrix with 32-bit indices, if these are enough: scikit-learn wants them."""
    if X.indices.dtype == np.int32 or max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
        return X
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return csr_array((X.data, indices, indptr), shape=X.shape)


def fill_columns(values: FloatArray, columns: IntArray, width: int) -> csr_array:
    """Return a sparse matrix of that width in which some columns are full."""
    n, n_columns = values.shape
    indptr = np.arange(0, values.size + 1, n_columns)
    return csr_array((values.ravel(), np.tile(columns, n), indptr), shape=(n, width))


def used_features(X: Any) -> tuple[IntArray, Any]:
    """Return the features that are not zero for all instances, and X with those alone.

    In a sparse X every stored entry counts as not zero (see `take_rows`).
    """
    if not issparse(X):
        features = np.flatnonzero((X != 0).any(axis=0))
        whole = len(features) == X.shape[1]
        return features, X if whole else np.ascontiguousarray(X[:, features])
    used = np.zeros(X.shape[1], bool)
    used[X.indices] = True
    features = np.flatnonzero(used)
    columns = (np.cumsum(used) - 1).astype(X.indices.dtype)
    shape = (X.shape[0], len(features))
    return features, csr_array((X.data, columns[X.indices], X.indptr), shape=shape)


def embed(X: Any, features: IntArray, weights: FloatArray) -> FloatArray:
    """Return ``X[:, features] @ weights`` in the type of the weights."""
    if not issparse(X):
        used = X if len(features) == X.shape[1] else X[:, features]
        return used.astype(weights.dtype, copy=False) @ weights
    # Features without a weight point to a row of zeros after the others.
    columns = np.full(X.shape[1], len(weights), np.int32)
    columns[features] = np.arange(len(weights))
    padded = np.vstack([weights, np.zeros((1, weights.shape[1]), weights.dtype)])
    shape = (X.shape[0], len(padded))
    return sparse_times(csr_array((X.data, columns[X.indices], X.indptr), shape), padded)


@dataclass(frozen=True, eq=False)
class FormedNormal:
    """``X^T X`` as a matrix; its diagonal is exactly zero for features that are constant."""

    matrix: FloatArray
    diagonal: Float64Array

    def apply(self, Z: FloatArray) -> FloatArray:
        """Return ``X^T X Z``."""
        return self.matrix @ Z


@dataclass(frozen=True, eq=False)
class ImplicitNormal:
    """``X^T X`` as two products; for wide features, where the matrix would be large."""

    X: Any
    means: Float64Array
    diagonal: Float64Array

    @cached_property
    def _sparse_blocks(self) -> list[tuple[csr_array, csr_array]]:
        """Blocks of rows as they are, and lying on their side: so each product goes along rows."""
        return [(rows, csr_array(rows.T)) for rows in row_blocks(self.X, MOST_COLUMNS)]

    def apply(self, Z: FloatArray) -> FloatArray:
        """Return ``X^T X Z``."""
        shift = (self.means @ Z).astype(Z.dtype)
        product = np.zeros(Z.shape, Z.dtype)
        # The columns of what is multiplied add up to zero, so X^T need not be centred.
        if issparse(self.X):
            for rows, on_side in self._sparse_blocks:
                embedded = sparse_times(rows, Z)
                embedded -= shift
                product += sparse_times(on_side, embedded)
        else:
            for rows in row_blocks(self.X, Z.shape[1]):
                product += rows.T @ (rows @ Z - shift)
        return product


#: The matrix ``X^T X`` of centred features, formed or not.
Normal = FormedNormal | ImplicitNormal


@dataclass(frozen=True, eq=False)
class LabelGram:
    """``Y^T Y``, and with the labels centred."""

    together: csr_array  # how many rows have both of two labels
    n_rows: int

    @classmethod
    def of(cls, Y: csr_array) -> "LabelGram":
        """Count which labels go together; the counts are exact."""
        return cls(csr_array(Y.T @ Y), Y.shape[0])

    @cached_property
    def counts(self) -> Float64Array:
        """How many rows have each label."""
        return self.together.diagonal()

    @property
    def means(self) -> Float64Array:
        """The share of the rows that have each label."""
        return self.counts / self.n_rows

    @cached_property
    def matrix(self) -> Float64Array:
        """``Y^T Y`` of centred labels."""
        centred: Float64Array = self.together.toarray()
        centred -= np.outer(self.counts, self.means)
        return centred

    @property
    def trace(self) -> float:
        """The sum of the squares of the centred labels."""
        return float(np.sum(self.counts * (1.0 - self.means)))

    def apply(self, M: Float64Array) -> Float64Array:
        """Return ``Y^T Y M`` of centred labels."""
        if len(self.counts) <= MOST_DENSE_LABELS:
            return self.matrix @ M
        return self.together @ M - np.multiply.outer(self.counts, self.means @ M)

    def take(self, order: IntArray) -> "LabelGram":
        """Return the same with labels in another order."""
        return LabelGram(self.together[order][:, order], self.n_rows)


def feature_factors(X: Any) -> tuple[Float64Array, Float64Array]:
    """Return what every feature's range is multiplied by to be 1, and its least value.

    The factor of a constant feature is 0.
    """
    least, greatest = (
        np.ravel(each.toarray() if issparse(each) else each).astype(np.float64)
        for each in (X.min(axis=0), X.max(axis=0))
    )
    span = greatest - least
    # A difference that is lost in the rounding of its terms is none.
    constant = span <= 4 * np.finfo(np.float64).eps * np.maximum(abs(least), abs(greatest))
    return np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, span)), least


def feature_moments(X: Any) -> tuple[Float64Array, Float64Array]:
    """Return the mean of every feature, and the sum of squares around it.

    A feature whose squares are no more than rounding is constant: its sum is exactly zero.
    """
    n, width = X.shape
    if issparse(X):
        columns = X.indices
        means = np.bincount(columns, X.data, width) / n
        around = np.square(X.data - means[columns])
        squares = np.bincount(columns, around, width).astype(np.float64, copy=False)
        squares += (n - np.bincount(columns, minlength=width)) * np.square(means)
    else:
        means = X.mean(axis=0, dtype=np.float64)
        squares = np.zeros(width)
        for rows in row_blocks(X, width):
            squares += np.square(rows - means).sum(axis=0)
    rounding = 64.0 * float(np.finfo(X.dtype).eps)
    squares[squares <= n * np.square(rounding * means)] = 0.0
    return means, squares


def prepare_products(
    X: Any, moments: tuple[Float64Array, Float64Array]
) -> tuple[Any, tuple[Float64Array, Float64Array]]:
    """Return features whose products can be centred without losing digits, and their moments.

    Sparse features are centred after products are made.  A feature whose mean is large against its
    spread, such as a date, would lose its digits there; nearly all of its values are stored, so
    that it can be centred first.

    >>> X = csr_array([[1e9, 0.0], [1e9 + 1, 1.0]])
    >>> ready, (means, _) = prepare_products(X, feature_moments(X))
    >>> ready.toarray().tolist(), means.tolist()
    ([[-0.5, 0.0], [0.5, 1.0]], [0.0, 0.5])
    """
    if not issparse(X):
        return X, moments
    means, squares = moments
    n = X.shape[0]
    full = (n * np.square(means) > FAR_OFF * squares) & (squares > 0)
    columns = np.flatnonzero(full)
    if len(columns) == 0:
        return X, moments
    kept = np.where(full[X.indices], 0.0, X.data)
    others = csr_array((kept, X.indices, X.indptr), X.shape)
    values = X[:, columns].toarray() - means[columns]
    ready = csr_array(others + fill_columns(values, columns, X.shape[1]))
    return ready, (np.where(full, 0.0, means), squares)


def normal_matrix(
    X: Any, moments: tuple[Float64Array, Float64Array], dtype: Any, n_columns: int
) -> Normal:
    """Return ``X^T X``, centred, to multiply with matrices of that type and number of columns."""
    if should_form(X, dtype, n_columns):
        return form_normal(X, moments, dtype)
    means, diagonal = moments
    if issparse(X):
        return ImplicitNormal(X.astype(dtype, copy=False), means, diagonal)
    # Centred before the rounding, which would else be that of the means.
    return ImplicitNormal((X - means).astype(dtype), np.zeros_like(means), diagonal)


def form_normal(X: Any, moments: tuple[Float64Array, Float64Array], dtype: Any) -> FormedNormal:
    """Return ``X^T X`` of centred features as a matrix."""
    means, diagonal = moments
    width = X.shape[1]
    if issparse(X):
        matrix = np.empty((width, width), dtype)
        for rows, products in upper_gram(X, max(1, BLOCK // max(1, width))):
            products -= np.outer(X.shape[0] * means[rows], means)
            matrix[rows] = products
        mirror(matrix)
        return FormedNormal(matrix, diagonal)
    total = np.zeros((width, width))
    for rows in row_blocks(X, width):
        centred = rows - means
        total += centred.T @ centred
    return FormedNormal(total.astype(dtype, copy=False), diagonal)


def should_form(X: Any, dtype: Any, n_columns: int) -> bool:
    """Return whether forming ``X^T X`` takes little enough memory, and less time than not to."""
    n, width = X.shape
    size, uses = float(width) ** 2, APPLICATIONS * n_columns
    if issparse(X):
        lengths = np.diff(X.indptr).astype(np.float64)
        forming = SPARSE_SPARSE * float(lengths @ lengths) + EACH_FORMED * size
        itemsize, twice = np.dtype(dtype).itemsize, 2.0 * SPARSE_DENSE * float(X.nnz)
    else:
        itemsize, forming, twice = 8, 0.5 * n * size, 2.0 * n * width
    return size * itemsize <= MOST_BYTES and forming + uses * size <= uses * twice


def cross_product(
    X: Any, feature_means: Float64Array, Y: csr_array, M: Float64Array
) -> Float64Array:
    """Return ``X^T Y M`` of centred features and labels, without forming ``X^T Y``."""
    product = np.zeros((X.shape[1], M.shape[1]))
    sums = np.zeros(M.shape[1])
    start = 0
    for rows in row_blocks(X, max(X.shape[1] if not issparse(X) else 0, M.shape[1])):
        embedded = sparse_times(Y[start : start + rows.shape[0]], M)
        start += rows.shape[0]
        if issparse(X):
            product += sparse_times(csr_array(rows.T), embedded)
            sums += embedded.sum(axis=0)
        else:
            product += (rows - feature_means).T @ embedded
    product -= np.outer(feature_means, sums)  # nothing, if features are dense
    return product


def row_blocks(X: Any, width: int) -> Iterator[Any]:
    """Cut rows into blocks that are small with ``width`` columns, one at a time."""
    size = max(1, BLOCK // max(1, width))
    if size >= X.shape[0]:
        yield X  # a slice of all rows would be a copy, if they are sparse
        return
    for start in range(0, X.shape[0], size):
        yield X[start : start + size]


class Gram(Protocol):
    """A symmetric matrix with a row for each label, without negative eigenvalues."""

    @property
    def counts(self) -> Float64Array:
        """A number for each label."""

    @property
    def matrix(self) -> Float64Array:
        """The whole matrix."""

    @property
    def trace(self) -> float:
        """About the sum of its eigenvalues."""

    def apply(self, M: Float64Array) -> Float64Array:
        """Return the product with another matrix."""


def leading_eigenvectors(gram: Gram, n: int) -> Float64Array:
    """Return the eigenvectors of the largest eigenvalues; a column of zeros if all are zero."""
    n_labels = len(gram.counts)
    if n_labels <= MOST_DENSE_LABELS or n >= n_labels - 1:
        wanted = (max(0, n_labels - n), n_labels - 1)
        values, vectors = eigh(gram.matrix, subset_by_index=wanted, check_finite=False)
    else:
        operator = LinearOperator(
            (n_labels, n_labels),
            matvec=lambda vector: gram.apply(vector.reshape(n_labels, 1)),
            matmat=gram.apply,
            dtype=float,
        )
        # A start of its own, because by default it is another one every time.
        start = np.random.default_rng(0).normal(size=n_labels)
        values, vectors = eigsh(operator, n, v0=start)
    values, vectors = values[::-1][:n], vectors[:, ::-1][:, :n]
    rank = int(np.sum(values > ZERO * max(gram.trace, 0.0)))
    if rank == 0 or gram.trace <= 0.0:
        return np.zeros((n_labels, 1))
    return vectors[:, :rank]


def orient(vectors: Float64Array) -> Float64Array:
    """Return signs for columns that have none of their own, as eigenvectors have not.

    Times its sign, the cubes of each column add up to something positive.
    """
    return np.where((vectors**3).sum(axis=0) < 0, -1.0, 1.0)
