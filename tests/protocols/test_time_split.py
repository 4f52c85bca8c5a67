"""`TimeSplit`: learn from the past, test on the future; and answers other than the median."""

from collections import Counter
from dataclasses import replace

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import cross_val_score

from contracts import synthetic
from marginmf.datasets import RatingsTable
from marginmf.metrics import ratings_report
from marginmf.protocols import HoldOut, ListRule, TimeSplit, compare, evaluate, split_ratings
from marginmf.ratings import MMMF, BiasOnly, MostPopular, Ratings

PAIRS, RATINGS = synthetic((1, 2, 3, 4, 5), n_users=30, n_items=25, n=600)
TIMES = np.random.default_rng(0).integers(1_600_000_000, 1_700_000_000, len(PAIRS))
SOON = TimeSplit(test_size=0.25)
#: Pairs, each once, with few distinct times, so that many are the same.
EVENTS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 9), st.integers(0, 12)),
    min_size=12,
    max_size=60,
    unique_by=lambda event: event[:2],
)


def columns(events):
    table = np.array(events)
    return table[:, :2], table[:, 2]


def possible(protocol, pairs, times):
    """Return the splits, or none where the times are too few."""
    try:
        return list(protocol.split(pairs, groups=times))
    except ValueError as error:
        if "same time" not in str(error) and "too few" not in str(error):
            raise
        return []


@given(EVENTS, st.sampled_from([0.1, 0.2, 0.3]), st.integers(1, 3))
def test_all_that_is_tested_is_later_than_all_that_is_learned(events, size, n_splits) -> None:
    pairs, times = columns(events)
    latest = []
    for train, test in possible(TimeSplit(n_splits, test_size=size), pairs, times):
        assert len(train) > 0
        assert times[train].max() < times[test].min()  # ties are on one side
        latest.append(times[test].max())
        # What is neither is later still.
        rest = np.setdiff1d(np.arange(len(times)), np.r_[train, test])
        assert times[rest].min(initial=99) > times[test].max()
    assert latest == sorted(set(latest))
    assert not latest or latest[-1] == times.max()


@given(EVENTS, st.sampled_from([1, 2, 0.1, 0.3]), st.integers(1, 3))
def test_each_users_latest_are_tested_and_every_user_is_learned(events, size, n_splits) -> None:
    pairs, times = columns(events)
    counts = Counter(pairs[:, 0].tolist())
    splits = list(TimeSplit(n_splits, 0, size, per_user=True).split(pairs, groups=times))
    assert len(splits) == n_splits
    for train, test in splits:
        assert set(pairs[train, 0]) == set(counts)
        for user in set(pairs[test, 0]):
            own = [rows[pairs[rows, 0] == user] for rows in (train, test)]
            assert times[own[0]].max() <= times[own[1]].min()
            assert len(own[1]) == (size if isinstance(size, int) else round(size * counts[user]))
    train, test = splits[-1]
    assert len(train) + len(test) == len(times)


@given(EVENTS, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(events, per_user, random) -> None:
    pairs, times = columns(events)
    order = np.array(random.sample(range(len(times)), len(times)))
    protocol = TimeSplit(2, per_user=per_user)
    first = possible(protocol, pairs, times)
    second = possible(protocol, pairs[order], times[order])
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        for rows, shuffled in zip(one, other, strict=True):
            np.testing.assert_array_equal(rows, np.sort(order[shuffled]))


def test_the_share_and_the_windows() -> None:
    splits = list(TimeSplit(3, test_size=0.2).split(PAIRS, groups=TIMES))
    sizes = [(len(train), len(test)) for train, test in splits]
    assert sizes == [(240, 120), (360, 120), (480, 120)]
    (train, test), *_ = TimeSplit(test_size=50).split(PAIRS, groups=TIMES)
    assert (len(train), len(test)) == (550, 50)
    np.testing.assert_array_equal(np.sort(TIMES)[-50:], np.sort(TIMES[test]))
    # Ten ratings at the cut are all on the nearer side.
    tied = np.r_[np.arange(7), [7] * 10, np.arange(8, 11)]
    assert len(next(TimeSplit(test_size=0.25).split(PAIRS[:20], groups=tied))[1]) == 3
    assert len(next(TimeSplit(test_size=0.45).split(PAIRS[:20], groups=tied))[1]) == 13


def test_the_last_of_each_user_and_any_of_those_at_one_time() -> None:
    pairs = [("ann", item) for item in range(5)] + [("bob", 1), ("bob", 2), ("cy", 1)]
    times = [3, 1, 4, 1, 5, 9, 2, 6]
    protocol = TimeSplit(test_size=1, per_user=True)
    assert next(protocol.split(pairs, groups=times))[1].tolist() == [4, 5]
    assert next(replace(protocol, test_size=0.4).split(pairs, groups=times))[1].tolist() == [
        2,
        4,
        5,
    ]
    tests = {
        int(next(replace(protocol, random_state=seed).split(pairs[:5], groups=[0] * 5))[1][0])
        for seed in range(60)
    }
    assert tests == {0, 1, 2, 3, 4}


@pytest.mark.parametrize(
    "as_frame",
    [
        lambda frame: frame,
        lambda frame: frame.assign(when=frame["when"].dt.tz_localize("Asia/Tokyo")),
        lambda frame: frame.assign(when=frame["when"].astype(str)),
        lambda frame: frame.assign(when=[f"{one.isoformat()}Z" for one in frame["when"]]),
        lambda frame: frame.assign(when=TIMES),
        pl.from_pandas,
        pa.Table.from_pandas,
    ],
    ids=["datetime", "zone", "text", "ISO", "Unix", "polars", "pyarrow"],
)
@pytest.mark.parametrize("name", ["timestamp", "date", "Rated_At"])
def test_times_of_a_frame_are_found(as_frame, name) -> None:
    ids = {"user": PAIRS[:, 0], "item": PAIRS[:, 1], "rating": RATINGS}
    frame = pd.DataFrame({**ids, "when": pd.to_datetime(TIMES, unit="s")})
    timed = nw.from_native(as_frame(frame)).rename({"when": name}).to_native()
    expected = evaluate(BiasOnly(), PAIRS, RATINGS, SOON, times=TIMES)
    assert compare(timed, [BiasOnly()], SOON).values["BiasOnly"]["mae"] == [expected[0]["mae"]]
    assert evaluate(BiasOnly(), timed, RATINGS, SOON) == expected


def test_a_table_has_times_and_scikit_learn_passes_them_on() -> None:
    table = RatingsTable("t", *PAIRS.T, RATINGS, timestamps=TIMES)
    expected = [report["mae"] for report in evaluate(BiasOnly(), PAIRS, RATINGS, SOON, times=TIMES)]
    assert compare(table, [BiasOnly()], SOON).values["BiasOnly"]["mae"] == expected
    assert next(split_ratings(table, SOON)).evaluate(BiasOnly()).values["mae"] == expected[0]
    scores = cross_val_score(BiasOnly(), PAIRS, RATINGS, cv=SOON, groups=TIMES)
    np.testing.assert_allclose(scores, [-error for error in expected])
    reports = evaluate(MostPopular(), PAIRS, None, SOON, lists=ListRule(level="any"), times=TIMES)
    assert 0 < reports[0]["recall"] < 1


def test_who_begins_after_the_cut_is_tested_on_the_fallback() -> None:
    pairs = np.vstack([PAIRS, [[999, 0], [0, 999], [998, 998]]])
    table = RatingsTable("t", *pairs.T, np.r_[RATINGS, 5, 5, 5], timestamps=np.arange(len(pairs)))
    found = compare(table, [BiasOnly()], TimeSplit(test_size=10))
    assert found.unknown_share == pytest.approx(0.3)
    assert compare(table, [BiasOnly()], TimeSplit(test_size=1, per_user=True)).unknown_share < 0.3
    (split,) = split_ratings(table, TimeSplit(test_size=3))
    result = split.evaluate(BiasOnly())
    assert np.isfinite(result.predicted).all()
    np.testing.assert_array_equal(
        result.predicted, result.model.predict(split.test_pairs, unknown="fallback")
    )


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: evaluate(BiasOnly(), PAIRS, RATINGS, SOON), "and there is none: give times="),
        (lambda: compare(Ratings.of(PAIRS, RATINGS), ["bias"], SOON), "and there is none: give"),
        (
            lambda: compare(
                pd.DataFrame(PAIRS, columns=["user", "item"]).assign(rating=RATINGS),
                ["bias"],
                SOON,
            ),
            "none among the columns 'user', 'item', 'rating': give times=",
        ),
        (lambda: next(SOON.split(pd.DataFrame(PAIRS, columns=["user", "item"]))), "'user', 'item'"),
        (lambda: next(SOON.split(PAIRS, groups=TIMES[:-1])), "600 pairs but 599 times"),
        (lambda: next(SOON.split(PAIRS, groups=["noon"] * 600)), "Row 0: the timestamp 'noon' is"),
        (lambda: next(SOON.split(PAIRS, groups=[*TIMES[1:], np.nan])), "in row 599 is nan"),
        (lambda: next(SOON.split(PAIRS, groups=TIMES[:, None])), "must be one column"),
        (lambda: next(SOON.split(PAIRS, groups=np.ones(600))), "All 600 ratings have the same"),
        (
            lambda: next(TimeSplit(3).split(PAIRS, groups=np.arange(600) // 300)),
            "have 2 different times, too few for n_splits=3 windows",
        ),
        (lambda: next(TimeSplit(5).split(PAIRS, groups=TIMES)), "leave no ratings to train on"),
        (lambda: next(TimeSplit(test_size=600).split(PAIRS, groups=TIMES)), "leave no ratings"),
        (lambda: next(TimeSplit(test_size=1.0).split(PAIRS, groups=TIMES)), "between 0 and 1"),
        (lambda: next(TimeSplit(test_size=0).split(PAIRS, groups=TIMES)), "test_size=0 must be"),
    ],
)
def test_what_cannot_be_split_is_a_sentence(call, said) -> None:
    with pytest.raises(ValueError, match=said):
        call()


def test_a_missing_date_is_named() -> None:
    dates = pd.to_datetime(TIMES, unit="s").to_numpy(copy=True)
    dates[7] = np.datetime64("NaT")
    with pytest.raises(ValueError, match="The time in row 7 is NaT"):
        next(SOON.split(PAIRS, groups=dates))
    # Nothing else asks for times.
    frame = pd.DataFrame(
        {"user": PAIRS[:, 0], "item": PAIRS[:, 1], "rating": RATINGS, "date": dates}
    )
    assert compare(frame, [BiasOnly()], HoldOut(1)).n_splits == 1


@pytest.mark.parametrize("output", ["median", "mode", "mean", "rule"])
def test_any_point_of_the_distribution_can_be_judged(output) -> None:
    model, protocol = MMMF(3, 1.0, random_state=0), HoldOut(1)
    ((train, test),) = protocol.split(PAIRS)
    fitted = model.fit(Ratings.of(PAIRS[train], RATINGS[train], levels=(1, 2, 3, 4, 5)))
    predicted = fitted.predict(PAIRS[test], output=output)
    expected = ratings_report(RATINGS[test], predicted, fitted.levels_)
    assert evaluate(model, PAIRS, RATINGS, protocol, output=output) == [expected]
    found = compare((PAIRS, RATINGS), {"MMMF": model}, protocol, output=output)
    assert found.mean("MMMF", "mae") == expected["mae"]
    assert ("output" in str(found)) == (output != "median")
    assert found.as_dict()["output"] == output


def test_the_checkpoint_of_another_output_is_refused(tmp_path) -> None:
    path = tmp_path / "comparison.jsonl"
    compare((PAIRS, RATINGS), ["bias"], output="mean", checkpoint=path)
    with pytest.raises(ValueError, match=r"\(other output of predict\)"):
        compare((PAIRS, RATINGS), ["bias"], checkpoint=path)


class Picky(BiasOnly):
    """Refuses all data."""

    def fit(self, *arguments, **more):
        raise ValueError("I do not like these.")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_models_that_refuse_the_data_are_left_out_if_wanted(n_jobs) -> None:
    models = {"picky": Picky(), "averages": BiasOnly()}
    with pytest.raises(ValueError, match="I do not like these"):
        compare((PAIRS, RATINGS), models, n_jobs=n_jobs)
    with pytest.warns(UserWarning, match=r"picky is left out: I do not like these\."):
        found = compare((PAIRS, RATINGS), models, unsuitable="skip", n_jobs=n_jobs)
    assert found.methods == ["averages"]
    alone = compare((PAIRS, RATINGS), {"averages": BiasOnly()})
    assert found.values["averages"]["mae"] == alone.values["averages"]["mae"]
    with pytest.raises(ValueError, match="I do not like these"):
        compare((PAIRS, RATINGS), {"picky": Picky()}, unsuitable="skip", n_jobs=n_jobs)
    with pytest.raises(ValueError, match="unsuitable='hide' is not known"):
        compare((PAIRS, RATINGS), models, unsuitable="hide")


def test_lists_have_no_output_and_others_are_not_known() -> None:
    with pytest.raises(ValueError, match="output='mean' is an answer on ratings, but lists are"):
        compare((PAIRS, RATINGS), ["bias"], lists=ListRule(), output="mean")
    with pytest.raises(ValueError, match="output='middle' is not known"):
        evaluate(BiasOnly(), PAIRS, RATINGS, HoldOut(), output="middle")
