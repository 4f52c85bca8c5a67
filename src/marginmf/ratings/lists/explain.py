"""Reasons: a score as a sum over the user's own ratings.

Given the items' factors V, a user's factors minimise ``sum of losses + reg/2 |u|^2``.  Where the
gradient is zero, ``u = -1/reg sum_k w_k V_k`` over the rated items k, with ``w_k`` the derivative
of the loss by the score of item k; so the score of any item j is the sum of ``-w_k/reg V_k . V_j``.
Where factors are built from features (`fitting.priors`), the same holds of what the user's factors
have beyond their prior mean, and the item's factors are a sum over sources too.  The chance that
an item is taken is a sum over the same items, of their weights in it (`Exposure`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from marginmf._utils.ids import as_objects
from marginmf._utils.parameters import check_whole
from marginmf._utils.types import Array, Float64Array, FloatArray
from marginmf.backends import get_backend
from marginmf.backends.rows import Side
from marginmf.backends.specs import Spec
from marginmf.ratings.data import Ratings, restricted
from marginmf.ratings.fitting.new_rows import NewRows
from marginmf.ratings.fitting.objective import RowObjective, first_thresholds
from marginmf.ratings.ids import IdIndex, as_ids, known_codes
from marginmf.ratings.lists.relevance import Relevance, as_stages, item_scores
from marginmf.ratings.tables import make_frame
from marginmf.solvers import LBFGS, Stopping, minimise


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each of a user's ratings adds to the score of an item."""

    #: The ids of the items that the user rated, how, and what each adds to the score.
    items: Array
    ratings: Float64Array
    contributions: Float64Array
    #: The product of the factors that the model has learned (HMF: the mean over its stages; ALS and
    #: PMF: without mean and biases).
    score: float
    #: What is left of the score after all contributions and what was expected: zero up to rounding
    #: where the user's factors fit the items' final ones, and the loss is smooth.
    remainder: float
    #: The contributions by source of the item's factors: "ratings", "raters" and "features".
    sources: dict[str, Float64Array] = field(default_factory=dict)
    #: What is in the score before the user's ratings are looked at, by source of their factors.
    expected: dict[str, float] = field(default_factory=dict)
    #: What each of the rated items adds to the chance that the user takes the item.
    to_take: Float64Array = field(default_factory=lambda: np.zeros(0))
    #: That chance, and the chance that the item is liked then: their product is the relevance.
    take: float = 0.0
    like: float = 0.0


def explain(model: Any, user: Any, item: Any, n: int) -> Any:
    """Return the frame of `RatingsEstimator.explain`."""
    check_whole("n", n)
    return reasons(contributions(model, user, item), n, model.ratings_.source.library)


def reasons(parts: Contributions, n: int, library: str | None = None) -> Any:
    """Return what speaks most for the item, most against it, and for taking it, as a frame."""
    values = parts.contributions
    # Equal contributions stay in the order of their items.
    order = np.argsort(-values, kind="stable")
    shown = np.zeros(len(order), bool)
    shown[order[values[order] > 0][:n]] = True
    shown[order[values[order] < 0][-n:]] = True
    by_weight = np.argsort(-parts.to_take, kind="stable")
    shown[by_weight[parts.to_take[by_weight] > 0][:n]] = True
    rows = order[shown[order]]
    return make_frame(
        {
            "item": parts.items[rows],
            "rating": parts.ratings[rows],
            "contribution": values[rows],
            "to_take": parts.to_take[rows],
            **{f"from_{name}": part[rows] for name, part in parts.sources.items()},
        },
        library=library,
    )


def contributions(model: Any, user: Any, item: Any) -> Contributions:
    """Return the score of an item for a user, and the chance to take it, as sums over ratings."""
    check_is_fitted(model)
    if model._frequencies.placed == "item":
        raise ValueError(
            "This model was made by fold_in_items and does not hold the ratings that its users "
            "were learned from: use update_items on the model that it was made from, and explain "
            "with that."
        )
    parts = _to_score(model, user, item, {})
    scores = item_scores(model._with_calibrator(), "relevance", None, None)
    assert isinstance(scores, Relevance)
    pair = np.array([_code(user, model.users_)]), np.array([_code(item, model.items_)])
    chances = scores.factors(*pair, model._code_distribution(*pair))
    to_take = scores.exposure.weights.of(int(pair[1][0]), scores.has.of(pair[0]).columns)
    return replace(
        parts, to_take=to_take, take=float(chances["take"][0]), like=float(chances["like"][0])
    )


#: What is expected of the user's and of the item's factors, as if they were new.
Expected = dict[Side, NewRows]


def _to_score(model: Any, user: Any, item: Any, expected_of: Expected) -> Contributions:
    """Return the score alone as a sum over ratings; members of an ensemble share `Expected`."""
    if hasattr(model, "members_"):
        return _mean_contributions(model, user, item)
    if not hasattr(model, "_specs"):
        raise ValueError(
            f"The predictions of {type(model).__name__} are not sums over ratings. Use a method "
            "that minimises a loss of factors, such as HMF, MMMF or ALS."
        )
    i, j = _code(user, model.users_), _code(item, model.items_)
    U, V = (as_stages(factors) for factors in (model.user_factors_, model.item_factors_))
    regs = np.broadcast_to(np.asarray(getattr(model, "reg_", model.reg), np.float64), len(V))
    if not (regs > 0).all():
        raise ValueError(
            "reg=0 leaves the user's factors undetermined by the ratings: explanations need a "
            "positive reg."
        )
    data, penalties = _ratings_of(model.ratings_, i), model._penalties
    total, sources, expected = np.zeros(len(data)), dict[str, Any](), dict[str, float]()

    def parts(side: Side, reg: float, factors: FloatArray) -> dict[str, Float64Array]:
        """Return what each source of features adds to the factors of the user, or of the item."""
        if not penalties.sources(model.ratings_, side):
            return {}
        if side not in expected_of:
            index = model.ratings_.index(side)
            ids = IdIndex(as_ids(user if side == "user" else item, index), side)
            new = restricted(model.ratings_, side, ids)
            expected_of[side] = NewRows(side, model.ratings_, new)
        found = expected_of[side].parts(penalties, reg, factors)
        return {name: part[0].astype(np.float64) for name, part in found.items()}

    for spec, users, factors, reg in zip(model._specs(data), U, V, regs, strict=True):
        rated, own = factors[data.indices].astype(np.float64), factors[j].astype(np.float64)
        of_user = parts("user", reg, users)
        mean = sum(of_user.values(), np.zeros(len(own)))
        weights = -_derivatives(data, spec, float(reg), rated, mean) / reg / len(V)
        total += weights * (rated @ own)
        for name, part in parts("item", reg, factors).items():
            sources[name] = sources.get(name, 0) + weights * (rated @ part)
        for name, part in of_user.items():
            expected[name] = expected.get(name, 0.0) + float(part @ own) / len(V)
    if sources:
        sources = {"ratings": total - sum(sources.values()), **sources}
    score = float(np.einsum("qd,qd->", U[:, i], V[:, j], dtype=np.float64)) / len(V)
    left = score - float(total.sum()) - sum(expected.values())
    rated_ids = model.items_.ids[data.indices]
    return Contributions(rated_ids, data.values, total, score, left, sources, expected)


def _mean_contributions(model: Any, user: Any, item: Any) -> Contributions:
    """Return the contributions to the mean score of an ensemble's members."""
    shared: Expected = {}
    parts = [
        _to_score(member, user, item, shared)
        for member in chain(*model.members_)
        if hasattr(member, "_specs")
    ]
    if not parts:
        raise ValueError("The predictions of the members are not sums over ratings.")
    return replace(
        parts[0],
        contributions=np.mean([part.contributions for part in parts], axis=0),
        score=float(np.mean([part.score for part in parts])),
        remainder=float(np.mean([part.remainder for part in parts])),
        sources=_mean_by_name([part.sources for part in parts]),
        expected=_mean_by_name([part.expected for part in parts]),
    )


def _mean_by_name(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean of everything that has a name, zero where it is missing."""
    names = dict.fromkeys(name for one in found for name in one)
    return {name: sum(one.get(name, 0.0) for one in found) / len(found) for name in names}


def _code(value: Any, index: IdIndex) -> int:
    ids = as_ids(value, index)
    if len(ids) != 1:
        raise ValueError(f"One {index.what} is explained at a time, but {len(ids)} were given.")
    return int(known_codes(ids, index, f"{index.what}s")[0])


def _ratings_of(data: Ratings, i: int) -> Ratings:
    """Return one user's ratings, with the items and the levels of all."""
    entries = slice(data.indptr[i], data.indptr[i + 1])
    return Ratings(
        users=IdIndex(as_objects([data.users.ids[i]]), "user"),
        items=data.items,
        levels=data.levels,
        indptr=np.array([0, entries.stop - entries.start]),
        indices=data.indices[entries],
        codes=data.codes[entries],
        exact=None if data.exact is None else data.exact[entries],
    )


def _derivatives(
    data: Ratings, spec: Spec, reg: float, rated: FloatArray, mean: Float64Array
) -> Float64Array:
    """Return the derivative of the loss by each of one user's scores, at the minimum.

    This is the problem of fold-in, but in float64 and to the end: predictions stop changing long
    before the sum comes out.  ``rated`` holds the factors of the rated items alone.
    """
    backend = get_backend()
    alone = replace(data, indices=np.arange(len(data), dtype=np.int32))
    problem = RowObjective(alone, spec, reg, rated, backend, mean[None])

    def objective(point: Float64Array) -> tuple[float, Float64Array]:
        values, gradients = problem(point[None])
        return float(values[0]), gradients[0].astype(np.float64)

    start = np.concatenate([mean, first_thresholds(alone, spec)[0]])
    stopping = Stopping(max_iter=500, tol=1e-12, gradient_tol=1e-9)
    point = minimise(LBFGS(memory=20), objective, start, stopping, vectors=backend).point
    factors, thresholds = problem.split(point[None])
    scores = backend.scores(alone.rows, alone.indices, factors, rated)
    rows = backend.row_losses(alone, spec, scores, thresholds)
    return rows.by_score.astype(np.float64)
