"""Gaussian processes over positions of items: one for each user, or for each block of a user's."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from marginmf._utils.saved import are_row_ends, counts, floats, indices, saved
from marginmf._utils.types import Float64Array, IntArray
from marginmf.ratings.data import Ratings
from marginmf.ratings.ids import IdIndex

#: How much of a step the next one repeats.
MOMENTUM = 0.9
#: Below this noise a covariance may have no Cholesky factor in floating point.
LEAST_NOISE = 1e-3


class Covariance(NamedTuple):
    """The parameters of ``k(x, y) = signal exp(-width/2 |x - y|^2) + bias + noise [x is y]``."""

    width: float
    signal: float
    bias: float
    noise: float

    def factorised(self, points: Float64Array) -> Float64Array:
        """Return the Cholesky factor of points' covariance, with ``L[i, k]`` at ``k, i``."""
        from scipy.linalg.lapack import dpotrf

        from marginmf.backends.cpu.epochs import fill_covariance

        matrix = np.empty((points.shape[1],) * 2)
        fill_covariance(points, *self, matrix, matrix)
        # LAPACK counts rows first, so its lower triangle is our upper one: nothing is copied.
        factor, failed = dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
        _check_factor(failed)
        return factor.T


@saved
@dataclass(frozen=True, eq=False)
class GivenRatings:
    """What users' functions are conditioned on: where they have ratings, and what these weigh.

    User ``i`` has the entries ``indptr[i]:indptr[i + 1]``; entry k is a rating at ``positions`` of
    ``indices[k]``.  ``weights`` are ``K^-1 z`` for the covariance K and the standardised ratings z
    of a block.  A user's ratings are in as few blocks as their size allows, dealt out one by one.
    Positions are those which the items had when the user was learned.
    """

    _saved: ClassVar[dict[str, Any]] = {
        "positions": floats("points", "factors"),
        "indptr": counts("users + 1"),
        "indices": indices("entries", along="points"),
        "weights": floats("entries"),
    }
    positions: Float64Array
    indptr: IntArray
    indices: IntArray
    weights: Float64Array

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        if not are_row_ends(self.indptr, len(self.indices)):
            yield " are not divided among the users"

    def block(self, entries: slice) -> tuple[Float64Array, Float64Array]:
        """Return the positions, a row for each coordinate, and the weights of some entries."""
        points = np.ascontiguousarray(self.positions[self.indices[entries]].T)
        return points, np.ascontiguousarray(self.weights[entries])

    def joined(self, own: IdIndex, other: Self, others: IdIndex, users: IdIndex) -> "GivenRatings":
        """Return what both have together; of users in both, what the other one has."""
        source = np.full(len(users), -1)
        source[users.encode(own.ids)] = np.arange(len(own))
        source[users.encode(others.ids)] = len(own) + np.arange(len(others))
        starts = np.append(self.indptr[:-1], self.indptr[-1] + other.indptr[:-1])[source]
        lengths = np.append(np.diff(self.indptr), np.diff(other.indptr))[source]
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        entries = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
        both = np.append(self.indices, len(self.positions) + other.indices)[entries]
        # Most positions are in both: once is enough.
        positions = np.concatenate([self.positions, other.positions])
        used, first = np.unique(both, return_inverse=True)
        distinct, which = np.unique(positions[used], axis=0, return_inverse=True)
        weights = np.append(self.weights, other.weights)[entries]
        indices = which.reshape(-1)[first].astype(np.int32)
        return GivenRatings(distinct, indptr.astype(np.int64), indices, weights)


def blocks_of(indptr: IntArray, user: int, size: int) -> list[slice]:
    """Return a user's entries in as few blocks as the size allows, dealt out one by one.

    >>> blocks_of(np.array([0, 2, 7]), 1, 3)
    [slice(2, 7, 2), slice(3, 7, 2)]
    """
    first, last = int(indptr[user]), int(indptr[user + 1])
    n = -(-(last - first) // size)
    return [slice(first + k, last, n) for k in range(n)]


def _check_factor(failed: int) -> None:
    if failed:
        raise FloatingPointError(
            "A covariance has no Cholesky factor: the positions have gone astray. Lower "
            "learning_rate or parameter_rate."
        )


class Committee(NamedTuple):
    """What a user's blocks predict together, of standardised ratings without noise.

    Several blocks, each of which knows the prior too, are combined by precisions: those of all
    blocks, less that of the prior for all but one (a Bayesian committee machine).  Without
    variances, those of a single block are not found and are zero.
    """

    means: Float64Array
    variances: Float64Array
    #: By the coordinates of the points; empty unless wanted.
    mean_slopes: Float64Array
    variance_slopes: Float64Array

    @classmethod
    def of(
        cls,
        given: GivenRatings,
        blocks: Sequence[slice],
        covariance: Covariance,
        points: Float64Array,
        spread: bool = True,
        slopes: bool = False,
    ) -> "Committee":
        """Return the predictions at some points."""
        from marginmf.backends.cpu.epochs import predict_points, predictive_slopes

        prior, found = covariance.signal + covariance.bias, []
        for entries in blocks:
            positions, weights = given.block(entries)
            alone = not spread and len(blocks) == 1
            factor = np.empty((0, 0)) if alone else covariance.factorised(positions)
            means, variances = np.empty(len(points)), np.zeros(len(points))
            about = positions, factor, weights, *covariance[:3], points
            predict_points(*about, means, variances)
            changes = np.empty((len(points) if slopes else 0, 2, points.shape[1]))
            if slopes:
                predictive_slopes(*about, changes)
            variances = np.maximum(variances, 1e-9) if spread or len(blocks) > 1 else variances
            found.append(cls(means, variances, changes[:, 0], changes[:, 1]))
        if len(found) == 1:
            return found[0]
        nothing = np.zeros((len(points) if slopes else 0, points.shape[1]))
        if not found:
            zeros = np.zeros(len(points))
            return cls(zeros, zeros + prior, nothing, nothing)
        precision = (
            np.sum([1.0 / one.variances for one in found], axis=0) - (len(found) - 1) / prior
        )
        weighted = np.sum([one.means / one.variances for one in found], axis=0)
        means = weighted / precision
        if not slopes:
            return cls(means, 1.0 / precision, nothing, nothing)
        of_precision, of_weighted = nothing, nothing
        for one in found:
            square = (one.variances**2)[:, None]
            of_precision = of_precision - one.variance_slopes / square
            own = one.mean_slopes / one.variances[:, None]
            of_weighted = of_weighted + own - one.means[:, None] * one.variance_slopes / square
        by_mean = (of_weighted - means[:, None] * of_precision) / precision[:, None]
        return cls(means, 1.0 / precision, by_mean, -of_precision / (precision**2)[:, None])


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Minus the log-likelihood of standardised ratings, a Gaussian process for each block.

    Points are the positions of all items, then the logarithms of the four parameters.
    """

    n_items: int
    blocks: list[tuple[IntArray, Float64Array]]
    rates: Float64Array

    @classmethod
    def of(
        cls,
        data: Ratings,
        targets: Float64Array,
        block_size: int,
        n_factors: int,
        rates: tuple[float, float],
    ) -> "Likelihood":
        """Return the likelihood of these ratings in such blocks."""
        blocks: list[tuple[IntArray, Float64Array]] = []
        for user in range(data.n_users):
            for entries in blocks_of(data.indptr, user, block_size):
                own = np.ascontiguousarray(targets[entries])
                blocks.append((data.indices[entries].astype(np.int64), own))
        lengths = np.full(data.n_items * n_factors + 4, rates[0])
        lengths[-4:] = rates[1]
        return cls(data.n_items, blocks, lengths)

    def split(self, point: Float64Array) -> tuple[Float64Array, Covariance]:
        """Return the positions, as a view, and the parameters."""
        signal, width, bias, noise = np.exp(point[-4:]).tolist()
        return point[:-4].reshape(self.n_items, -1), Covariance(width, signal, bias, noise)

    def __call__(self, point: Float64Array) -> tuple[float, None]:
        """Return the objective; the gradient is found block by block."""
        from scipy.linalg.lapack import dpotrs

        positions, covariance = self.split(point)
        total = 0.0
        for items, targets in self.blocks:
            factor = covariance.factorised(np.ascontiguousarray(positions[items].T))
            weights = dpotrs(factor.T, targets, lower=1)[0]
            total += _minus_log(targets, weights, factor)
        return total, None

    def epoch(
        self, order: IntArray, point: Float64Array, memory: Sequence[Float64Array], n_epochs: int
    ) -> float:
        """Take a step for every block, in this order; return the objective met on the way."""
        (velocity,), total = memory, 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # the objective tells of these
            for number in order:
                velocity *= MOMENTUM
                value, items, slopes, own = self.slopes_of(point, int(number))
                # The momentum moves every item; the new part is of those in the block.
                velocity[:-4].reshape(self.n_items, -1)[items] += self.rates[0] * slopes
                velocity[-4:] += self.rates[-4:] * own
                point += velocity
                point[-1] = max(point[-1], np.log(LEAST_NOISE))
                total += value
        return total

    def slopes_of(
        self, point: Float64Array, number: int
    ) -> tuple[float, IntArray, Float64Array, Float64Array]:
        """Return a block's objective, its items, and the slopes of its log-likelihood."""
        from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

        from marginmf.backends.cpu.epochs import covariance_slopes, fill_covariance

        positions, covariance = self.split(point)
        items, targets = self.blocks[number]
        points = np.ascontiguousarray(positions[items].T)
        rbf, matrix = np.empty((2, len(items), len(items)))
        fill_covariance(points, *covariance, rbf, matrix)
        factor, failed = dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
        _check_factor(failed)
        weights = dpotrs(factor, targets, lower=1)[0]
        value = _minus_log(targets, weights, factor)
        inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
        slopes, sums = np.empty_like(points), np.empty(4)
        covariance_slopes(points, covariance.width, rbf, inverse.T, weights, slopes, sums)
        width, _, bias, noise = covariance
        scales = np.array([1.0, -0.5 * width, bias, noise])
        return value, items, slopes.T, scales * sums


def _minus_log(targets: Float64Array, weights: Float64Array, factor: Float64Array) -> float:
    """Return minus the log-density of standardised ratings."""
    about = np.einsum("n,n->", targets, weights) + len(targets) * np.log(2 * np.pi)
    return float(0.5 * about + np.log(np.diagonal(factor)).sum())
