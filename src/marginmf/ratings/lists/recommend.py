"""Lists: the items that users would like best, and neighbours in the space of factors."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from marginmf._utils.parameters import check_option, check_whole, n_threads, warn
from marginmf._utils.types import Array, BoolArray, Float64Array, FloatArray, IntArray
from marginmf.backends import Backend
from marginmf.backends.rows import Side
from marginmf.ratings.fitting.calibration import answer
from marginmf.ratings.ids import IdIndex, as_ids, known_codes
from marginmf.ratings.lists import relevance, search
from marginmf.ratings.lists.relevance import RankedBy, Relevance, block_product
from marginmf.ratings.lists.search import Found, ItemScores, Lists, ScoreMatrix
from marginmf.ratings.tables import make_frame

UnknownUsers = Literal["warn", "fallback", "raise", "skip"]
#: How many answers of a filter function are in memory at a time.
ANSWERS_AT_A_TIME = 2**24


class Request:
    """Which lists are wanted of a fitted model; ``items`` are codes of candidates, None for all."""

    def __init__(
        self,
        model: Any,
        users: Any,
        n: int,
        exclude_seen: bool,
        candidates: Any,
        leave_out: Any,
        unknown: UnknownUsers,
    ) -> None:
        check_whole("n", n)
        ids = model.users_.ids if users is None else as_ids(users, model.users_)
        check_option("unknown", unknown, ("warn", "fallback", "raise", "skip"))
        if unknown == "raise":
            known_codes(ids, model.users_, "users")
        codes = model.users_.encode(ids, quiet=True)
        if unknown == "warn" and (codes < 0).any():
            _warn_of_strangers(ids[codes < 0], len(ids), model.users_)
        kept = (codes >= 0) | (unknown in ("warn", "fallback"))
        self.ids, self.codes, self.model, self.n = ids[kept], codes[kept], model, int(n)
        self.items: IntArray | None = None
        position, item_ids = None, model.items_.ids
        if candidates is not None:
            found = known_codes(as_ids(candidates, model.items_), model.items_, "candidates")
            self.items, position = np.sort(found), np.full(len(item_ids), -1, np.int32)
            position[self.items] = np.arange(len(self.items))
            item_ids = item_ids[self.items]
        self.n_candidates, self.rows_at_a_time = len(item_ids), max(1, len(self.codes))
        self._excluded: list[Callable[[IntArray], Lists]] = []
        if exclude_seen:
            seen = Lists.rated(model.ratings_)
            self._excluded.append(lambda rows: seen.of(self.codes[rows]).among(position))
        if callable(leave_out):
            self._excluded.append(
                lambda rows: search.refused_by(leave_out, self.ids[rows], item_ids)
            )
            self.rows_at_a_time = max(1, ANSWERS_AT_A_TIME // max(1, self.n_candidates))
        elif leave_out is not None:
            refused = search.refused_pairs(leave_out, self.ids, model.items_, position)
            self._excluded.append(refused.of)

    def best(self, scores: ItemScores) -> Found:
        """Return the n best of the candidates for every user, as rows and columns of these."""
        about = self.n_candidates, self._left_out, self.rows_at_a_time
        matrix = ScoreMatrix(scores, self.codes, *about)
        return search.best(matrix, self.n, n_threads(self.model.n_jobs))

    def _left_out(self, rows: IntArray) -> Lists:
        lists = [excluded(rows) for excluded in self._excluded]
        return Lists.union(lists, len(rows), self.n_candidates)

    def item_codes(self, columns: IntArray) -> IntArray:
        """Return the codes of some of the candidates."""
        return columns if self.items is None else self.items[columns]

    def frame(self, found: Found, estimates: dict[str, Array], like: Any) -> Any:
        """Return lists with more columns as a frame of the kind that ``like`` is."""
        known: BoolArray = self.codes[found.rows] >= 0
        columns = {
            "user": self.ids[found.rows],
            "item": self.model.items_.ids[self.item_codes(found.columns)],
            "rank": found.ranks,
            "score": found.scores,
        }
        library = self.model.ratings_.source.library
        return make_frame({**columns, **estimates, "known": known}, like, library)


def _warn_of_strangers(unknown: Array, n_users: int, users: IdIndex) -> None:
    warn(
        f"{len(unknown):,} of {n_users:,} users were not seen in training: "
        f"{users.name_unknown(unknown)}. Their lists are not personal: fold these users in with "
        "some ratings, or choose unknown='fallback' (the same lists, without this warning), 'skip' "
        "or 'raise'."
    )


def recommend(model: Any, request: Request, by: RankedBy, level: float | None, like: Any) -> Any:
    """Return the frame of `RatingsEstimator.recommend`, in the kind of frame that ``like`` is."""
    scores = relevance.item_scores(model, by, level, request.items)
    found = request.best(scores)
    users, items = request.codes[found.rows], request.item_codes(found.columns)
    distribution, levels = model._code_distribution(users, items), model.levels_
    columns: dict[str, Array] = {}
    if isinstance(scores, Relevance):
        columns = {**scores.factors(users, found.columns, distribution)}
    columns["expected"] = answer("mean", distribution, levels)
    if by == "expected":  # the same, as it was ranked by
        columns["score"] = columns["expected"] = levels[0] + found.scores
    columns["rating"] = answer("median", distribution, levels)
    columns["chance_of_top"] = distribution[:, -1]
    return request.frame(found, columns, like)


class SimilarByFactors:
    """The lists of similar users and items that a model with factors has."""

    def similar_items(self, items: Any, n: int = 10) -> Any:
        """Return the n items most similar to each of some items, by the cosine of their factors.

        Parameters
        ----------
        items : id, sequence of ids, or column of a frame
            Items seen in training.  Repeats count once.
        n : int
            How many; fewer where there are no more.

        Returns
        -------
        frame
            Columns ``item``, ``similar`` (the other item's id), ``rank`` and ``similarity``, by
            item in the order asked, then by rank; the kind of frame is chosen as in `recommend`.

        Examples
        --------
        >>> from marginmf.datasets import make_ratings
        >>> from marginmf.ratings import HMF
        >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
        >>> model = HMF(n_factors=5, reg=1.0, random_state=0).fit(data.pairs, data.ratings)
        >>> model.similar_items(7, n=3)["rank"].tolist()
        [1, 2, 3]
        """
        return _similar(self, items, n, "item")

    def similar_users(self, users: Any, n: int = 10) -> Any:
        """Return the n users most similar to each of some users, by the cosine of their factors.

        As `similar_items`, with the columns ``user``, ``similar``, ``rank`` and ``similarity``.
        """
        return _similar(self, users, n, "user")


def _similar(model: Any, values: Any, n: int, side: Side) -> Any:
    check_is_fitted(model)
    factors = getattr(model, f"{side}_factors_", None)
    if factors is None:
        raise ValueError(
            f"{type(model).__name__} does not describe {side}s by factors that could be compared, "
            f"so similar {side}s cannot be found. Use a method with such factors: HMF, MMMF or ALS."
        )
    cosines = _Cosines(relevance.as_stages(factors), model._arithmetic())
    about = model.ratings_.index(side), model.n_jobs, model.ratings_.source.library
    return similar_by(cosines, values, n, *about)


def similar_by(
    scores: ItemScores,
    values: Any,
    n: int,
    index: IdIndex,
    n_jobs: int | None,
    library: str | None = None,
) -> Any:
    """Return the frame of `similar_items` by the scores of some ids with all others."""
    check_whole("n", n)
    ids = as_ids(values, index)
    codes = known_codes(ids, index, f"{index.what}s")

    def itself(rows: IntArray) -> Lists:
        return Lists(np.arange(len(rows) + 1), codes[rows])

    found = search.best(ScoreMatrix(scores, codes, len(index), itself), int(n), n_threads(n_jobs))
    columns = {index.what: ids[found.rows], "similar": index.ids[found.columns]}
    columns |= {"rank": found.ranks, "similarity": found.scores}
    return make_frame(columns, values, library)


class _Cosines:
    """Cosines of factors; nothing breaks ties but the order of ids."""

    cell_bytes = 4 * 2  # a score, and a product that it is a sum of, in float32
    tolerance = 1e-5

    def __init__(self, factors: FloatArray, backend: Backend) -> None:
        self.factors, self.backend = factors, backend
        squares = np.einsum("qjd,qjd->j", factors, factors, dtype=np.float64)
        # What has no length is similar to nothing: 0, not 0/0.
        with np.errstate(divide="ignore"):
            self.scale = np.where(squares > 0, 1.0 / np.sqrt(squares), 0.0)

    def block(self, codes: IntArray, columns: slice) -> tuple[FloatArray, FloatArray]:
        left, right = (self.scale[side, None].astype(np.float32) for side in (codes, columns))
        scores: Any = sum(block_product(F[codes] * left, F[columns] * right) for F in self.factors)
        return scores, scores

    def pairs(self, codes: IntArray, columns: IntArray) -> tuple[Float64Array, Float64Array]:
        products = np.zeros(len(codes))
        for stage in self.factors:
            products += self.backend.scores(codes, columns, stage, stage)
        scores = (products * (self.scale[codes] * self.scale[columns])).clip(-1.0, 1.0)
        return scores, scores
