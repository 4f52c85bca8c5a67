"""What is known of users and items without a factorisation: level frequencies and biases."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from marginmf._utils.saved import Optional, counts, floats, saved
from marginmf._utils.types import Float64Array, IntArray
from marginmf.backends.rows import SIDES, Side
from marginmf.ratings.data import Ratings
from marginmf.ratings.ids import IdIndex

#: This many ratings drawn from all ratings are added to those of one user or item.
PRIOR_STRENGTH = 5.0
#: The share of the first gradient's norm at which biases are exact for every purpose.
GRADIENT_TOL = 1e-9
#: The share at which `fit_biases` ends, and its most steps: for features, six digits will do.
FEATURE_TOL, MAX_STEPS = 1e-6, 50


@saved
@dataclass(frozen=True, eq=False)
class LevelFrequencies:
    """How often each level was used: by each user, for each item, and in all.

    Of a pair, the levels that the user gave and those that the item got count, as far as they are
    known, with `PRIOR_STRENGTH` more ratings drawn from all.  The prediction that follows is the
    median. Biases are what each user and each item adds to the mean, damped as the counts are;
    unlike the frequencies, they allow for whom the other side consists of.
    """

    _saved: ClassVar[dict[str, Any]] = {
        "by_user": counts("users", "levels"),
        "by_item": counts("items", "levels"),
        "overall": floats("levels"),
        "mean": Optional(float),
        "user_biases": Optional(floats("users")),
        "item_biases": Optional(floats("items")),
    }
    by_user: IntArray
    by_item: IntArray
    overall: Float64Array
    #: Which side's ids were folded in after training, if one's were: the counts of the other side
    #: are then of ratings that the model does not hold.
    placed: Side | None = None
    mean: float = 0.0
    #: Models that were saved before there were biases have none.
    user_biases: Float64Array | None = None
    item_biases: Float64Array | None = None

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        if self.placed is not None and self.placed not in SIDES:
            yield f".placed is {self.placed!r:.60}, which is no side"
        if (self.user_biases is None) != (self.item_biases is None):
            yield " has biases of one side alone"
        if self.mean is None and self.user_biases is not None:
            yield " has biases without a mean"
        if min(each.min(initial=0) for each in (self.by_user, self.by_item, self.overall)) < 0:
            yield " has counts below zero"

    @classmethod
    def of(cls, data: Ratings) -> "LevelFrequencies":
        """Count the levels of some ratings, and find the biases."""
        counts = data.level_counts("user"), data.level_counts("item")
        overall = counts[0].sum(axis=0).astype(np.float64)
        mean = mean_rating(data, counts[0])
        biases = fit_biases(BiasProblem(data, mean, PRIOR_STRENGTH, *counts))
        return cls(*counts, overall, None, mean, *biases)

    def counts(self, side: Side) -> IntArray:
        """Return how often each level was used by each user, or for each item."""
        return self.by_user if side == "user" else self.by_item

    def biases(self, side: Side) -> Float64Array | None:
        """Return what each user, or each item, adds to the mean."""
        return self.user_biases if side == "user" else self.item_biases

    def distribution(self, users: IntArray, items: IntArray) -> Float64Array:
        """Return the probability of each level for each pair; code -1 means unknown."""
        counts = self._pair_counts(users, items)
        return counts / counts.sum(axis=1, keepdims=True)

    def log_odds(self, users: IntArray, items: IntArray) -> Float64Array:
        """Return the log-odds that the rating is above each level; code -1 means unknown."""
        return _log_odds(self._pair_counts(users, items))

    def side_features(self, side: Side, codes: IntArray) -> Float64Array:
        """Return what a calibration knows of some users, or items: log-odds, then the bias."""
        table, rows = self.features_table(side, codes)
        return table[rows]

    def features_table(self, side: Side, codes: IntArray) -> tuple[Float64Array, IntArray]:
        """Return a table of `side_features`, and the row that each of the codes has in it."""
        counts, biases = self.counts(side), self.biases(side)
        if len(codes) < len(counts):
            counts, biases = counts[codes], None if biases is None else biases[codes]
            codes = np.arange(len(codes))
        table = _log_odds(counts + self._prior)
        return (table if biases is None else np.column_stack([table, biases])), codes

    def _pair_counts(self, users: IntArray, items: IntArray) -> Float64Array:
        counts = np.tile(self._prior, (len(users), 1))
        counts[users >= 0] += self.by_user[users[users >= 0]]
        counts[items >= 0] += self.by_item[items[items >= 0]]
        return counts

    @property
    def _prior(self) -> Float64Array:
        # One more of each level, so that no level is impossible.
        counts = self.overall + 1.0
        return PRIOR_STRENGTH * counts / counts.sum()

    def for_new_rows(self, side: Side, data: Ratings) -> "LevelFrequencies":
        """Return these frequencies with the users, or the items, of other ratings."""
        own: Any = {f"by_{side}": data.level_counts(side)}
        given = self.biases("item" if side == "user" else "user")
        if given is not None:
            own[f"{side}_biases"] = biases_given(side, data, self.mean, PRIOR_STRENGTH, given)
        return replace(self, **own, placed=side)

    def changed(self, before: Ratings, after: Ratings) -> "LevelFrequencies":
        """Return the frequencies when the ratings that the model holds change; all others stay."""
        new = LevelFrequencies.of(after)
        if self.user_biases is None:  # as the calibrator expects it
            new = replace(new, mean=0.0, user_biases=None, item_biases=None)
        if self.placed is None:
            return new
        # Of the side that was given, the counts are of training; the new rows are not in them.
        given: Side = "item" if self.placed == "user" else "user"
        ids = before.index(given), after.index(given)
        kept: Any = {f"by_{given}": _merge_rows(self.counts(given), *ids, new.counts(given))}
        ours, theirs = self.biases(given), new.biases(given)
        if ours is not None and theirs is not None:
            kept[f"{given}_biases"] = _merge_rows(ours, *ids, theirs)
        return replace(self, **kept).for_new_rows(self.placed, after)


def _log_odds(counts: Float64Array) -> Float64Array:
    """Return the log-odds of being above each level but the last, from counts of all levels."""
    above = counts[:, ::-1].cumsum(axis=1)[:, -2::-1]
    below = counts.cumsum(axis=1)[:, :-1]
    return np.log(above) - np.log(below)


def _merge_rows(values: Any, before: IdIndex, after: IdIndex, others: Any) -> Any:
    """Return ``others``, in the order of ``after``, with ``values`` for the ids of ``before``."""
    moved = others.copy()
    moved[after.encode(before.ids)] = values
    return moved


@dataclass(frozen=True, eq=False)
class BiasProblem:
    """What users and items add to the mean rating: a ridge regression, by conjugate gradients.

    With A the matrix that marks the ratings, Du and Di the users' and the items' counts plus reg,
    and gu and gi the sums of their ratings' distances from the mean, the normal equations are

        Du bu + A bi = gu  and  A^T bu + Di bi = gi.

    Eliminating the users, bu = Du^-1 (gu - A bi), halves the number of steps:

        (Di - A^T Du^-1 A) bi = gi - A^T Du^-1 gu, with the preconditioner Di.

    A step lowers the objective by its length times the product of the two residuals, so no pass
    over the ratings is spent on that.  ``by_user`` and ``by_item`` count how often each level was
    used.
    """

    data: Ratings
    mean: float
    reg: float
    by_user: IntArray
    by_item: IntArray

    def steps(self) -> Iterator[tuple[Float64Array, float, float]]:
        """Yield the items' biases, the objective and its gradient's norm, from no bias on."""
        from marginmf.backends.cpu.linear_algebra import add_to_columns, row_sums

        data, entries = self.data, (self.data.indptr, self.data.indices)
        by_user, by_item = self._sums("user"), self._sums("item")
        user_scales, item_scales = self._scales(self.by_user), self._scales(self.by_item)
        norm = 2.0 * float(np.hypot(np.linalg.norm(by_user), np.linalg.norm(by_item)))
        objective = float(self.by_user.sum(axis=0) @ (data.levels - self.mean) ** 2)
        if data.exact is not None:
            objective = float(((data.exact - self.mean) ** 2).sum())
        items = np.zeros(data.n_items)
        yield items, objective, 0.0 if np.isinf(self.reg) else norm
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
            yield items, objective, 2.0 * float(np.linalg.norm(rest))
            scaled = item_scales * rest
            before, product = product, float(rest @ scaled)
            direction = scaled + (product / before) * direction

    def users_given(self, items: Float64Array) -> Float64Array:
        """Return the users' biases that suit the items' best."""
        from marginmf.backends.cpu.linear_algebra import row_sums

        sums = np.empty(self.data.n_users)
        row_sums(0, self.data.n_users, self.data.indptr, self.data.indices, items, sums)
        return self._scales(self.by_user) * (self._sums("user") - sums)

    def _sums(self, side: Side) -> Float64Array:
        """Return every user's, or item's, sum of ratings' distances from the mean."""
        data, counts = self.data, self.by_user if side == "user" else self.by_item
        if data.exact is None:
            return counts @ (data.levels - self.mean)
        owners = data.rows if side == "user" else data.indices
        return np.bincount(owners, data.exact - self.mean, len(counts)).astype(np.float64)

    def _scales(self, counts: IntArray) -> Float64Array:
        return inverse_weights(counts.sum(axis=1), self.reg)


def mean_rating(data: Ratings, by_user: IntArray) -> float:
    """Return the mean of all ratings; from counts of the levels, where those are the ratings."""
    if data.exact is not None:
        return float(data.exact.mean()) if len(data) else 0.0
    return float(by_user.sum(axis=0) @ data.levels) / max(len(data), 1)


def fit_biases(problem: BiasProblem) -> tuple[Float64Array, Float64Array]:
    """Return the biases of users and items at the minimum."""
    first, best = None, np.zeros(problem.data.n_items)
    for number, (items, _, norm) in enumerate(problem.steps()):
        best, first = items, norm if first is None else first
        if norm <= FEATURE_TOL * first or number == MAX_STEPS:
            break
    return problem.users_given(best), best


def biases_given(
    side: Side, data: Ratings, mean: float, reg: float, given: Float64Array
) -> Float64Array:
    """Return one side's biases, with the other side's as they are: damped means of the rest."""
    owners, others, n = data.rows, data.indices, data.n_users
    if side == "item":
        owners, others, n = data.indices, data.rows, data.n_items
    rest = np.bincount(owners, data.values - mean - given[others], n)
    return rest * inverse_weights(np.bincount(owners, minlength=n), reg)


def inverse_weights(counts: IntArray, reg: float) -> Float64Array:
    """Return one over counts plus reg; without either there is no bias, not 0/0."""
    return 1.0 / np.maximum(counts + float(reg), 1e-12)
