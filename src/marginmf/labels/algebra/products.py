"""All that least squares needs of rows: ``X^T X``, ``X^T Y`` and ``Y^T Y``, made once.

Whatever is learned from these products costs the same for any number of rows.  The products of
some of the rows are those of all rows minus those of the others, so that the folds of a
cross-validation share them.  Where there are more features than rows, the eigenvectors of
``X X^T`` say the same as those of ``X^T X`` (`Spectrum`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from marginmf._utils.indicators import counts
from marginmf._utils.types import Float64Array, IntArray
from marginmf.labels.algebra.matrices import (
    LabelGram,
    feature_moments,
    form_normal,
    prepare_products,
)

#: The most rows of a matrix that is factorised.
LARGEST = 8192
#: What is below this share of the whole is lost in rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Products:
    """The products of features and labels that are both centred, or both as they are."""

    means: Float64Array  # of the features, whether they are centred with them or not
    normal: Float64Array  # X^T X
    cross: Float64Array  # X^T Y
    labels: LabelGram

    @classmethod
    def of(cls, X: Any, Y: csr_array) -> "Products":
        """Make the centred products of rows; sparse features are never made dense."""
        moments = feature_moments(X)
        ready, shifted = prepare_products(_in_float64(X), moments)
        normal: Any = form_normal(ready, shifted, np.float64).matrix
        cross = label_products(ready, shifted[0], Y)
        # The products of constant features are rounding alone.
        constant = np.flatnonzero(moments[1] == 0)
        normal[constant], normal[:, constant], cross[constant] = 0.0, 0.0, 0.0
        return cls(moments[0], normal, cross, LabelGram.of(Y))

    def without(self, part: "Products") -> "Products":
        """Return the products of the rows that are not in a part of them; all are centred."""
        n_rows = self.labels.n_rows - part.labels.n_rows
        labels = LabelGram(csr_array(self.labels.together - part.labels.together), n_rows)
        # How far the means of the rows left are from those of the part (Chan and others, 1983).
        far = (self.means - part.means) * (self.labels.n_rows / n_rows)
        label_far = labels.means - part.labels.means
        weight = part.labels.n_rows * n_rows / self.labels.n_rows
        return Products(
            part.means + far,
            self.normal - part.normal - weight * np.outer(far, far),
            self.cross - part.cross - weight * np.outer(far, label_far),
            labels,
        )

    def take(self, labels: IntArray) -> "Products":
        """Return the products of some labels, in that order."""
        return replace(self, cross=self.cross[:, labels], labels=self.labels.take(labels))

    def uncentred(self) -> "Products":
        """Return the products of features and labels as they are."""
        n_rows, label_sums = self.labels.n_rows, self.labels.counts
        normal = self.normal + n_rows * np.outer(self.means, self.means)
        cross = self.cross + np.outer(self.means, label_sums)
        return replace(self, normal=normal, cross=cross)


def are_few(X: Any) -> bool:
    """Whether features are so few, beside the rows, that their products are formed."""
    return bool(X.shape[1] <= min(X.shape[0], LARGEST))


def has_few_rows(X: Any) -> bool:
    """Whether rows are so few that the products of rows are formed."""
    return bool(X.shape[0] <= LARGEST)


def moments_around(X: Any, centred: bool) -> tuple[Float64Array, Float64Array]:
    """Return the mean of every feature and the squares around it; or zero, and around zero."""
    means, squares = feature_moments(X)
    if centred:
        return means, squares
    return np.zeros_like(means), squares + X.shape[0] * np.square(means)


def label_products(X: Any, means: Float64Array, Y: csr_array) -> Float64Array:
    """Return ``X^T Y``; centred, if these are the means of the features."""
    product = Y.T @ X.astype(np.float64, copy=False)
    product = product.toarray() if issparse(product) else product
    product -= np.outer(counts(Y, axis=0), means)
    return product.T


def row_products(X: Any, means: Float64Array) -> Float64Array:
    """Return ``X X^T`` of features that are centred with these means."""
    if not issparse(X):
        centred = X - means
        return centred @ centred.T
    products: Float64Array = (X @ X.T).toarray()
    with_means = X @ means
    products -= with_means[:, None]
    products -= with_means
    products += means @ means
    return products


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Features in the basis of the eigenvectors of ``X^T X``, where that matrix is a diagonal.

    What does not depend on the basis, such as a squared norm of weights, is learned there, and
    weights are lifted to the features afterwards.
    """

    values: Float64Array  # the eigenvalues that are not zero
    cross: Float64Array  # X^T Y in that basis: eigenvectors by labels
    lift: Callable[[Float64Array], Float64Array]  # from weights in that basis to features

    @classmethod
    def of(
        cls, X: Any, Y: csr_array, centred: bool, products: Products | None = None
    ) -> "Spectrum":
        """Decompose whichever is smaller, ``X^T X`` or ``X X^T``; the products may be known."""
        if products is not None or are_few(X):
            products = products or Products.of(X, Y)
            return cls.of_products(products if centred else products.uncentred())
        return cls.of_rows(X, Y, centred)

    @classmethod
    def of_products(cls, products: Products) -> "Spectrum":
        """Decompose ``X^T X``."""
        values, vectors = np.linalg.eigh(products.normal)
        kept = _above_rounding(values)
        vectors = vectors[:, kept]
        return cls(values[kept], vectors.T @ products.cross, vectors.__matmul__)

    @classmethod
    def of_rows(cls, X: Any, Y: csr_array, centred: bool) -> "Spectrum":
        """Decompose ``X X^T``, whose eigenvalues are the same."""
        X, (means, _) = prepare_products(_in_float64(X), moments_around(X, centred))
        values, vectors = np.linalg.eigh(row_products(X, means))
        kept = _above_rounding(values)
        roots = np.sqrt(values[kept])
        # Their products with centred labels are those with labels: the columns add up to zero.
        vectors = vectors[:, kept]

        def lift(weights: Float64Array) -> Float64Array:
            duals = vectors @ (weights / roots[:, None])
            product: Float64Array = X.T @ duals
            product -= np.outer(means, duals.sum(axis=0))
            return product

        return cls(values[kept], roots[:, None] * (Y.T @ vectors).T, lift)


def _above_rounding(values: Float64Array) -> Any:
    return values > ROUNDING * values.max(initial=0.0)


def _in_float64(X: Any) -> Any:
    """Return sparse features in float64; dense ones are converted block by block."""
    return X.astype(np.float64, copy=False) if issparse(X) else X
