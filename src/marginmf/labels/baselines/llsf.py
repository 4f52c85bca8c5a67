"""LLSF: label-specific features, sparse weights that related labels share (Huang and others).

Minimises ``1/2 |X W - Y|^2 + alpha/2 tr(R W^T W) + beta |W|_1`` over W (features by labels), where
R is one minus the cosines of the label columns (Huang, Li, Huang and Wu, 2015): labels that occur
together get similar weights, and most weights are zero.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.preprocessing import normalize

from marginmf._utils.parameters import check_flag, check_n_jobs, check_number
from marginmf._utils.saved import HISTORY
from marginmf._utils.types import Float64Array, FloatArray
from marginmf.labels.algebra.embedding import largest_eigenvalue, unrelatedness
from marginmf.labels.algebra.matrices import (
    MOST_DENSE_LABELS,
    FormedNormal,
    ImplicitNormal,
    LabelGram,
    Normal,
    should_form,
    used_features,
)
from marginmf.labels.algebra.products import Products, are_few, label_products, moments_around
from marginmf.labels.algebra.ridge import Ridge
from marginmf.labels.base import method
from marginmf.labels.baselines.binary import fit_each, rows_of_each
from marginmf.labels.baselines.rowfree import RowFree, label_gram
from marginmf.labels.linear import LinearScores, affine
from marginmf.labels.order import Seen
from marginmf.penalties import L1
from marginmf.solvers import APG, Composite, Stopping

Product = Callable[[FloatArray], FloatArray]


def unlike(gram: LabelGram, projected: bool) -> Product:
    """Return what multiplies by R, one minus the cosines of labels that some rows have.

    Of many labels the cosines are sparse, and only these are kept.  Projected: negative eigenvalues
    of R are replaced by zero.
    """
    if projected:
        R = unrelatedness(gram.together.toarray())
        return lambda W: W @ R
    lengths, together = np.sqrt(gram.counts), gram.together
    of_rows = np.repeat(lengths, np.diff(together.indptr))
    values = together.data / (of_rows * lengths[together.indices])
    cosines: Any = csr_array((values, together.indices, together.indptr), together.shape)
    if cosines.shape[0] <= MOST_DENSE_LABELS:
        R = 1.0 - cosines.toarray()
        np.fill_diagonal(R, 0.0)
        return lambda W: W @ R
    return lambda W: W.sum(axis=1, keepdims=True) - (cosines @ W.T).T


@method("llsf")
@dataclass(eq=False, repr=False)
class LLSF(RowFree, LinearScores):
    """Least squares with label-specific features: sparse weights that related labels share.

    Labels are 0 and 1, and there is no intercept.  Accelerated proximal gradient starts from a
    ridge regression and takes a fixed number of careful steps, as published, which do not reach the
    minimum: the start is a part of the method.  The paper has ``decision="sign"``, which is
    rounding to 0 and 1.

    Parameters
    ----------
    alpha : float
        How much the weights of labels that occur together are kept alike.
    beta : float
        The l1 penalty, which makes weights zero.
    gamma : float
        The regularisation strength of the ridge regression at the start.
    max_iter : int
        The most iterations.
    tol : float
        Stop when an iteration lowers the objective by less than this share, on the average of
        three.
    normalize_rows : bool
        Whether every row is divided by its length first.  The authors do that, and texts gain by
        it; Kumar's thesis does not.
    project : bool
        Whether the matrix behind ``alpha`` is projected on the positive semi-definite ones, without
        which the problem has no minimum if ``alpha`` is large.
    refit : bool
        Whether a linear support vector machine is learned for every label afterwards, from the
        features whose weight is not zero (or all, if none is left).
    n_jobs : int or None
        How many of these machines are learned at a time, as in scikit-learn.

    Attributes
    ----------
    intercept_ : array of shape (n_labels,)
        What is added: minus one half, or the intercepts of the machines.  A label that all rows
        have, or none, has 1 or -1 here, and no weights.
    history_ : list of Record
        The objective after every iteration.
    n_iter_ : int
        How many iterations were done.
    stop_reason_ : str
        Why they ended.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=6, random_state=0)
    >>> model = LLSF(decision="sign", normalize_rows=True).fit(X, Y)
    >>> model.predict(X).shape, model.coef_.shape
    ((100, 6), (6, 20))
    """

    alpha: float = 0.1
    beta: float = 0.1
    gamma: float = 0.01
    max_iter: int = 100
    tol: float = 1e-4
    normalize_rows: bool = False
    project: bool = False
    refit: bool = False
    n_jobs: int | None = None

    _saved: ClassVar[dict[str, Any]] = HISTORY

    def _check(self) -> None:
        for name in ("alpha", "beta", "gamma", "tol"):
            check_number(self, name, float, 0)
        check_number(self, "max_iter", int, 1)
        check_n_jobs(self)
        check_flag(self, "normalize_rows", "project", "refit")

    def _prepare(self, X: Any) -> Any:
        return normalize(X) if self.normalize_rows else X

    def _fit_nothing(self, X: Any) -> None:
        self.coef_, self.intercept_ = np.zeros((0, X.shape[1])), np.zeros(0)
        self.history_: list[Any] = []
        self.n_iter_, self.stop_reason_ = 0, "no label varies"

    def _fit_varying(self, X: Any, Y: csr_array, products: Products | None) -> None:
        used, seen = np.arange(X.shape[1]), X
        if products is None:
            # The weights of features that no row has would stay zero.
            found, narrow = used_features(X)
            used, seen = (found, narrow) if len(found) else (used, X)
        self.coef_ = np.zeros((Y.shape[1], X.shape[1]))
        self.coef_[:, used] = self._minimise(seen, Y, products).T
        self.intercept_ = np.full(Y.shape[1], -0.5)
        if self.refit:
            self._fit_machines(X, Y)

    def _shares_products(self, X: Any, Y: csr_array) -> bool:
        return forms_products(X, Y)

    def _minimise(self, X: Any, Y: csr_array, products: Products | None) -> Float64Array:
        normal, products = form_products(X, Y, products)
        gram = label_gram(Y, products)
        start = Ridge(X, float(self.gamma), centred=False, products=products).solve(Y)
        cross = label_products(X, np.zeros(X.shape[1]), Y) if products is None else products.cross
        with_unlike = unlike(gram, bool(self.project))
        alpha, squares = float(self.alpha), float(gram.counts.sum())

        def smooth(W: FloatArray) -> tuple[float, FloatArray]:
            slope = normal.apply(W)
            if alpha:
                slope += alpha * with_unlike(W)
            slope -= cross
            value = 0.5 * (squares + float(np.vdot(W, slope) - np.vdot(W, cross)))
            return value, slope

        curvature = largest_eigenvalue(normal.apply, X.shape[1], np.float64)
        unlikeness = largest_eigenvalue(lambda w: with_unlike(w.T).T, Y.shape[1], np.float64)
        # The bound of the paper; a smaller one would be another method, because steps are few.
        lipschitz = np.sqrt(2.0 * (curvature**2 + (alpha * unlikeness) ** 2))
        objective = Composite(smooth, L1(float(self.beta)), float(lipschitz))
        stopping = Stopping(self.max_iter, self.tol, gradient_tol=0.0)
        start = np.ascontiguousarray(start)
        try:
            result = self._checkpoint.minimise(
                "weights", APG(affine=True), objective, start, stopping
            )
        except FloatingPointError:
            raise ValueError(
                f"With alpha={self.alpha} the problem has no minimum, and the weights grew without "
                "end. Lower alpha, or set project=True."
            ) from None
        self.history_, self.n_iter_ = result.history, result.n_iter
        self.stop_reason_ = str(result.reason)
        return result.point

    def _fit_machines(self, X: Any, Y: csr_array) -> None:
        """Learn a machine for each label from the features that have a weight."""
        used = [np.flatnonzero(row) for row in self.coef_]
        used = [each if len(each) else np.arange(X.shape[1]) for each in used]

        def features(rows: Any) -> Any:
            return (rows[:, each] for each in used)

        fitted = fit_each(None, zip(features(X), rows_of_each(Y), strict=True), self.n_jobs)
        self.coef_[:] = 0.0
        for label, machine in enumerate(fitted):
            self.coef_[label, used[label]] = machine.coef_[0]
            self.intercept_[label] = machine.intercept_[0]

    def _restore(self, seen: Seen, learned: Collection[str]) -> None:
        super()._restore(seen, learned)
        if self._labels is not None:
            self.intercept_ = self._labels.fill(self.intercept_[None])[0]

    def _scores(self, X: Any) -> FloatArray:
        return affine(self._prepare(X), self.coef_.T, self.intercept_)


def forms_products(X: Any, Y: csr_array) -> bool:
    """Whether ``X^T X`` is formed, which sparse features may make slower than not to."""
    return are_few(X) and should_form(X, np.float64, Y.shape[1])


def form_products(
    X: Any, Y: csr_array, products: Products | None
) -> tuple[Normal, Products | None]:
    """Return ``X^T X`` of features that are not centred, and all products if that was formed."""
    if products is None and forms_products(X, Y):
        products = Products.of(X, Y)
    if products is not None:
        products = products.uncentred()
        return FormedNormal(products.normal, products.normal.diagonal()), products
    return ImplicitNormal(X.astype(np.float64, copy=False), *moments_around(X, False)), None
