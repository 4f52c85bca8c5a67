"""What is known of users and items before a single level is looked at.

Effective factors are ``U + A Y`` and ``V + B X``, with sparse features A of users and B of items
and learned weights Y and X.  The penalty

    reg / 2 (|U|^2 + |V|^2) + 1/2 sum over features f of reg_f (|Y_f|^2 + |X_f|^2)

is a Gaussian prior of the effective factors: rows with much in common are alike beforehand.
Features are who rated what (*implicit*: an item's raters, or a user's items, each weighted
``1/sqrt(number of them)``) and side information (`marginmf.ratings.features`).  Only effective
factors are kept after training; those of new rows follow from them by ridge regression on the same
features (`new_rows.NewRows`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack

from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends.rows import SIDES, Coordinates, FeatureMatrices, Side
from marginmf.ratings.data import Ratings

#: Whose factors are built from who rated what.
Implicit = Literal["items", "users", "both"] | None
IMPLICIT: tuple[Any, ...] = (None, "items", "users", "both")
#: Penalties that are not given, in units of ``reg``, found on ratings held out of training data.
#: Raters: from a half to twice as much is as good.  What many rows share, such as a genre, has a
#: larger part in the loss, and with the penalty of a single row's factors it is fitted too closely.
TIED = {"raters": 1.0, "features": 5.0}
#: Of the singular values that make coordinates: how many iterations, and the strongest damping.
POWER_ITERATIONS, LEAST_DAMPING = 8, 0.01
#: Regressions on features: the relative tolerance, the one where a solver's steps depend on the
#: result, and the most steps.
TOLERANCE, EXACT, MOST_STEPS = 1e-6, 1e-12, 300
#: The weight of the prior, in ratings: the ridge strength where raters are predicted from side
#: information, and how many ratings the expected raters of a new row count for.
FEW_RATINGS = 10.0
#: With this many ratings, a new row is taken as it is.
ENOUGH_RATINGS = 20

TINY = 1e-30


class Penalties(NamedTuple):
    """Whose raters count, and the penalties of weights; None is `TIED` to that of factors."""

    implicit: Implicit = None
    raters: float | None = None
    features: float | None = None

    def sources(self, data: Ratings, side: Side) -> list[str]:
        """Return where features of a side come from."""
        found = {
            "raters": self.implicit in (f"{side}s", "both"),
            "features": data.features(side) is not None,
        }
        return [name for name, there in found.items() if there]


@dataclass(frozen=True, eq=False)
class Prior:
    """What is known of one side's rows: features, each source's last column, counts of ratings."""

    matrix: csr_array
    blocks: dict[str, int]
    penalties: Penalties
    counts: IntArray
    _directions: dict[Any, tuple[Float64Array, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Ratings, side: Side, penalties: Penalties) -> "Prior":
        """Return what some ratings, without their levels, and side information say."""
        names, features = penalties.sources(data, side), data.features(side)
        found = [
            raters(data, side) if features is None or name == "raters" else features.matrix
            for name in names
        ]
        counts = np.diff(data.view(side).indptr)
        ends = np.cumsum([matrix.shape[1] for matrix in found])
        matrix = csr_array((len(counts), 0), dtype=np.float32)
        if found:
            matrix = csr_array(hstack(found, format="csr"))
        return cls(matrix, dict(zip(names, ends.tolist(), strict=True)), penalties, counts)

    def scales(self, reg: float) -> Float64Array:
        """Return the scale of weights that gives them the penalty of factors, for fewer steps."""
        scales, begin = np.empty(self.matrix.shape[1]), 0
        for name, end in self.blocks.items():
            given = getattr(self.penalties, name)
            scales[begin:end] = np.sqrt(1 / TIED[name] if given is None else reg / given)
            begin = end
        return scales

    def means(self, weights: FloatArray) -> FloatArray:
        """Return what features, times some weights, add to factors.

        Rows without ratings are taken to have the raters that rows with the same side information
        have: that an item has no raters yet does not mean that nobody wants it.
        """
        means = np.asarray(self.matrix.astype(weights.dtype) @ weights)
        unrated = np.flatnonzero(self.counts == 0)
        if len(unrated) and "raters" in self.blocks:
            own = self.block("raters")
            parts = self.matrix[:, own].astype(weights.dtype) @ weights[own]
            means[unrated] += self._expected_parts(unrated, parts)
        return means

    def _expected_parts(self, unrated: IntArray, parts: FloatArray) -> Float64Array:
        """Return `shares` of unrated rows times what raters add to rated ones."""
        if "features" not in self.blocks:
            # Not a matrix product: the threads of BLAS would change the rounding.
            return np.einsum("i,ip->p", self._shares_by_count(), parts)
        own, weights = self.block("features"), np.sqrt(self.counts)[:, None]
        scaled = csr_array(self.matrix[:, own].astype(np.float64) * (weights / FEW_RATINGS**0.5))
        solved = scaled.T @ ridge_residuals(scaled, weights * parts, EXACT)
        return self.matrix[unrated][:, own] @ (solved / FEW_RATINGS**0.5)

    def _shares_by_count(self) -> Float64Array:
        return self.counts / max(int(self.counts.sum()), 1)

    def shares(self, rows: csr_array) -> FloatArray:
        """Return how much each rated row (columns) speaks for the raters of others (rows).

        By ridge regression on side information, where each rating of a row is an observation;
        without side information, by the number of ratings.
        """
        if "features" not in self.blocks:
            return np.tile(self._shares_by_count(), (rows.shape[0], 1)).astype(np.float32)
        own, weights = self.block("features"), np.sqrt(self.counts)
        known = csr_array(self.matrix[:, own] * weights[:, None])
        scales = np.full(known.shape[1], 1 / np.sqrt(FEW_RATINGS))
        found = regression_weights(known, scales, rows[:, own]).T * weights
        return found.astype(np.float32)

    def to_come(self, raters: FloatArray, counts: IntArray, expected: FloatArray) -> FloatArray:
        """Return the raters that new rows may be expected to have in the end.

        The few that a row has are a sample of as many as a rating's row has on average, and are
        drawn towards what is expected as if `FEW_RATINGS` more had come from there, up to
        `ENOUGH_RATINGS`.
        """
        n = counts[:, None].astype(np.float64)
        total = max(int(self.counts.sum()), 1)
        usual = float(np.square((self.counts * np.sqrt(self.counts)).sum() / total))
        larger = np.sqrt(np.maximum(usual / np.maximum(n, 1), 1.0))
        sample = (n * larger * raters + FEW_RATINGS * expected) / (n + FEW_RATINGS)
        share = np.maximum(1.0 - n / ENOUGH_RATINGS, 0.0)
        return share * sample + (1.0 - share) * raters

    def coordinates(self, reg: float) -> Coordinates:
        """Return how the weights lie in a vector, so that solvers take few steps.

        Scaled as above, with the direction damped that all rows have in common: the first singular
        vector of the features, each row weighted by its number of ratings.
        """
        scales = self.scales(reg)
        of_blocks = scales[[end - 1 for end in self.blocks.values()]]
        ratios = tuple((of_blocks / max(float(of_blocks.max(initial=0.0)), 1e-300)).tolist())
        if ratios not in self._directions:
            self._directions[ratios] = common_direction(self.matrix, self.counts, scales)
        return Coordinates(scales, *self._directions[ratios])

    def improved(
        self, weights: FloatArray, factors: FloatArray, reg: float, n_steps: int
    ) -> FloatArray:
        """Return weights nearer to those of a ridge regression of factors on these features.

        Those have the smallest penalty of all.  Rows without ratings have no part in it.
        """
        scales = self.scales(reg).astype(factors.dtype)[:, None]
        matrix, rated = self.matrix.astype(factors.dtype), self.counts > 0
        if not rated.all():
            matrix, factors = matrix[rated], factors[rated]
        x = np.divide(weights, scales, out=np.zeros_like(weights), where=scales > 0)
        residuals = scales * (matrix.T @ (factors - matrix @ (scales * x))) - x

        def image(y: FloatArray) -> FloatArray:
            return y + scales * (matrix.T @ (matrix @ (scales * y)))

        return scales * (x + conjugate_gradients(image, residuals, n_steps))

    def block(self, name: str) -> slice:
        """Return which features are from one source."""
        ends = [0, *self.blocks.values()]
        position = list(self.blocks).index(name)
        return slice(ends[position], ends[position + 1])


class Priors(NamedTuple):
    """What is known of both sides."""

    users: Prior
    items: Prior

    @classmethod
    def of(cls, data: Ratings, penalties: Penalties) -> "Priors | None":
        """Return what is known of both sides; None if nothing is."""
        if not any(penalties.sources(data, side) for side in SIDES):
            return None
        return cls(Prior.of(data, "user", penalties), Prior.of(data, "item", penalties))

    @property
    def features(self) -> FeatureMatrices:
        """The features of both sides."""
        return FeatureMatrices(self.users.matrix, self.items.matrix)

    def coordinates(self, reg: float) -> tuple[Coordinates, Coordinates]:
        """Return how the weights of both sides lie in a vector."""
        return self.users.coordinates(reg), self.items.coordinates(reg)

    def means(self, weights: Sequence[FloatArray]) -> list[FloatArray]:
        """Return what features add to both sides' factors."""
        return [prior.means(own) for prior, own in zip(self, weights, strict=True)]


def raters(data: Ratings, side: Side) -> csr_array:
    """Return who rated each item, or what each user rated, in rows of unit length."""
    rows = data.view(side)
    counts = np.diff(rows.indptr)
    lengths = np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts).astype(np.float32)
    shape = (data.n_users, data.n_items)
    return csr_array(
        (lengths, rows.indices, rows.indptr), shape=shape if side == "user" else shape[::-1]
    )


def common_direction(
    matrix: csr_array, counts: IntArray, scales: Float64Array
) -> tuple[Float64Array, float]:
    """Return the first right singular vector, and the second singular value by the first.

    By a few power iterations of both: the sum of features that are hardly ever negative is near the
    first vector already, and the second value need not be exact.
    """
    n_features = matrix.shape[1]
    if n_features < 2:
        return np.zeros(n_features), 1.0
    turned, scale = csr_array(matrix.T), scales.astype(np.float32)[:, None]
    often = counts.astype(np.float32)[:, None]
    first = scale * (turned @ often)
    both = np.hstack([first, np.random.default_rng(0).standard_normal(first.shape)])
    for _ in range(POWER_ITERATIONS):
        basis, _ = _orthonormal(both)
        both = scale * (turned @ (often * (matrix @ (scale * basis.astype(np.float32)))))
    basis, squares = _orthonormal(both)
    if not squares[0] > 0:
        return np.zeros(n_features), 1.0
    damping = float(np.sqrt(squares[1] / squares[0]))
    return basis[:, 0], min(max(damping, LEAST_DAMPING), 1.0)


def _orthonormal(both: FloatArray) -> tuple[Float64Array, Float64Array]:
    """Return an orthonormal basis of two columns, and their lengths, free of LAPACK's threads."""
    basis, lengths = both.astype(np.float64), np.zeros(2)
    for k in range(2):
        if k == 1:
            basis[:, 1] -= np.einsum("f,f->", basis[:, 0], basis[:, 1]) * basis[:, 0]
        lengths[k] = np.sqrt(np.einsum("f,f->", basis[:, k], basis[:, k]))
        basis[:, k] /= max(lengths[k], TINY)
    return basis, lengths


def regression_weights(known: csr_array, scales: Float64Array, new: Any) -> Float64Array:
    """Return the weight of every known row (rows) in the mean of every new one (columns)."""
    scaled = csr_array(known.astype(np.float64) * scales)
    products = (scaled @ csr_array(new.astype(np.float64) * scales).T).toarray()
    return ridge_residuals(scaled, np.asarray(products), TOLERANCE)


def ridge_residuals(scaled: csr_array, given: Float64Array, tolerance: float) -> Float64Array:
    """Return ``(B B^T + I)^-1`` times what is given, each column by itself."""
    # Here, because kernels are compiled when they are imported.
    from marginmf.backends.labels import sparse_times

    turned, n = csr_array(scaled.T), given.shape[1]
    # To whole vectors of the processor: what is left over is rounded in another way.
    padded = np.pad(given.astype(np.float64), ((0, 0), (0, -n % 4)))
    found = conjugate_gradients(
        lambda y: y + sparse_times(scaled, sparse_times(turned, y)), padded, MOST_STEPS, tolerance
    )
    return np.ascontiguousarray(found[:, :n])


def conjugate_gradients(
    image: Callable[[FloatArray], FloatArray],
    given: FloatArray,
    n_steps: int,
    tolerance: float = 0.0,
) -> FloatArray:
    """Return what a symmetric map takes to the given columns, up to a share of each."""
    residuals, directions, found = given.copy(), given.copy(), np.zeros_like(given)
    squares = _column_products(residuals, residuals)
    enough = tolerance**2 * squares
    for _ in range(n_steps):
        going = squares > enough
        if not going.any():
            break
        images = image(directions)
        curvatures = _column_products(directions, images)
        steps = np.divide(squares, curvatures, out=np.zeros_like(squares), where=going)
        found += steps * directions
        residuals -= steps * images
        before, squares = squares, _column_products(residuals, residuals)
        squares = np.where(going, squares, before)
        ratios = np.divide(squares, before, out=np.zeros_like(squares), where=going)
        directions = residuals + ratios * directions
    return found


def _column_products(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the inner product of every two columns, with rounding that no other column changes."""
    return np.ascontiguousarray((a * b).T).sum(axis=1)
