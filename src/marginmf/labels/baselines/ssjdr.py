"""SSJDR: a max-margin embedding that keeps neighbours together (after Yu and Zhang, 2016).

    F(U, b, V) = sum over rows i and labels l of loss(y_il, ((x_i U + b) V)_l)
                 + alpha / 2 sum over pairs i, j of e_ij |x_i U - x_j U|^2
                 + delta / 2 |U|^2 + 1 / 2 |b|^2 + reg / 2 |V|^2

The terms of U are ``tr(U^T M U) / 2`` with ``M = 2 alpha D^T D + delta I``, where D has a row
``sqrt(e_ij) (x_i - x_j)`` for each pair of neighbours.  With ``M = R^T R`` and c the fourth root of
reg, the variables ``R U / c``, ``b / c`` and ``c V`` have the penalty ``c^2 / 2`` times the sum of
their squares: F is the objective of one embedding (`LabelObjective`) of the rows ``x R^-1``.  These
rows would be dense, so ``R^-1`` is applied to the variables instead.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse import csr_array, issparse, triu
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.extmath import row_norms

from marginmf._utils.parameters import check_n_jobs, check_number, n_threads
from marginmf._utils.random import as_generator
from marginmf._utils.saved import floats
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.labels.algebra.clusters import choose_form
from marginmf.labels.algebra.matrices import BLOCK, form_normal, used_features
from marginmf.labels.base import LabelsEstimator, method
from marginmf.labels.linear import affine
from marginmf.labels.neighbours import Neighbours
from marginmf.labels.objective import LabelObjective, label_loss
from marginmf.labels.order import content_order
from marginmf.labels.tree import START_SCALE
from marginmf.losses import RealLoss, TwoLevelLoss
from marginmf.solvers import Solver, Stopping, get_solver

#: Above this many features, a matrix of all their pairs is too large to be factorised.
MOST_FEATURES = 5000
#: Above 0.
LEAST = 5e-324


@method("ssjdr")
@dataclass(eq=False, repr=False)
class SSJDR(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LabelsEstimator):
    """Joint dimension reduction and classification, after SSJDR-MLL (Yu and Zhang, 2016).

    Features times ``U`` are a few factors, and those times ``V`` a score for every label, with a
    large margin; rows that are near each other shall have factors that are near each other.  The
    objective is the one that Kumar's thesis prints (chapter 5), for rows with labels; graph and
    algorithm are our own, as those of the paper are not given there.  The paper has
    ``decision="sign"``.

    Parameters
    ----------
    n_factors : int
        The dimension of the embedding; at most as many as there are labels or features are used.
    alpha : float
        How strongly neighbours are drawn together.
    reg : float
        The regularisation strength of the labels' factors, above 0.
    n_neighbors : int
        Two rows are neighbours if each is among the nearest ones of the other, this many.
    epsilon : float
        What is added to the diagonal of the matrix behind ``alpha``, as a share of its mean; above
        0.  Without it features that no neighbours differ in would have no penalty.
    loss : str, TwoLevelLoss or RealLoss
        ``"smooth_hinge"``, ``"hinge"``, ``"modified_square"``, ``"logistic"``, ``"squared"`` (of
        targets -1 and 1), or a loss of your own.  The thesis has the hinge loss; its smooth form is
        what the other embeddings of this library minimise.
    solver : str or solver
        ``"lbfgs"``, ``"cg"`` or ``"gd"``, or a solver object.
    max_iter, tol
        When to stop: after ``max_iter`` iterations, or when one of them (on the average of the last
        three) lowers the objective by less than this share of it.  At first the objective is nearly
        flat where no label is ever there; a larger ``tol`` may stop at that.
    random_state : int, Generator or None
        Seeds the start.
    n_jobs : int or None
        Threads, as in scikit-learn: None is one, -1 is all.  The result does not depend on it.

    Attributes
    ----------
    feature_map_ : array of shape (n_features, n_components)
        The map from the features to the factors (U).
    factor_intercept_ : array of shape (n_components,)
        What is added to the factors.
    label_factors_ : array of shape (n_components, n_labels)
        The factors of every label (V).
    objective_ : float
        Where the minimisation ended.
    n_iter_ : int
        How many iterations it took.

    Notes
    -----
    Neighbours and penalties depend on the scale of the features: see `Scaled`.  The Cholesky factor
    of a matrix of all pairs of features is kept during a fit, so that more than 5,000 features are
    refused.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=60, n_classes=4, random_state=0)
    >>> model = SSJDR(n_factors=3, decision="sign", random_state=0).fit(X, Y)
    >>> model.predict(X).shape, model.transform(X).shape
    ((60, 4), (60, 3))
    """

    n_factors: int = 100
    alpha: float = 1.0
    reg: float = 1.0
    n_neighbors: int = 10
    _: KW_ONLY
    epsilon: float = 0.1
    loss: str | TwoLevelLoss | RealLoss = "smooth_hinge"
    solver: str | Solver = "lbfgs"
    max_iter: int = 500
    tol: float = 1e-5
    random_state: Any = None
    n_jobs: int | None = None

    _order = staticmethod(content_order)
    _saved: ClassVar[dict[str, Any]] = {
        "feature_map_": floats("features", "factors"),
        "factor_intercept_": floats("factors"),
        "label_factors_": floats("factors", "labels"),
        "objective_": float,
        "n_iter_": int,
    }

    def _check(self) -> None:
        for name in ("n_factors", "n_neighbors", "max_iter"):
            check_number(self, name, int, 1)
        for name in ("alpha", "tol"):
            check_number(self, name, float, 0)
        for name in ("reg", "epsilon"):
            check_number(self, name, float, LEAST)
        check_n_jobs(self)
        label_loss(self.loss)
        get_solver(self.solver)
        as_generator(self.random_state)

    def transform(self, X: Any) -> Float64Array:
        """Embed rows: map their features to the factors.

        From an X of shape (n_samples, n_features) to an array of shape (n_samples, n_components).
        """
        return self._embedded(self._features(X))

    def _embedded(self, X: Any) -> Float64Array:
        return affine(X, self.feature_map_, self.factor_intercept_)

    def _scores(self, X: Any) -> FloatArray:
        return self._embedded(X) @ self.label_factors_

    @property
    def _n_features_out(self) -> int:
        return int(self.feature_map_.shape[1])

    def _fit(self, X: Any, Y: csr_array) -> None:
        width = X.shape[1]
        features, X = used_features(choose_form(X))
        if len(features) > MOST_FEATURES:
            raise ValueError(
                f"SSJDR factorises a matrix of all pairs of features, and {len(features)} features "
                f"are more than {MOST_FEATURES}: choose some of them, or MLCHMF(max_depth=0)."
            )
        n_factors = max(1, min(self.n_factors, len(features), Y.shape[1]))
        self.feature_map_ = np.zeros((width, n_factors))
        self.factor_intercept_ = np.zeros(n_factors)
        self.label_factors_ = np.zeros((n_factors, Y.shape[1]))
        self.objective_, self.n_iter_ = 0.0, 0
        if Y.shape[1] == 0:
            return
        loss, threads = label_loss(self.loss), n_threads(self.n_jobs)
        objective = NeighbourObjective(
            LabelObjective(X, Y, 0.0, n_factors, loss, threads),
            cholesky(self._penalty(X)),
            float(self.reg),
        )
        result = self._checkpoint.minimise(
            "embedding",
            get_solver(self.solver),
            objective,
            self._start(objective),
            Stopping(max_iter=self.max_iter, tol=self.tol),
            (),
            objective.vectors,
        )
        U, self.label_factors_ = objective.original(result.point)
        self.feature_map_[features], self.factor_intercept_ = U[:-1], U[-1].copy()
        self.objective_, self.n_iter_ = float(result.objective), result.n_iter

    def _penalty(self, X: Any) -> Float64Array:
        """Return the matrix of the terms of U: neighbours, and a share of the mean diagonal."""
        graph = neighbour_graph(X, self.n_neighbors)
        matrix = 2.0 * self.alpha * neighbour_gram(X, graph)
        diagonal = np.diagonal(matrix)
        # If no neighbours differ, or they do not matter, there is the other term alone.
        delta = float(self.epsilon) * (float(diagonal.mean()) if diagonal.any() else 1.0)
        matrix[np.diag_indices_from(matrix)] += delta
        return matrix

    def _start(self, objective: "NeighbourObjective") -> FloatArray:
        """Return a random start, the same for labels that the same rows have."""
        kinds = self._seen.kinds
        rng = self._checkpoint.generator("start", self.random_state)
        (n_rows, n_factors), _ = objective.inner.shapes
        U = START_SCALE * rng.standard_normal((n_rows, n_factors))
        V = START_SCALE * rng.standard_normal((n_factors, int(kinds.max()) + 1))
        return objective.inner.join(U, V[:, kinds])


class NeighbourObjective:
    """The objective as a function of ``R U / c``, ``b / c`` and ``c V`` in one flat vector.

    ``inner`` has the loss of the rows as they are, without a penalty; ``factor`` is R, upper
    triangular, and c the fourth root of reg.
    """

    def __init__(self, inner: LabelObjective, factor: Float64Array, reg: float) -> None:
        self.inner, self.factor = inner, factor
        #: The penalty of all variables, c^2.
        self.weight = float(np.sqrt(reg))
        self.vectors = inner.vectors

    def original(self, point: FloatArray) -> tuple[Float64Array, Float64Array]:
        """Return U, with the intercept as its last row, and V."""
        balance = np.sqrt(self.weight)
        reduced, V = self.inner.split(point)
        U = balance * reduced
        U[:-1] = solve_triangular(self.factor, U[:-1], check_finite=False)
        return U, V / balance

    def __call__(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient at a point."""
        balance = np.sqrt(self.weight)
        value, gradient = self.inner(self.inner.join(*self.original(point)))
        by_U, by_V = self.inner.split(gradient)
        by_U[:-1] = solve_triangular(self.factor, by_U[:-1], trans="T", check_finite=False)
        by_U *= balance
        by_V /= balance
        gradient += self.weight * point
        return value + 0.5 * self.weight * float(point @ point), gradient


def neighbour_graph(X: Any, n_neighbors: int) -> csr_array:
    """Return the similarities of rows that are among each other's nearest ones.

    They are ``exp(-d^2 / s^2)``, where s is the median distance of a row from its nearest ones.
    """
    n = X.shape[0]
    # Rows without any features have no distances.
    near = Neighbours(n_neighbors if X.shape[1] else 0).fit(X).kneighbors()
    k = near.shape[1]
    squares = _squared_differences(X, np.repeat(np.arange(n), k), near.ravel())
    scale = float(np.median(np.sqrt(squares)) ** 2) if len(squares) else 0.0
    scale = scale or float(squares.max(initial=0.0)) or 1.0
    weights = np.exp(-squares / scale)
    one_way = csr_array((weights, near.ravel(), k * np.arange(n + 1)), shape=(n, n))
    return csr_array(one_way.minimum(one_way.T))


def neighbour_gram(X: Any, graph: csr_array) -> Float64Array:
    """Return the sum of ``e_ij (x_i - x_j)^T (x_i - x_j)``, each pair of neighbours once."""
    pairs = triu(graph, 1, format="coo")
    gram = np.zeros((X.shape[1], X.shape[1]))
    nothing = np.zeros(X.shape[1])
    for part in _blocks(len(pairs.data), X.shape[1]):
        roots = np.sqrt(pairs.data[part])[:, None]
        difference = X[pairs.row[part]] - X[pairs.col[part]]
        scaled = csr_array(difference.multiply(roots)) if issparse(X) else difference * roots
        gram += form_normal(scaled, (nothing, nothing), np.float64).matrix
    return gram


def _squared_differences(X: Any, rows: IntArray, others: IntArray) -> Float64Array:
    squares = np.empty(len(rows))
    for part in _blocks(len(rows), X.shape[1]):
        squares[part] = row_norms(X[rows[part]] - X[others[part]], squared=True)
    return squares


def _blocks(n: int, width: int) -> Iterator[slice]:
    size = max(1, BLOCK // max(1, width))
    for start in range(0, n, size):
        yield slice(start, start + size)
