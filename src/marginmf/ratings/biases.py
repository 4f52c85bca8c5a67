"""What users and items add to the mean rating: a ridge regression, by conjugate gradients.

The normal equations, with A the matrix that marks the ratings, Du and Di the users' and the items'
counts plus reg, and gu and gi the sums of their ratings' distances from the mean, are

    Du bu + A bi = gu  and  A^T bu + Di bi = gi.

The users are eliminated, bu = Du^-1 (gu - A bi), which halves the number of steps:

    (Di - A^T Du^-1 A) bi = gi - A^T Du^-1 gu.

The preconditioner is Di.  A step lowers the squared error plus penalty by its length times the
product of the two residuals, so no pass over the ratings is spent on that.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from marginmf._utils.types import Float64Array, IntArray
from marginmf.backends.rows import Side
from marginmf.ratings.data import Ratings

#: The share of the first gradient's norm at which biases are exact for every purpose.
GRADIENT_TOL = 1e-9

#: The share at which `fit_biases` ends, and its most steps: for features, six digits will do.
FEATURE_TOL, MAX_STEPS = 1e-6, 50


class BiasStep(NamedTuple):
    """The items' biases after a step, with the objective and the norm of its gradient there."""

    items: Float64Array
    objective: float
    gradient_norm: float


@dataclass(frozen=True, eq=False)
class BiasProblem:
    """Biases of users and items, penalised by reg.

    Parameters
    ----------
    data : Ratings
        What was observed.
    mean : float
        What biases are added to.
    reg : float
        The regularisation strength: as if every user and item had this many more ratings at the
        mean.
    by_user, by_item : array of shape (n_users, n_levels), (n_items, n_levels)
        How often each level was used.
    """

    data: Ratings
    mean: float
    reg: float
    by_user: IntArray
    by_item: IntArray

    def steps(self) -> Iterator[BiasStep]:
        """Yield the start, without any bias, and every step; ends where nothing is left to do."""
        from marginmf.backends.cpu.linear_algebra import add_to_columns, row_sums

        data, entries = self.data, (self.data.indptr, self.data.indices)
        by_user, by_item = self._sums("user"), self._sums("item")
        user_scales, item_scales = self._scales(self.by_user), self._scales(self.by_item)
        norm = 2.0 * float(np.hypot(np.linalg.norm(by_user), np.linalg.norm(by_item)))
        objective = float(self.by_user.sum(axis=0) @ (data.levels - self.mean) ** 2)
        if data.exact is not None:
            objective = float(((data.exact - self.mean) ** 2).sum())
        items = np.zeros(data.n_items)
        yield BiasStep(items, objective, 0.0 if np.isinf(self.reg) else norm)
        if np.isinf(self.reg):  # the start is the minimum
            return
        sums, back = np.empty(data.n_users), np.zeros(data.n_items)
        objective -= float(by_user**2 @ user_scales)
        add_to_columns(*entries, user_scales * by_user, back)
        rest = by_item - back
        direction = scaled = item_scales * rest
        product = float(rest @ scaled)
        while True:
            row_sums(0, data.n_users, *entries, direction, sums)
            back[:] = 0.0
            add_to_columns(*entries, user_scales * sums, back)
            turned = direction / item_scales - back
            curvature = float(direction @ turned)
            if curvature <= 0.0:  # reg=0 leaves shifts undetermined, and nothing but those is left
                return
            step = product / curvature
            items = items + step * direction
            rest = rest - step * turned
            objective = max(objective - step * product, 0.0)
            yield BiasStep(items, objective, 2.0 * float(np.linalg.norm(rest)))
            scaled = item_scales * rest
            before, product = product, float(rest @ scaled)
            direction = scaled + (product / before) * direction

    def users_given(self, items: Float64Array) -> Float64Array:
        """Return the users' biases that suit the items' best."""
        from marginmf.backends.cpu.linear_algebra import row_sums

        sums = np.empty(self.data.n_users)
        row_sums(0, self.data.n_users, self.data.indptr, self.data.indices, items, sums)
        biases: Float64Array = self._scales(self.by_user) * (self._sums("user") - sums)
        return biases

    def _sums(self, side: Side) -> Float64Array:
        """Return every user's, or item's, sum of ratings' distances from the mean."""
        data, counts = self.data, self.by_user if side == "user" else self.by_item
        sums: Float64Array
        if data.exact is None:
            sums = counts @ (data.levels - self.mean)
        else:
            owners = data.rows if side == "user" else data.indices
            sums = np.bincount(owners, data.exact - self.mean, len(counts)).astype(np.float64)
        return sums

    def _scales(self, counts: IntArray) -> Float64Array:
        return inverse_weights(counts.sum(axis=1), self.reg)


def mean_rating(data: Ratings, by_user: IntArray) -> float:
    """Return the mean of all ratings; from counts of the levels, where those are the ratings."""
    if data.exact is not None:
        return float(data.exact.mean()) if len(data) else 0.0
    return float(by_user.sum(axis=0) @ data.levels) / max(len(data), 1)


def fit_biases(problem: BiasProblem) -> tuple[Float64Array, Float64Array]:
    """Return the biases of users and items at the minimum."""
    first, items = None, np.zeros(problem.data.n_items)
    for number, step in enumerate(problem.steps()):
        items, first = step.items, step.gradient_norm if first is None else first
        if step.gradient_norm <= FEATURE_TOL * first or number == MAX_STEPS:
            break
    return problem.users_given(items), items


def biases_given(
    side: Side, data: Ratings, mean: float, reg: float, given: Float64Array
) -> Float64Array:
    """Return one side's biases, with the other side's as they are: damped means of the rest."""
    owners, others, n = data.rows, data.indices, data.n_users
    if side == "item":
        owners, others, n = data.indices, data.rows, data.n_items
    rest = np.bincount(owners, data.values - mean - given[others], n)
    biases: Float64Array = rest * inverse_weights(np.bincount(owners, minlength=n), reg)
    return biases


def inverse_weights(counts: IntArray, reg: float) -> Float64Array:
    """Return one over counts plus reg; without either there is no bias, not 0/0."""
    inverse: Float64Array = 1.0 / np.maximum(counts + float(reg), 1e-12)
    return inverse
