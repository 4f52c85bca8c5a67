"""OneClassMMMF: max-margin factorisation of who has what.

With pairs of one kind only, large scores everywhere would fit them all; what stands against that is
a pull of all scores towards zero.  The sum of all squared scores is ``trace(U^T U V^T V)``, so that
it costs two small matrices (Hu, Koren and Volinsky, "Collaborative filtering for implicit feedback
datasets", ICDM 2008).
"""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from marginmf._utils.parameters import check_number, n_threads
from marginmf._utils.random import as_generator
from marginmf._utils.saved import TRAINING, floats
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends import Backend, get_backend
from marginmf.backends.rows import Rows
from marginmf.backends.specs import TwoLevel
from marginmf.backends.threads import one_blas_thread
from marginmf.losses import smooth_hinge
from marginmf.ratings.data import Ratings
from marginmf.ratings.fitting.objective import RowObjective, solve_rows
from marginmf.ratings.fitting.stages import random_factors
from marginmf.ratings.lists.recommend import SimilarByFactors
from marginmf.ratings.lists.relevance import block_product
from marginmf.ratings.lists.search import ItemScores
from marginmf.ratings.positive import POSITIVE, ROUNDING, PositiveOnly
from marginmf.solvers import LBFGS, Stopping, minimise

#: What is asked of the score of a pair that is there: a margin of one above zero.
SPEC = TwoLevel(smooth_hinge)


def row_strengths(reg: float, weight: float, indptr: IntArray, n_columns: int) -> Float64Array:
    """Return how strongly the factors of rows are drawn to zero: the more pairs, the more."""
    return reg * np.sqrt(np.diff(indptr) + weight * n_columns)


class OneClassObjective:
    """The objective of `OneClassMMMF`, as a function of one parameter vector of the CPU backend."""

    def __init__(
        self,
        taken: Ratings,
        n_factors: int,
        reg: float,
        weight: float,
        n_threads: int = 1,
        dtype: Any = np.float32,
    ) -> None:
        from marginmf.backends.cpu.backend import CpuBackend

        self.backend = CpuBackend(n_threads)
        shape = (taken.n_items, n_factors)
        # The penalties are different from row to row, and so are added here.
        self.resident = self.backend.place(as_upper(taken), SPEC, 0.0, shape, dtype)
        self.weight = weight
        sides = ((taken.indptr, taken.n_items), (taken.item_indptr, taken.n_users))
        self.strengths = [row_strengths(reg, weight, *side)[:, None] for side in sides]

    def join(self, users: FloatArray, items: FloatArray) -> Any:
        """Return one parameter vector."""
        return self.resident.layout.join((users, items, np.empty((len(users), 0))))

    def split(self, point: Any) -> tuple[FloatArray, FloatArray]:
        """Return the factors of users and of items."""
        users, items, _ = self.resident.layout.split(point)
        return np.ascontiguousarray(users), np.ascontiguousarray(items)

    def __call__(self, point: Any) -> tuple[float, Any]:
        """Return the value and the gradient at a point."""
        value, gradient = self.backend.gradient(self.resident, point)
        sides = self.resident.layout.padded(point)[:2]
        by_sides = self.resident.layout.padded(gradient)[:2]
        with one_blas_thread():  # so that threads do not change the rounding
            grams = [gram(side) for side in sides]
            value += 0.5 * self.weight * float((grams[0] * grams[1]).sum())
            for own, by_own, others, strengths in zip(
                sides, by_sides, grams[::-1], self.strengths, strict=True
            ):
                by_own += own @ (self.weight * others).astype(own.dtype)
                by_own += strengths.astype(own.dtype) * own
                value += 0.5 * float(strengths[:, 0] @ np.einsum("ip,ip->i", own, own))
        return value, gradient


class NewUsers(RowObjective):
    """The objective of single users, whose scores ``weight/2 u^T V^T V u`` pulls to zero."""

    def __init__(
        self,
        rows: Rows,
        items: FloatArray,
        weight: float,
        strengths: Float64Array,
        backend: Backend,
    ) -> None:
        super().__init__(rows, SPEC, 0.0, items, backend)
        self.strengths = strengths
        self.weighted_gram = (weight * gram(items)).astype(items.dtype)

    def take(self, which: IntArray) -> Self:
        """Return the objective of some rows."""
        some = super().take(which)
        some.strengths = self.strengths[which]
        return some

    def __call__(self, points: FloatArray) -> tuple[Float64Array, FloatArray]:
        """Return the value of every row, and the gradient by every row."""
        losses, by_factors = super().__call__(points)
        # Not a matrix product: BLAS rounds a row as its neighbours make it.
        pulled = np.einsum("ip,pq->iq", points, self.weighted_gram)
        pulled += self.strengths[:, None].astype(points.dtype) * points
        return losses + 0.5 * np.einsum("ip,ip->i", points, pulled), by_factors + pulled


def as_upper(taken: Ratings) -> Ratings:
    """Return who has what as ratings at the upper of two levels."""
    codes = np.ones(len(taken), np.int16)
    return replace(taken, levels=np.array([0.0, 1.0]), codes=codes, exact=None)


def gram(factors: FloatArray) -> Float64Array:
    """Return the inner products of the columns, in float64: they are sums over many rows."""
    wide = factors.astype(np.float64)
    return wide.T @ wide


@POSITIVE.register("oneclass")
@dataclass(eq=False, repr=False)
class OneClassMMMF(SimilarByFactors, PositiveOnly):
    """Max-margin matrix factorisation of who has what.

    Minimises ::

        sum over the pairs that are there of h(x_ij)
          + weight/2  sum over all pairs of x_ij^2
          + 1/2  sum over users of r_i |u_i|^2  +  1/2  sum over items of s_j |v_j|^2

    where ``x_ij = u_i . v_j`` is the score, h the smooth hinge, which is zero from a margin of 1
    on, and ``r_i = reg sqrt(n_i + weight n_items)`` with n_i the number of items that user i has;
    s_j is the same of the users who have item j.

    Parameters
    ----------
    n_factors : int
        The rank of the factorisation, or as many as there are users or items if those are fewer.
    reg : float
        The regularisation strength.
    weight : float
        How much a pair that is absent counts, where one that is there counts 1.
    max_iter, tol
        When to stop: after this many iterations, or when one of them (on the average of the last
        three) lowers the objective by less than this share of it.
    random_state : int, Generator or None
        Seeds the start.

    Attributes
    ----------
    user_factors_, item_factors_ : array
        The factors, a row for each of ``users_.ids`` and ``items_.ids``.
    history_, n_iter_, n_evaluations_, stop_reason_
        As for the factorisers.

    Examples
    --------
    >>> pairs = [(user, item) for user in range(20) for item in range(20) if (user + item) % 2]
    >>> model = OneClassMMMF(n_factors=2, reg=0.1).fit([pair for pair in pairs if pair != (0, 1)])
    >>> model.recommend(0, n=1)["item"].tolist()
    [1]
    """

    n_factors: int = 128
    _: KW_ONLY
    reg: float = 0.35
    weight: float = 0.3
    level: float | None = None
    max_iter: int = 100
    tol: float = 1e-4
    random_state: Any = 0
    n_jobs: int | None = None

    _saved: ClassVar[dict[str, Any]] = {
        **TRAINING,
        "user_factors_": floats("users", "factors"),
        "item_factors_": floats("items", "factors"),
    }

    def _fit(self, taken: Ratings) -> None:
        rank = min(int(self.n_factors), taken.n_users, taken.n_items)
        threads = n_threads(self.n_jobs)
        objective = OneClassObjective(taken, rank, self.reg, self.weight, threads)
        rng = as_generator(self.random_state)
        sizes = taken.n_users, taken.n_items
        start = [random_factors(rng, n, rank, np.float32) for n in sizes]
        stopping = Stopping(max_iter=self.max_iter, tol=self.tol)
        result = minimise(
            LBFGS(), objective, objective.join(*start), stopping, vectors=objective.backend
        )
        self.user_factors_, self.item_factors_ = objective.split(result.point)
        self.history_, self.n_iter_ = result.history, result.n_iter
        self.n_evaluations_, self.stop_reason_ = result.n_evaluations, str(result.reason)

    def _fold_in(self, taken: Ratings) -> None:
        strengths = row_strengths(self.reg, self.weight, taken.indptr, taken.n_items)
        objective = NewUsers(
            as_upper(taken), self.item_factors_, self.weight, strengths, get_backend("cpu")
        )
        self.user_factors_, _ = solve_rows(objective, n_threads(self.n_jobs))

    def _scores(self, items: IntArray | None) -> ItemScores:
        given = self.item_factors_ if items is None else self.item_factors_[items]
        return _Products(self.user_factors_, given, self._arithmetic())

    def _arithmetic(self) -> Backend:
        return get_backend("cpu", n_threads(self.n_jobs))

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "n_factors", int, 1)
        check_number(self, "reg", float, 0)
        check_number(self, "weight", float, 0)
        check_number(self, "max_iter", int, 1)
        check_number(self, "tol", float, 0)


class _Products:
    """Inner products of factors."""

    cell_bytes = 4

    def __init__(self, users: FloatArray, items: FloatArray, backend: Backend) -> None:
        self.users, self.items, self.backend = users, items, backend
        longest = (np.sqrt(np.einsum("ip,ip->i", F, F).max(initial=0)) for F in (users, items))
        self.tolerance = ROUNDING * float(np.prod(list(longest)))

    def block(self, users: IntArray, columns: slice) -> Any:
        return (block_product(self.users[users], self.items[columns]),) * 2

    def pairs(self, users: IntArray, columns: IntArray) -> Any:
        return (self.backend.scores(users, columns, self.users, self.items).astype(float),) * 2
