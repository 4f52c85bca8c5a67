"""MarginEnsemble: many small factorisations, and one distribution over the levels from them all."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.linalg import block_diag
from scipy.special import logit
from sklearn.base import clone

from marginmf._utils.parameters import check_choice, check_number, n_threads
from marginmf._utils.saved import ListOf
from marginmf._utils.types import BoolArray, Float64Array, FloatArray, IntArray
from marginmf.backends.rows import Side
from marginmf.progress import progress_bar
from marginmf.ratings.base import method
from marginmf.ratings.baselines.least_squares import ALS, PMF, BiasOnly
from marginmf.ratings.data import Ratings
from marginmf.ratings.estimator import RatingsEstimator
from marginmf.ratings.factoriser import Factoriser
from marginmf.ratings.fitting.calibration import Calibrator
from marginmf.ratings.fitting.fallback import LevelFrequencies
from marginmf.ratings.fitting.priors import IMPLICIT, Implicit
from marginmf.ratings.fitting.validation import ValidationSplit
from marginmf.ratings.lists.relevance import Columns, MarginBlock, as_stages
from marginmf.ratings.max_margin import HMF, MMMF, PMMMF
from marginmf.solvers import Callback

#: Members by name: the class, and its settings where factors are built from raters and where they
#: are not.  Averaging does most of what a strong penalty does for one factorisation alone, so
#: members are weakly regularised.
MEMBERS: Mapping[str, tuple[type[RatingsEstimator], dict[str, Any], dict[str, Any]]] = {
    "mmmf": (MMMF, {"reg": 25.0, "tol": 1e-3}, {"reg": 3.0, "tol": 3e-3}),
    "hmf": (HMF, {"reg": 12.0}, {"reg": 5.0}),
    "pmmmf": (PMMMF, {"reg": 40.0, "tol": 1e-3}, {"reg": 20.0, "tol": 3e-3}),
    "als": (ALS, {"reg": 25.0, "bias": True}, {"reg": 10.0, "bias": True}),
    "pmf": (
        PMF,
        {"reg": 25.0, "bias": True, "tol": 1e-3},
        {"reg": 10.0, "bias": True, "tol": 3e-3},
    ),
    "bias": (BiasOnly, {}, {}),
}
#: The regularisation strength of raters' weights, in members given by name.
REG_IMPLICIT = 30.0
#: Ratings are divided into this many parts, again and again; each bag leaves one of them out.
FOLDS = 10
#: Where factors are built from raters, and where they are not: one factor for this many ratings of
#: a user or item, and the fewest and the most factors.
RANKS_BUILT, RANKS_PLAIN = (2, 16, 32), (4, 4, 32)
#: ``n_estimators="auto"``: the most for few ratings on a scale of five levels; for more ratings or
#: levels fewer, by a root of how much longer a member takes.
MOST_MEMBERS, FEWEST_MEMBERS, FEW_RATINGS, ROOT = 30, 4, 100_000, 8

Members = list[list[RatingsEstimator]]
#: Shows in a progress bar that a member begins; returns the callbacks that report its iterations.
ShowMember = Callable[[], list[Callback]]
#: From ratings, the row and the column of a seed, and a scope to a fitted member.
FitMember = Callable[[Ratings, int, int, str], RatingsEstimator]


class LeftOut:
    """Features of ratings, averaged over the bags that left them out, and how far these differ."""

    def __init__(self, n_ratings: int) -> None:
        self._times = np.zeros(n_ratings, np.int64)
        self._sums: Float64Array = np.zeros((n_ratings, 0))
        self._products: Float64Array = np.zeros((0, 0))

    def add(self, entries: IntArray, features: FloatArray) -> None:
        """Add the features that one bag's members give the ratings that it left out."""
        if not self._sums.shape[1]:
            self._sums = np.zeros((len(self._times), features.shape[1]))
            self._products = np.zeros((features.shape[1],) * 2)
        self._times[entries] += 1
        self._sums[entries] += features
        self._products += features.T @ features

    def means(self) -> tuple[IntArray, Float64Array]:
        """Return which ratings were left out, and the means of their features."""
        entries = np.flatnonzero(self._times)
        return entries, self._sums[entries] / self._times[entries, None]

    def noise(self, widths: Sequence[int], n_bags: int) -> Float64Array | None:
        """Return how much noisier these means are than means over all bags, as a covariance.

        A rating that k bags left out has the mean of k draws, whose noise has covariance N / k; for
        new ratings it is the mean over all n bags, with N / n.  N is the covariance of draws around
        their mean; None if there are never two.  ``widths`` are the numbers of features of each
        kind of members, which are independent and come first; no others depend on members.
        """
        times = self._times[self._times > 0]
        spare = int((times - 1).sum())
        if not spare:
            return None
        _, means = self.means()
        around = (self._products - (means * times[:, None]).T @ means) / spare
        kept = block_diag(*(np.ones((width, width)) for width in widths))
        noise = np.zeros_like(around)
        noise[: len(kept), : len(kept)] = kept * around[: len(kept), : len(kept)]
        excess = float((1.0 / times).mean()) - 1.0 / n_bags
        return excess * noise


@method("ensemble")
@dataclass(eq=False, repr=False)
class MarginEnsemble(RatingsEstimator):
    """Margins of several factorisers, averaged and combined into probabilities.

    For every level, the margins of all kinds of members and the log-odds of the user's and the
    item's own ratings are combined by a logistic regression, fitted to ratings that the margins
    were not learned from.  The members are many, small and weakly regularised: averages of such
    vary far less than each.  Its rule is the median.

    Parameters
    ----------
    members : sequence of str or estimator
        The kinds of members: ``"mmmf"``, ``"hmf"``, ``"pmmmf"``, ``"als"``, ``"pmf"``,
        ``"bias"``, or unfitted estimators of your own.
    ensemble : {"bagging", "seeds"}
        How the members of a kind differ.  Bagging: each leaves out another tenth of the ratings,
        and the combination is fitted to every rating's margins by the members that have not seen
        it.  Seeds: by their random starts alone; the combination is fitted to a tenth of the
        ratings, and then the members are fitted again to all.
    implicit : {"both", "items", "users", None}
        Whose factors members given by name build from who rated what; see `MMMF`.
    n_estimators : int or "auto"
        How many members of each kind.  Auto: 30 for up to 100,000 ratings on five levels, and
        fewer for more ratings or levels: 22 for a million, 13 for a hundred million.
    n_factors : int or "auto"
        The rank of members given by name.  Auto: one factor for every two ratings that a user or
        item has on average, from 16 to 32; without ``implicit`` for every four, from 4 to 32.
    random_state : int, Generator or None
        Seeds the bags and the members.

    Attributes
    ----------
    members_ : list of list of estimator
        The fitted members of every kind.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> model = MarginEnsemble(n_estimators=4, random_state=0).fit(data.pairs, data.ratings)
    >>> model.predict_proba(data.pairs[:2]).shape, len(model.members_[0])
    ((2, 5), 4)
    """

    _saved: ClassVar[dict[str, Any]] = {
        "members_": ListOf(ListOf(RatingsEstimator)),
        "_calibrator": "Calibrator",
    }
    _takes_features = True
    members: Sequence[str | RatingsEstimator] = ("mmmf", "hmf")
    _: KW_ONLY
    ensemble: Literal["bagging", "seeds"] = "bagging"
    implicit: Implicit = "both"
    n_estimators: int | Literal["auto"] = "auto"
    n_factors: int | Literal["auto"] = "auto"
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    def _fit(self, data: Ratings) -> None:
        rng = self._checkpoint.generator("bags", self.random_state)
        kinds = self._kinds(data)
        seeds = rng.integers(2**31, size=(self._n_members(data), len(kinds)))
        n_fits = seeds.size * (2 - (self.ensemble == "bagging"))
        with progress_bar(type(self).__name__, n_fits, bool(self.verbose)) as report:

            def fit_member(data: Ratings, row: int, k: int, scope: str) -> RatingsEstimator:
                again = seeds.size if self.ensemble == "seeds" and not scope else 0
                number = again + row * len(kinds) + k + 1
                show = partial(report, f"member {number} of {n_fits}")
                return self._member(data, kinds[k], int(seeds[row, k]), k, show, scope)

            fit = self._fit_bags if self.ensemble == "bagging" else self._fit_seeds
            fit(data, seeds.shape, fit_member, rng)

    def _fit_bags(
        self, data: Ratings, shape: tuple[int, int], fit_member: FitMember, rng: np.random.Generator
    ) -> None:
        """Fit every member to a bag of its own, and the calibrator to what bags left out."""
        (n_bags, n_kinds), n_parts = shape, min(FOLDS, len(data))
        left_out, rows = LeftOut(len(data)), []

        def fitted(bag: tuple[BoolArray, int]) -> tuple[list[RatingsEstimator], Any]:
            part, number = bag
            split = ValidationSplit.of(data, part)
            row = [fit_member(split.train, number, k, "held out") for k in range(n_kinds)]
            margins = self._mean_margins([[one] for one in row], split.users, split.items)
            for member in row:
                member._share(self)  # the ratings of a bag need not stay
            return row, (split.entries, split.features(margins))

        for begin in range(0, n_bags, n_parts):
            # A new partition each round, so that a rating is left out of bags that differ.
            part = rng.permutation(len(data)) % n_parts
            bags = [(part == k, begin + k) for k in range(min(n_parts, n_bags - begin))]
            for row, unseen in self._checkpoint.side_by_side(fitted, bags, n_threads(self.n_jobs)):
                rows.append(row)
                left_out.add(*unseen)
        self.members_ = [list(kind) for kind in zip(*rows, strict=True)]
        noise = left_out.noise([data.n_levels - 1] * n_kinds, n_bags)
        entries, features = left_out.means()
        self._calibrator = Calibrator.fit(features, data.codes[entries], data.n_levels, noise)

    def _fit_seeds(
        self, data: Ratings, shape: tuple[int, int], fit_member: FitMember, rng: np.random.Generator
    ) -> None:
        """Fit all members twice: without a hold-out, for the calibrator, and to everything."""

        def fitted(data: Ratings, scope: str) -> Members:
            def one(cell: tuple[int, int]) -> RatingsEstimator:
                member = fit_member(data, *cell, scope)
                member._share(self)
                return member

            cells = list(np.ndindex(shape))
            found = self._checkpoint.side_by_side(one, cells, n_threads(self.n_jobs))
            return [found[k :: shape[1]] for k in range(shape[1])]

        split = ValidationSplit.at_random(data, rng)
        members = fitted(split.train, "held out")
        features = split.features(self._mean_margins(members, split.users, split.items))
        self._calibrator = Calibrator.fit(features, split.codes, data.n_levels)
        self.members_ = fitted(data, "")

    def _member(
        self, data: Ratings, kind: Any, seed: int, number: int, show: ShowMember, scope: str
    ) -> RatingsEstimator:
        member: RatingsEstimator = clone(kind)
        params = member.get_params(deep=False)
        name = f"{type(member).__name__} {number} {seed} {scope}".strip()
        # The ensemble's own calibration is the one that counts.
        changes: dict[str, Any] = {"random_state": seed, "calibrate": False}
        shown = show()
        if "callbacks" in params:
            changes["callbacks"] = [*params["callbacks"], *shown]
        member.set_params(**{key: value for key, value in changes.items() if key in params})
        member = member._fit_copy(data, self._checkpoint.scope(name), self._frequencies)
        if "callbacks" in params:
            member.set_params(callbacks=params["callbacks"])
        return member

    def _mean_margins(
        self, members: Members, users: IntArray, items: IntArray
    ) -> list[Float64Array]:
        bound, means = self._margin_bound, []
        for kind in members:
            total = np.zeros((len(users), len(self.levels_) - 1))
            for member in kind:
                total += np.clip(member._margins(users, items), -bound, bound)
            means.append(total / len(kind))
        return means

    @property
    def _margin_bound(self) -> float:
        # Infinite margins of opposite signs have no mean; all others are far smaller than this.
        return 10.0 + float(np.ptp(self.levels_))

    def _fold_in(self, side: Side, data: Ratings) -> None:
        self.members_ = [
            [member._folded(side, data, self._new_rows) for member in kind]
            for kind in self.members_
        ]
        self._share_ratings()

    def _joined(
        self, folded: Self, side: Side, data: Ratings, frequencies: LevelFrequencies | None = None
    ) -> Self:
        joined = super()._joined(folded, side, data, frequencies)
        shared = side, data, joined._frequencies
        joined.members_ = [
            [ours._joined(theirs, *shared) for ours, theirs in zip(*kinds, strict=True)]
            for kinds in zip(self.members_, folded.members_, strict=True)
        ]
        joined._share_ratings()
        return joined

    def _share_ratings(self) -> None:
        """Let the members have our ratings, of which one copy is enough."""
        for member in chain(*self.members_):
            member._share(self)

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        numbers = {len(kind) for kind in self.members_}
        if len(self.members_) != len(self.members) or len(numbers) > 1:
            yield ".members_ are not as many of each kind in members"
        if self.n_estimators != "auto" and {self.n_estimators} != numbers:
            yield f".n_estimators is {self.n_estimators!r:.60}, but there are {max(numbers)}"

    def _n_margins(self, n_steps: int) -> int:
        return n_steps * len(self.members_)

    def _member_margins(self, users: IntArray, items: IntArray) -> FloatArray:
        return np.hstack(self._mean_margins(self.members_, users, items))

    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        return logit(self._above(users, items))

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
        """The user factors of all members, side by side."""
        return self._stacked("user_factors_")

    @property
    def item_factors_(self) -> FloatArray:
        """The item factors of all members, side by side."""
        return self._stacked("item_factors_")

    def _stacked(self, name: str) -> FloatArray:
        found = [getattr(member, name) for member in chain(*self.members_) if hasattr(member, name)]
        if not found:
            raise AttributeError(f"None of the members has {name}.")
        return np.hstack([*chain(*map(as_stages, found))])

    def _kinds(self, data: Ratings) -> list[RatingsEstimator]:
        """Return an unfitted member of every kind."""
        return [self._named(kind, data) if isinstance(kind, str) else kind for kind in self.members]

    def _named(self, name: str, data: Ratings) -> RatingsEstimator:
        estimator, built, plain = MEMBERS[name]
        settings, ranks = (plain, RANKS_PLAIN) if self.implicit is None else (built, RANKS_BUILT)
        if not issubclass(estimator, Factoriser):
            return estimator(calibrate=False, **settings)
        per_factor, fewest, most = ranks
        wanted = round(len(data) / (data.n_users + data.n_items) / per_factor)
        rank = min(max(wanted, fewest), most)
        if self.n_factors != "auto":
            rank = int(self.n_factors)
        settings = {"implicit": self.implicit, "reg_implicit": REG_IMPLICIT, **settings}
        return estimator(rank, calibrate=False, **settings)

    def _n_members(self, data: Ratings) -> int:
        if self.n_estimators != "auto":
            return int(self.n_estimators)
        size = len(data) * data.n_levels / 5 / FEW_RATINGS
        return max(FEWEST_MEMBERS, round(MOST_MEMBERS / float(max(size, 1.0) ** (1 / ROOT))))

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        for name in ("n_estimators", "n_factors"):
            if getattr(self, name) != "auto":
                check_number(self, name, int, 1)
        check_choice(self, "implicit", IMPLICIT)
        check_choice(self, "ensemble", ("bagging", "seeds"))
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
