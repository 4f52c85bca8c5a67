"""MarginEnsemble: many small factorisations, and one distribution over the levels from them all."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from typing import Any, Literal, Self

import numpy as np
from scipy.special import logit
from sklearn.base import clone

from marginmf._parameters import check_number
from marginmf._threads import n_threads
from marginmf._typing import Float64Array, FloatArray, IntArray
from marginmf.progress import Report, progress_bar
from marginmf.ratings.base import RatingsEstimator
from marginmf.ratings.baselines import ALS, PMF, BiasOnly
from marginmf.ratings.blocks import Columns, as_stages
from marginmf.ratings.calibration import Calibrator, features_of
from marginmf.ratings.data import Ratings
from marginmf.ratings.expected import MarginBlock
from marginmf.ratings.fallback import LevelFrequencies
from marginmf.ratings.hmf import HMF
from marginmf.ratings.holdout import HeldOut
from marginmf.ratings.mmmf import MMMF
from marginmf.ratings.pmmmf import PMMMF
from marginmf.ratings.rows import Side

#: Members by name.  Averaging does most of what a strong penalty does for one factorisation
#: alone, so these are weakly regularised; then the choice hardly matters.
MEMBERS: Mapping[str, Callable[[int], RatingsEstimator]] = {
    "mmmf": lambda rank: MMMF(rank, 3.0, tol=3e-3),
    "hmf": lambda rank: HMF(rank, 5.0),
    "pmmmf": lambda rank: PMMMF(rank, 20.0, tol=3e-3),
    "als": lambda rank: ALS(rank, 10.0, bias=True),
    "pmf": lambda rank: PMF(rank, 10.0, bias=True, tol=3e-3),
    "bias": lambda rank: BiasOnly(),
}

#: Ratings are dealt into so many parts; each bag leaves one of them out.
FOLDS = 10

#: One factor for so many ratings a user and item, between these bounds.
RATINGS_A_FACTOR, FEWEST_FACTORS, MOST_FACTORS = 4, 4, 32


Members = list[list[RatingsEstimator]]


@dataclass(eq=False, repr=False)
class MarginEnsemble(RatingsEstimator):
    """Margins of several factorisers, averaged and combined into probabilities.

    For every level, the margins of all kinds of members and the log-odds of the user's and the
    item's own ratings are combined by a logistic regression, fitted to ratings that the margins
    were not learned from.  The members are small and weakly regularised, and there are many of
    them, because averages of such vary far less than each.  Its rule is the median, the best
    answer for the mean absolute error; `predict` has others.

    Parameters
    ----------
    members : sequence of str or estimator
        The kinds of members: ``"mmmf"``, ``"hmf"``, ``"pmmmf"``, ``"als"``, ``"pmf"``,
        ``"bias"``, or unfitted estimators of your own.
    ensemble : {"bagging", "seeds"}
        How the members of a kind differ.  Bagging: each leaves out one tenth of the ratings, and
        every rating's margins come from the members that have not seen it.  Seeds: by their
        random starts alone; a tenth of the ratings is held out for the combination, and then the
        members are fitted again to everything.
    n_estimators : int
        How many members of each kind.
    n_factors : int or "auto"
        The rank of members given by name.  Auto: one factor for every four ratings that a user or
        item has on average, from 4 to 32.
    random_state : int, Generator or None
        Seeds the bags and the members.
    n_jobs : int or None
        Members that are fitted side by side: None is one, -1 is one for each core.  The result
        does not depend on it.
    verbose : int
        1 shows a progress bar on standard error.

    Attributes
    ----------
    members_ : list of list of estimator
        The fitted members of every kind.
    users_, items_, levels_, ratings_
        As for the factorisers.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> model = MarginEnsemble(n_estimators=4, random_state=0).fit(data.pairs, data.ratings)
    >>> model.predict_proba(data.pairs[:2]).shape, len(model.members_[0])
    ((2, 5), 4)
    """

    members: Sequence[str | RatingsEstimator] = ("mmmf", "hmf")
    _: KW_ONLY
    ensemble: Literal["bagging", "seeds"] = "bagging"
    n_estimators: int = 30
    n_factors: int | Literal["auto"] = "auto"
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    _user_arrays = ()
    _item_arrays = ()

    def _fit(self, data: Ratings) -> None:
        rng = self._journal.generator("bags", self.random_state)
        kinds = self._kinds(data)
        seeds = rng.integers(2**31, size=(self.n_estimators, len(kinds)))
        bagging = self.ensemble == "bagging"
        members: Members = [[] for _ in kinds]
        features, codes = [], []
        with progress_bar(
            type(self).__name__, seeds.size * (2 - bagging), bool(self.verbose)
        ) as report:
            for held_out, own in self._hold_outs(data, seeds, rng):
                fitted = self._fitted(held_out.train, kinds, own, report, "held out")
                # What a rating's margins are when it has not been seen.
                frequencies = LevelFrequencies.of(held_out.train)
                margins = self._mean_margins(fitted, held_out.users, held_out.items)
                features.append(features_of(margins, frequencies, held_out.users, held_out.items))
                codes.append(held_out.codes)
                for kind, more in zip(members, fitted, strict=True):
                    kind.extend(more)
            self.members_ = members if bagging else self._fitted(data, kinds, seeds, report, "")
        self._calibrator = Calibrator.fit(np.vstack(features), np.concatenate(codes), data.n_levels)

    def _hold_outs(
        self, data: Ratings, seeds: IntArray, rng: np.random.Generator
    ) -> Iterator[tuple[HeldOut, IntArray]]:
        """Yield what is held out from whom: the seeds of the members that do not see it."""
        if self.ensemble == "seeds":
            yield HeldOut.at_random(data, rng), seeds
            return
        n_parts = min(FOLDS, len(data))
        part = rng.permutation(len(data)) % n_parts
        for k in range(min(n_parts, self.n_estimators)):
            yield HeldOut.of(data, part == k), seeds[k::n_parts]

    def _fitted(
        self,
        data: Ratings,
        kinds: Sequence[RatingsEstimator],
        seeds: IntArray,
        report: Report,
        scope: str,
    ) -> Members:
        """Fit a member of every kind for every row of seeds, side by side."""

        def fitted(place: tuple[int, int]) -> RatingsEstimator:
            member: RatingsEstimator = clone(kinds[place[1]])
            params = member.get_params(deep=False)
            if "random_state" in params:
                member.set_params(random_state=int(seeds[place]))
            name = f"{type(member).__name__} {place[1]} {seeds[place]} {scope}".strip()
            if "callbacks" in params:
                member.set_params(callbacks=[*params["callbacks"], *report(name)])
            member = member._learned(data, self._journal.scope(name))
            if "callbacks" in params:
                member.set_params(callbacks=params["callbacks"])
            member._share(self)  # the ratings of a bag need not stay
            return member

        places = list(np.ndindex(seeds.shape))
        found = self._journal.side_by_side(fitted, places, n_threads(self.n_jobs))
        return [found[kind :: len(kinds)] for kind in range(len(kinds))]

    def _mean_margins(
        self, members: Members, users: IntArray, items: IntArray
    ) -> list[Float64Array]:
        """Return the margins of every kind of members, averaged over those of the kind."""
        bound, means = self._margin_bound, []
        for kind in members:
            total = np.zeros((len(users), len(self.levels_) - 1))
            for member in kind:
                total += np.clip(member._margins(users, items), -bound, bound)
            means.append(total / len(kind))
        return means

    @property
    def _margin_bound(self) -> float:
        """What margins are clipped to before they are averaged.

        Infinite ones of opposite signs have no mean; all others are far smaller than this.
        """
        return 10.0 + float(np.ptp(self.levels_))

    def _place(self, side: Side, data: Ratings) -> None:
        self.members_ = [[member._placed(side, data) for member in kind] for kind in self.members_]
        self._share_ratings()

    def _joined(self, placed: Self, side: Side, data: Ratings) -> Self:
        joined = super()._joined(placed, side, data)
        joined.members_ = [
            [ours._joined(theirs, side, data) for ours, theirs in zip(*kinds, strict=True)]
            for kinds in zip(self.members_, placed.members_, strict=True)
        ]
        joined._share_ratings()
        return joined

    def _share_ratings(self) -> None:
        """Let the members have our ratings, of which one copy is enough."""
        for member in chain(*self.members_):
            member._share(self)

    def _above(self, users: IntArray, items: IntArray) -> Float64Array:
        assert self._calibrator is not None
        margins = self._mean_margins(self.members_, users, items)
        return self._calibrator.above(features_of(margins, self._frequencies, users, items))

    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        log_odds: FloatArray = logit(self._above(users, items))
        return log_odds

    def _margin_block(self, users: IntArray, items: Columns) -> MarginBlock:
        n_steps, bound = len(self.levels_) - 1, self._margin_bound
        scores, offsets = [], []
        for kind in self.members_:
            score: Any = np.float32(0)
            offset: Any = np.zeros((len(users), n_steps))
            for member in kind:
                block = member._margin_block(users, items)
                if not np.isfinite(block.offsets).all():
                    margins = block.scores + block.offsets.T[:, :, None].astype(np.float32)
                    block = MarginBlock(np.clip(margins, -bound, bound), 0 * offset)
                score, offset = score + block.scores, offset + block.offsets
            mean = score / np.float32(len(kind))
            scores.append(np.broadcast_to(mean, (n_steps, *mean.shape[1:])))
            offsets.append(offset / len(kind))
        return MarginBlock(np.concatenate(scores), np.hstack(offsets))

    @property
    def user_factors_(self) -> FloatArray:
        """The factors of all members, side by side."""
        return self._stacked("user_factors_")

    @property
    def item_factors_(self) -> FloatArray:
        """The factors of all members, side by side."""
        return self._stacked("item_factors_")

    def _stacked(self, name: str) -> FloatArray:
        members = (member for kind in self.members_ for member in kind)
        found = [as_stages(getattr(member, name)) for member in members if hasattr(member, name)]
        if not found:
            raise AttributeError(f"None of the members has {name}.")
        return np.hstack([stage for factors in found for stage in factors])

    def _kinds(self, data: Ratings) -> list[RatingsEstimator]:
        """Return an unfitted member of every kind."""
        wanted = round(len(data) / (data.n_users + data.n_items) / RATINGS_A_FACTOR)
        rank = min(max(wanted, FEWEST_FACTORS), MOST_FACTORS)
        if self.n_factors != "auto":
            rank = self.n_factors
        return [MEMBERS[kind](rank) if isinstance(kind, str) else kind for kind in self.members]

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "n_estimators", int, 1)
        if self.n_factors != "auto":
            check_number(self, "n_factors", int, 1)
        if self.ensemble not in ("bagging", "seeds"):
            raise ValueError(
                f"ensemble={self.ensemble!r} is not known. Choose 'bagging' or 'seeds'."
            )
        if isinstance(self.members, str) or not len(self.members):
            raise ValueError(
                f"members={self.members!r} must be a list of names or estimators, at least one."
            )
        for member in self.members:
            if isinstance(member, str) and member not in MEMBERS:
                raise ValueError(
                    f"The member {member!r} is not known. Choose from {', '.join(MEMBERS)}, or "
                    "give an estimator."
                )
            if isinstance(member, MarginEnsemble):
                raise ValueError("An ensemble cannot be a member of an ensemble: list its members.")
            if not isinstance(member, str | RatingsEstimator):
                raise ValueError(f"The member {member!r} is neither a name nor an estimator.")
        for kind in self._kinds(data):
            kind._check(data)
