"""What is called SVD of ratings: biased factors by stochastic gradients; SVD with gaps filled."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from marginmf._utils.parameters import check_callbacks, check_number
from marginmf._utils.random import as_generator
from marginmf._utils.saved import TRAINING, floats
from marginmf._utils.types import Array, Float64Array, FloatArray, IntArray
from marginmf.backends.rows import Rows, Side
from marginmf.backends.threads import one_blas_thread, row_bounds, run
from marginmf.progress import progress_bar
from marginmf.ratings.base import method
from marginmf.ratings.baselines.products import Epochs, FactorEstimates, mean_of, star_unit
from marginmf.ratings.data import Ratings
from marginmf.ratings.lists.relevance import Columns
from marginmf.solvers import Callback, Stopping

#: The standard deviation of the factors at the start.
START = 0.1
#: Matrices with at most this many rows or columns are decomposed as a whole: that is as quick.
SMALL_SIDE, SMALL_CELLS = 300, 1 << 20
#: Singular values below this share of the largest are rounding errors.
NEGLIGIBLE = 1e-9


@method("svd")
@dataclass(eq=False, repr=False)
class SVD(FactorEstimates):
    """Biases and factors by stochastic gradients, known as SVD since the Netflix prize.

    Estimates ``mean + b_i + c_j + U_i . V_j``.  Every rating in random order moves its user and its
    item along the gradient of ``(error^2 + reg (b_i^2 + c_j^2 + |U_i|^2 + |V_j|^2)) / 2``, so the
    penalty on a user or an item grows with the number of their ratings (Funk, 2006).  New users
    and items are the minimum of the same sum, in closed form.  Ratings are stretched to a scale
    from 1 to 5 for it, so that one length of steps and one strength suit any scale.

    Parameters
    ----------
    n_factors : int
        The rank of the factorisation.
    reg : float
        The regularisation strength, for each rating.
    max_iter : int
        How many epochs there are.  The errors at first fall with them, then rise.
    learning_rate, decay : float
        The length of steps in the first epoch, and the factor by which every epoch shortens it.
    random_state : int, Generator or None
        Seeds the start and the order of the ratings, which has to be one after the other: more
        threads are of use in predictions only.
    callbacks : sequence of callable
        Called with a `marginmf.solvers.Progress` after every epoch; returning True stops.

    Attributes
    ----------
    user_biases_, item_biases_ : array
        A number for each of ``users_.ids`` and ``items_.ids``.
    history_, n_iter_, n_evaluations_, stop_reason_
        As for the factorisers; the gradient's norm is not known.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> model = SVD(n_factors=5, random_state=0).fit(data.pairs, data.ratings)
    >>> print(f"training error {-model.score(data.pairs, data.ratings):.1f} stars")
    training error 0.0 stars
    """

    _saved: ClassVar[dict[str, Any]] = {
        **TRAINING,
        "user_biases_": floats("users"),
        "item_biases_": floats("items"),
    }
    n_factors: int = 50
    reg: float = 0.06
    _: KW_ONLY
    max_iter: int = 60
    learning_rate: float = 0.01
    decay: float = 0.97
    calibrate: bool = True
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    callbacks: Sequence[Callback] = ()

    _rank_axis = "factors"
    _user_arrays = ("user_factors_", "user_biases_")
    _item_arrays = ("item_factors_", "item_biases_")

    def _fit(self, data: Ratings) -> None:
        rng = self._checkpoint.generator("random start", self.random_state)
        self.mean_ = mean_of(data)
        counts = np.concatenate([np.diff(data.indptr), np.diff(data.item_indptr)])
        # A row for each user, then one for each item; the last column are the biases.
        start = START * rng.standard_normal((len(counts), int(self.n_factors) + 1))
        start[:, -1] = 0.0
        start[counts == 0] = 0.0  # nothing will ever move those without ratings
        unit = star_unit(self.levels_)
        targets = (data.values - self.mean_) / unit
        problem = SGDProblem(data, targets, counts, float(self.reg))

        def epoch(order: IntArray, point: FloatArray, memory: Any, n_epochs: int) -> float:
            problem.pass_over(order, point, self.learning_rate * self.decay**n_epochs)
            return problem(point)[0]

        solver, rules = Epochs(len(data), epoch, rng), Stopping(int(self.max_iter), -np.inf)
        with progress_bar(type(self).__name__, 1, bool(self.verbose)) as report:
            watching = [*report(""), *self.callbacks]
            result = self._checkpoint.minimise("epochs", solver, problem, start, rules, watching)
        users, items = np.split(result.point, [data.n_users])
        self._set_rows("user", users, unit)
        self._set_rows("item", items, unit)
        self._record(result)

    def _set_rows(self, side: Side, rows: FloatArray, unit: float) -> None:
        setattr(self, f"{side}_factors_", rows[:, :-1] * np.sqrt(unit))
        setattr(self, f"{side}_biases_", rows[:, -1] * unit)

    def _fold_in(self, side: Side, data: Ratings) -> None:
        factors, biases = self.item_factors_, self.item_biases_
        if side == "item":
            factors, biases = self.user_factors_, self.user_biases_
        rows, targets = data.view(side), data.values - self.mean_
        targets = (targets if side == "user" else targets[data.item_order]) - biases[rows.indices]
        unit = star_unit(self.levels_)
        targets, factors = targets / unit, factors / np.sqrt(unit)
        extended = np.column_stack([factors, np.ones(len(factors))])
        out = np.empty((rows.n_rows, extended.shape[1]))
        arguments = rows, targets, extended, float(self.reg), out
        threads = self._n_threads(len(rows) * out.shape[1] ** 2)
        with one_blas_thread():
            run(
                _ridge_rows,
                row_bounds(rows.indptr, threads, out.shape[1] ** 2),
                threads,
                *arguments,
            )
        self._set_rows(side, out, unit)

    def _user_part(self, users: IntArray) -> Float64Array:
        return self.mean_ + self.user_biases_[users]

    def _item_part(self, items: Columns) -> Float64Array:
        return self.item_biases_[items]

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "n_factors", int, 1)
        check_number(self, "reg", float, 0)
        check_number(self, "max_iter", int, 1)
        check_number(self, "learning_rate", float, np.nextafter(0, 1))
        check_number(self, "decay", float, np.nextafter(0, 1), 1)
        as_generator(self.random_state)
        check_callbacks(self)


@dataclass(frozen=True, eq=False)
class SGDProblem:
    """Half the squared errors and penalties of `SVD`; points have users' rows, then items'."""

    data: Ratings
    targets: Float64Array
    counts: IntArray
    reg: float

    def __call__(self, point: FloatArray) -> tuple[float, None]:
        """Return the objective; no gradient is known of it."""
        from marginmf.backends.cpu.epochs import squared_errors

        data, errors = self.data, np.empty(self.data.n_users)
        users, items = np.split(point, [data.n_users])
        entries = data.indptr, data.indices, self.targets
        squared_errors(0, data.n_users, *entries, users, items, errors)
        penalty = self.counts * np.einsum("nd,nd->n", point, point)
        return 0.5 * float(errors.sum() + self.reg * penalty.sum()), None

    def pass_over(self, order: IntArray, point: FloatArray, rate: float) -> None:
        """Move the point by every rating in this order."""
        from marginmf.backends.cpu.epochs import sgd_epoch

        data = self.data
        users, items = np.split(point, [data.n_users])
        sgd_epoch(order, data.rows, data.indices, self.targets, rate, self.reg, users, items)


def _ridge_rows(
    start: int,
    stop: int,
    rows: Rows,
    targets: FloatArray,
    factors: FloatArray,
    reg: float,
    out: FloatArray,
) -> None:
    """Fill rows of ``out`` with ridge regressions whose penalty grows with the ratings."""
    diagonal = np.arange(factors.shape[1])
    for i in range(start, stop):
        entries = slice(int(rows.indptr[i]), int(rows.indptr[i + 1]))
        own = factors[rows.indices[entries]]
        gram = own.T @ own
        # Also without a penalty there must be one solution.
        gram[diagonal, diagonal] += max(reg, NEGLIGIBLE) * max(len(own), 1)
        out[i] = np.linalg.solve(gram, targets[entries] @ own)


@method("imputedsvd")
@dataclass(eq=False, repr=False)
class ImputedSVD(FactorEstimates):
    """The truncated singular value decomposition of the ratings, with all gaps filled.

    A gap is filled with the item's mean plus the mean of what the user's ratings are above those
    of their items (Sarwar, Karypis, Konstan and Riedl, 2000).  The estimates are the filled matrix
    without its small singular values.  It is never in memory: it is sparse but for a matrix of
    rank two.  New users and items are filled in the same way, and projected.

    Parameters
    ----------
    n_factors : int
        The rank of the decomposition.
    random_state : int, Generator or None
        Nothing in the decomposition is random: it only seeds which ratings a calibration sets
        aside.

    Attributes
    ----------
    item_means_, user_offsets_ : array
        What gaps are filled with: their sum.
    user_factors_, item_factors_ : array
        The left and the right singular vectors, in descending order of the singular values and
        times their roots.  The largest number of every right one is positive.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> model = ImputedSVD(n_factors=4).fit(data.pairs, data.ratings)
    >>> print(f"training error {-model.score(data.pairs, data.ratings):.1f} stars")
    training error 0.0 stars
    """

    _saved: ClassVar[dict[str, Any]] = {
        "item_means_": floats("items"),
        "user_offsets_": floats("users"),
    }
    n_factors: int = 14
    _: KW_ONLY
    calibrate: bool = True
    random_state: Any = 0
    n_jobs: int | None = None

    _user_arrays = ("user_factors_", "user_offsets_")
    _item_arrays = ("item_factors_", "item_means_")

    def _fit(self, data: Ratings) -> None:
        self.mean_ = mean_of(data)
        self.item_means_ = self._means_of_items(data)
        self.user_offsets_ = self._offsets_of_users(data)
        filled = FilledMatrix(self._above_fill(data), self.item_means_, self.user_offsets_)
        with one_blas_thread():  # so that the rounding does not depend on the threads
            right = right_vectors(filled, int(self.n_factors))
        left = filled.times(right)
        sizes = np.sqrt(np.einsum("nd,nd->d", left, left))
        # Both sides get a share, so that neighbours of either are not those of small values.
        roots = np.sqrt(sizes)
        self.item_factors_ = right * roots
        self.user_factors_ = np.divide(left, roots, out=np.zeros_like(left), where=roots > 0)

    def _fold_in(self, side: Side, data: Ratings) -> None:
        if side == "user":
            self.user_offsets_ = self._offsets_of_users(data)
        else:
            self.item_means_ = self._means_of_items(data)
        filled = FilledMatrix(self._above_fill(data), self.item_means_, self.user_offsets_)
        if side == "user":
            given, projected = self.item_factors_, filled.times(self.item_factors_)
        else:
            given, projected = self.user_factors_, filled.transposed_times(self.user_factors_)
        # The nearest point of the space that the given rows span.  For the rows of training, whose
        # columns are orthogonal, that is the projection alone but for its scale.
        gram = np.einsum("nd,ne->de", given, given)
        with one_blas_thread():
            inverse = np.linalg.pinv(gram, rcond=NEGLIGIBLE, hermitian=True)
        setattr(self, f"{side}_factors_", np.einsum("nd,de->ne", projected, inverse))

    def _means_of_items(self, data: Ratings) -> Float64Array:
        counts = np.bincount(data.indices, minlength=data.n_items)
        sums = np.bincount(data.indices, data.values, data.n_items)
        return np.where(counts > 0, sums / np.maximum(counts, 1), self.mean_)

    def _offsets_of_users(self, data: Ratings) -> Float64Array:
        above = data.values - self.item_means_[data.indices]
        counts = np.bincount(data.rows, minlength=data.n_users)
        return np.bincount(data.rows, above, data.n_users) / np.maximum(counts, 1)

    def _above_fill(self, data: Ratings) -> csr_array:
        """Return what the ratings are above that which a gap would be filled with."""
        rest = data.values - self.item_means_[data.indices] - self.user_offsets_[data.rows]
        shape = (data.n_users, data.n_items)
        return csr_array((rest, data.indices, data.indptr), shape=shape)

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "n_factors", int, 1)
        as_generator(self.random_state)


@dataclass(frozen=True, eq=False)
class FilledMatrix:
    """A sparse matrix plus the sums of a number for each column and one for each row.

    Rows of products do not depend on the other rows: they are not matrix products of BLAS.
    """

    rest: csr_array
    columns: Float64Array
    rows: Float64Array

    def times(self, right: FloatArray) -> Float64Array:
        """Return the product with a matrix."""
        common = np.einsum("m,md->d", self.columns, right)
        return self.rest @ right + common + self.rows[:, None] * right.sum(axis=0)

    def transposed_times(self, left: FloatArray) -> Float64Array:
        """Return the product of the transposed matrix with another."""
        common = np.einsum("n,nd->d", self.rows, left)
        return self.rest.T @ left + common + self.columns[:, None] * left.sum(axis=0)

    def toarray(self) -> Float64Array:
        """Return the whole matrix, for small ones."""
        return self.rest.toarray() + self.columns + self.rows[:, None]


def right_vectors(filled: FilledMatrix, n: int) -> Float64Array:
    """Return the right singular vectors of the largest singular values, as columns.

    There are n columns; beyond the rank of the matrix they are zeros, because no direction is
    better than another there.
    """
    shape = filled.rest.shape
    if not any(part.any() for part in (filled.rest.data, filled.columns, filled.rows)):
        return np.zeros((shape[1], n))  # an iteration has no vector to go on with
    found: Array
    if min(shape) <= max(SMALL_SIDE, 2 * n) and np.prod(shape, dtype=float) <= SMALL_CELLS:
        _, sizes, found = np.linalg.svd(filled.toarray(), full_matrices=False)
    elif min(shape) <= n + 1:  # too few for an iteration, and few enough to multiply with
        wide = shape[0] < shape[1]
        unit = np.eye(min(shape))
        whole = filled.transposed_times(unit).T if wide else filled.times(unit)
        _, sizes, found = np.linalg.svd(whole, full_matrices=False)
    else:
        sizes, found = _iterated(filled, n)
    vectors = np.zeros((shape[1], n))
    kept = np.flatnonzero(sizes[:n] > NEGLIGIBLE * sizes.max(initial=0.0))
    vectors[:, : len(kept)] = found[kept].T
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(n)])
    return vectors * signs


def _iterated(filled: FilledMatrix, n: int) -> tuple[Float64Array, Float64Array]:
    """Return the largest singular values, in descending order, and their right vectors."""
    from scipy.sparse.linalg import LinearOperator, svds

    operator = LinearOperator(
        filled.rest.shape,
        matvec=lambda x: filled.times(x.reshape(-1, 1))[:, 0],
        rmatvec=lambda x: filled.transposed_times(x.reshape(-1, 1))[:, 0],
        matmat=filled.times,
        rmatmat=filled.transposed_times,
        dtype=np.float64,
    )
    # The same start every time, near the largest vector of positive ratings.  Not the ones: where
    # all rows or columns sum to zero, the matrix takes these to zero, and the iteration ends.
    start = np.random.default_rng(0).uniform(0.5, 1.5, min(filled.rest.shape))
    _, sizes, vectors = svds(operator, n, v0=start, return_singular_vectors="vh")
    return sizes[::-1], vectors[::-1]
