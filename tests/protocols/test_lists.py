"""Lists on held-out ratings: the right users, the right items, the right means, and no leaks."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from contracts import synthetic
from marginmf.metrics import LIST_METRICS
from marginmf.metrics import lists as measures
from marginmf.protocols import (
    Comparison,
    HoldOut,
    KFold,
    ListRule,
    ListScores,
    StrongGeneralisation,
    WeakGeneralisation,
    compare,
    evaluate,
    judge_lists,
)
from marginmf.protocols import lists as module
from marginmf.ratings import ALS, EASE, MMMF, BiasOnly, Ratings
from marginmf.stats import holm, paired_randomisation_test

PAIRS, RATINGS = synthetic((1, 2, 3, 4, 5), n_users=60, n_items=50, n=1500)
TRAIN, TEST = next(HoldOut(1).split(PAIRS))
MODEL = BiasOnly().fit(PAIRS[TRAIN], RATINGS[TRAIN])


class Oracle(BaseEstimator):
    """Recommends the items with the smallest numbers, and remembers what it was asked."""

    def fit(self, data):
        self.ratings_, self.users_, self.items_ = data, data.users, data.items
        self.asked_ = []
        return self

    def fold_in(self, data):
        folded = Oracle().fit(self.ratings_)
        folded.placed_ = data.users.ids
        return folded

    def recommend(self, users, n, **options):
        self.asked_.append((users, n, options))
        rows = [(user, item, rank + 1) for user in users for rank, item in enumerate(self.list(n))]
        return pd.DataFrame(rows, columns=["user", "item", "rank"])

    def list(self, n):
        return self.items_.ids[:n].tolist()


def judged(rule: ListRule, model=MODEL, rows=TEST) -> ListScores:
    return judge_lists(model, PAIRS[rows], RATINGS[rows], rule)


@pytest.mark.parametrize("k", [1, 10, 500])
def test_measures_are_those_of_the_lists_of_recommend(k: int) -> None:
    scores = judged(ListRule(k, level=4))
    liked = PAIRS[TEST][RATINGS[TEST] >= 4]
    users = sorted(set(liked[:, 0]))
    assert scores.users.tolist() == users
    frame = MODEL.recommend(users, n=k)
    own = [frame["item"][frame["user"] == user].tolist() for user in users]
    wanted = [set(liked[liked[:, 0] == user, 1]) for user in users]
    functions = {
        "ndcg": measures.ndcg,
        "precision": measures.precision,
        "recall": measures.recall,
        "map": measures.average_precision,
        "mrr": measures.reciprocal_rank,
        "hit_rate": measures.hit_rate,
    }
    for name, function in functions.items():
        assert scores.mean(name) == pytest.approx(function(own, wanted, k), abs=1e-12)
    data = MODEL.ratings_
    counts = np.bincount(data.indices, minlength=data.n_items) / data.n_users
    shares = dict(zip(data.items.ids.tolist(), counts, strict=True))
    assert scores.overall == pytest.approx(
        {
            "coverage": measures.coverage(own, data.n_items, k),
            "novelty": measures.novelty(own, shares, k),
            "popularity": measures.popularity(own, shares, k),
        }
    )


def test_blocks_of_users_change_nothing(monkeypatch) -> None:
    whole = judged(ListRule(7))
    monkeypatch.setattr(module, "ENTRIES_AT_A_TIME", 50)
    parts = judged(ListRule(7))
    assert parts.overall == whole.overall
    for name in LIST_METRICS:
        np.testing.assert_array_equal(parts.values[name], whole.values[name])


def test_a_report_has_every_mean() -> None:
    scores = judged(ListRule())
    report = scores.report()
    assert set(report) == {*LIST_METRICS, "coverage", "novelty", "popularity", "n_users"}
    assert report["n_users"] == len(scores.users)
    assert np.isfinite(list(report.values())).all()
    low, high = scores.interval("ndcg")
    assert low < scores.mean("ndcg") < high
    assert scores.mean("coverage") == report["coverage"]


def test_likes_are_above_the_mean_of_training() -> None:
    data = Ratings.of([("a", 1), ("a", 2), ("b", 1), ("b", 2)], [1, 5, 5, 4])
    assert ListRule().threshold(data) == 4
    assert ListRule(level=5).threshold(data) == 5
    assert ListRule(level="any").threshold(data) == -np.inf
    highest = Ratings.of([("a", 1), ("a", 2)], [5, 5], levels=[1, 5])
    assert ListRule().threshold(highest) == 5


def test_any_rating_may_be_the_level_of_continuous_ratings() -> None:
    values = np.linspace(0, 1, 60)
    data = Ratings.of([(k, k) for k in range(60)], values, n_levels=5)
    assert ListRule(level=0.333).threshold(data) == 0.333
    with pytest.raises(ValueError, match="level=2 is not on the scale of the ratings: 0 to 1"):
        ListRule(level=2).threshold(data)


def test_level_any_judges_everybody_with_held_out_ratings() -> None:
    assert judged(ListRule(level="any")).users.tolist() == np.unique(PAIRS[TEST, 0]).tolist()
    assert len(judged(ListRule(level=5)).users) < len(judged(ListRule(level=4)).users)


def test_items_that_the_model_does_not_know_are_relevant_all_the_same() -> None:
    data = Ratings.of([("a", 1), ("b", 2), ("b", 3)], [1, 2, 2])
    model = Oracle().fit(data)
    scores = judge_lists(model, [("a", 2), ("a", 99)], [2, 2], ListRule(k=2))
    assert scores.mean("recall") == 0.5
    assert scores.mean("ndcg") == pytest.approx((1 / np.log2(3)) / (1 + 1 / np.log2(3)))


def test_a_pair_that_is_held_out_twice_counts_once() -> None:
    model = Oracle().fit(Ratings.of([("a", 1), ("b", 2)], [1, 2]))
    scores = judge_lists(model, [("a", 2), ("a", 2)], [2, 2], ListRule(k=2))
    assert scores.mean("recall") == 1.0


def test_users_that_training_did_not_see_get_lists_too() -> None:
    pairs, ratings = [("stranger", 3), (5, 4)], [5, 5]
    scores = judge_lists(MODEL, pairs, ratings, ListRule(k=50))
    assert set(scores.users) == {"stranger", 5}
    assert scores.values["recall"][scores.users.tolist().index("stranger")] == 1.0


def test_ids_may_be_anything() -> None:
    named = [(f"u{user:02}", ("film", int(item))) for user, item in PAIRS]
    train, test = ([named[k] for k in rows] for rows in (TRAIN, TEST))
    model = BiasOnly().fit(train, RATINGS[TRAIN])
    scores = judge_lists(model, test, RATINGS[TEST], ListRule())
    assert scores.report() == judged(ListRule()).report()


def test_frames_of_pairs() -> None:
    frame = pd.DataFrame(PAIRS[TEST], columns=["user", "item"])
    scores = judge_lists(MODEL, frame, pd.Series(RATINGS[TEST]), ListRule())
    assert scores.report() == judged(ListRule()).report()


def test_lists_without_a_library_of_frames() -> None:
    def recommend(users, n):
        return {name: MODEL.recommend(users, n)[name].to_numpy() for name in FIELDS}

    bare = SimpleNamespace(recommend=recommend, items_=MODEL.items_, ratings_=MODEL.ratings_)
    assert judged(ListRule(), bare).report() == judged(ListRule()).report()


FIELDS = ("user", "item", "rank")


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        (ListRule(3), {"level": 4.0}),
        (ListRule(3, by="expected"), {"by": "expected"}),
        (ListRule(3, level=5, by="chance"), {"by": "chance", "level": 5.0}),
        (ListRule(3, level="any", by="chance"), {"by": "chance"}),
        (ListRule(3, level=1), {}),
    ],
)
def test_recommend_is_told_what_the_rule_says(rule: ListRule, options: dict) -> None:
    data = Ratings.of([(0, item) for item in range(5)], [1, 2, 3, 4, 5])
    threshold = rule.threshold(data)
    told = rule.options(BiasOnly().fit(data), threshold)
    assert told == {"unknown": "fallback", **options}
    assert rule.options(Oracle().fit(data), threshold) == {}


def groups(n_users=80, n_items=40, seed=0):
    """Everybody loves every other item, and dislikes the rest; half of it is observed."""
    rng = np.random.default_rng(seed)
    seen = np.argwhere(rng.random((n_users, n_items)) < 0.5)
    return seen, np.where(seen.sum(axis=1) % 2, 5.0, 1.0)


def test_held_out_items_that_were_shuffled_are_found_by_chance_only() -> None:
    pairs, ratings = groups()
    train, test = next(HoldOut(1).split(pairs))
    model = ALS(n_factors=3, reg=1.0, random_state=0).fit(pairs[train], ratings[train])
    rule, k = ListRule(level=5), 10
    true = judge_lists(model, pairs[test], ratings[test], rule).mean("recall")
    rng = np.random.default_rng(0)
    seen = {tuple(pair) for pair in pairs[train].tolist()}
    unseen = 40 - np.bincount(pairs[train, 0], minlength=80)
    found, by_chance = [], []
    for _ in range(20):
        users = pairs[test, 0]
        shuffled = np.column_stack([users, rng.integers(40, size=len(test))])
        found.append(judge_lists(model, shuffled, ratings[test], rule).mean("recall"))
        liked = {tuple(pair) for pair in shuffled[ratings[test] == 5].tolist()}
        table = pd.DataFrame(
            [(u, 0.0 if (u, i) in seen else min(1, k / unseen[u])) for u, i in liked]
        )
        by_chance.append(table.groupby(0)[1].mean().mean())
    assert true > 2 * np.mean(found)
    assert np.mean(found) == pytest.approx(np.mean(by_chance), abs=0.03)


@pytest.mark.parametrize(
    "protocol",
    [HoldOut(), KFold(3), WeakGeneralisation(held_out=3), StrongGeneralisation(40, 3)],
    ids=str,
)
def test_evaluate_judges_lists_under_every_protocol(protocol) -> None:
    reports = evaluate(BiasOnly(), PAIRS, RATINGS, protocol, lists=ListRule(k=5))
    assert len(reports) == 3
    for report in reports:
        assert np.isfinite(list(report.values())).all()
        assert 0 < report["ndcg"] < 1


def test_new_users_are_folded_in_and_training_says_what_is_popular() -> None:
    protocol = StrongGeneralisation(40, held_out=3, n_splits=1)
    found = compare((PAIRS, RATINGS), {"first": Oracle()}, protocol, lists=ListRule(5))
    (scores,) = found.lists["first"]
    train, fold_in, _ = next(protocol.split(PAIRS))
    assert set(scores.users) <= set(PAIRS[fold_in, 0])
    counts = np.bincount(PAIRS[train, 1])
    listed = np.unique(PAIRS[train, 1])[:5]
    assert scores.overall["popularity"] == pytest.approx(counts[listed].mean() / 40)


def test_items_that_new_users_rated_are_not_in_their_lists() -> None:
    protocol = StrongGeneralisation(40, held_out=3, n_splits=1)
    train, fold_in, test = next(protocol.split(PAIRS))
    fitted = BiasOnly().fit(PAIRS[train], RATINGS[train]).fold_in(PAIRS[fold_in], RATINGS[fold_in])
    frame = fitted.recommend(np.unique(PAIRS[test, 0]), n=50)
    listed = set(zip(frame["user"], frame["item"], strict=True))
    assert not listed & {tuple(pair) for pair in PAIRS[fold_in].tolist()}
    training = Ratings.of(PAIRS[train], RATINGS[train])
    scores = judge_lists(fitted, PAIRS[test], RATINGS[test], ListRule(), training=training)
    (report,) = evaluate(BiasOnly(), PAIRS, RATINGS, protocol, lists=ListRule())
    assert report == scores.report()


def made_scores(users, ndcg) -> ListScores:
    values = {name: np.asarray(ndcg, float) for name in LIST_METRICS}
    overall = {"coverage": 0.5, "novelty": 1.0, "popularity": 0.25}
    return ListScores(np.asarray(users), values, overall)


def list_comparison(**splits) -> Comparison:
    """Return a comparison of lists of that nDCG, by method, from one split."""
    found = Comparison("lists", ("ndcg", "recall", "coverage", "seconds"), rule=ListRule())
    for name, scores in splits.items():
        for one in scores:
            found.add(name, {**one.report(), "seconds": 1.0}, one)
    return found


def test_users_are_averaged_over_the_splits_that_judged_them() -> None:
    found = list_comparison(a=[made_scores([1, 2], [0.0, 1.0]), made_scores([2, 3], [0.5, 0.25])])
    assert found.user_values("a").tolist() == [0.0, 0.75, 0.25]
    assert found.mean("a") == pytest.approx(1 / 3)
    assert found.mean("a", "seconds") == 1.0
    assert found.mean("a", "coverage") == 0.5


def test_differences_are_tested_against_the_best_and_corrected() -> None:
    rng, users = np.random.default_rng(0), np.arange(40)
    best = rng.random(40)
    others = {"near": best - rng.normal(0.01, 0.1, 40), "far": best - 0.3 * rng.random(40)}
    values = {"near": others["near"], "best": best, "far": others["far"]}
    found = list_comparison(**{name: [made_scores(users, own)] for name, own in values.items()})
    assert found.best() == "best"
    raw = [paired_randomisation_test(others[name], best) for name in ("near", "far")]
    expected = dict(zip(("near", "far"), holm(raw), strict=True))
    assert found.p_values() == {"near": expected["near"], "best": 1.0, "far": expected["far"]}
    frame = found.frame(["ndcg", "recall"])
    assert frame["method"].tolist() == ["near", "best", "far"] * 2
    assert frame["best"].tolist()[:3] == [False, True, False]
    assert frame["difference"].tolist()[1] == 0.0
    assert (frame["difference"] <= 0).all()
    assert (frame["low"] < frame["mean"]).all()
    assert (frame["mean"] < frame["high"]).all()
    assert found.p_values(baseline="near")["near"] == 1.0


def test_all_models_are_judged_on_the_same_splits() -> None:
    models = {"biases": BiasOnly(), "mmmf": MMMF(3, 1.0, random_state=0)}
    rule, protocol = ListRule(5), HoldOut(2, random_state=4)
    found = compare((PAIRS, RATINGS), models, protocol, lists=rule)
    for name, model in models.items():
        alone = evaluate(model, PAIRS, RATINGS, protocol, lists=rule)
        assert [scores.report() for scores in found.lists[name]] == alone
    for a, b in zip(*found.lists.values(), strict=True):
        np.testing.assert_array_equal(a.users, b.users)
    frame = found.frame(LIST_METRICS)
    assert np.isfinite(frame.drop(columns=["method", "metric"]).to_numpy(float)).all()
    assert not hasattr(models["biases"], "items_")
    assert str(found).splitlines()[0].split() == (
        ["method", "nDCG@5", "precision@5", "recall@5", "coverage", "p", "seconds"]
    )


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"k": 0}, "k=0 must be a whole number >= 1"),
        ({"k": 2.5}, "k=2.5 must be a whole number"),
        ({"k": True}, "k=True must be a whole number"),
        ({"level": "4"}, "level='4' is not a rating"),
        ({"level": np.nan}, "level=nan is not a rating"),
        ({"level": True}, "level=True is not a rating"),
        ({"by": "score"}, "by='score' is not known"),
    ],
)
def test_a_faulty_rule_is_a_sentence(fault, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ListRule(**fault)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: judged(ListRule(level=6)),
            "level=6 is not on the scale of the ratings: 1, 2, 3, 4, 5.",
        ),
        (lambda: judged(ListRule(level=3.5)), "level=3.5 is not on the scale"),
        (
            lambda: judged(ListRule(level=5), rows=TEST[RATINGS[TEST] < 5]),
            "There is no held-out rating of 5 or above, so no item is relevant.",
        ),
        (lambda: judged(ListRule(level="any"), rows=TEST[:0]), "no held-out rating at all"),
        (lambda: judge_lists(MODEL, PAIRS[:2], [1], ListRule()), "2 pairs but 1 ratings"),
        (lambda: judged(ListRule()).mean("ndgc"), "Did you mean ndcg?"),
        (lambda: judged(ListRule()).interval("coverage"), "coverage is measured of all lists"),
        (lambda: list_comparison().frame("ndcg"), "must be a sequence of metrics"),
    ],
)
def test_what_cannot_be_judged_is_a_sentence(call, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("?", r"\?")):
        call()


def test_more_items_are_more_recall() -> None:
    recalls = [judged(ListRule(k)).mean("recall") for k in (1, 5, 20, 50)]
    assert all(a <= b for a, b in pairwise(recalls))
    assert recalls[-1] == 1.0


def test_who_has_what_is_judged_without_ratings() -> None:
    pairs = [(u, i) for u in range(20) for i in range(12) if (u + i) % 2 and (u * i) % 5]
    (report,) = evaluate(EASE(), pairs, None, HoldOut(n_splits=1), lists=ListRule(k=4))
    assert report["ndcg"] > 0.5
    with pytest.raises(ValueError, match=r"Every rating is 3: [^|]* give None for ratings"):
        evaluate(EASE(), pairs, [3.0] * len(pairs), HoldOut(1), lists=ListRule(k=4))
    with pytest.raises(ValueError, match="EASE makes lists and predicts no ratings"):
        evaluate(EASE(), pairs, None, HoldOut(n_splits=1))
