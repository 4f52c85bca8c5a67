"""Frames and calls as people write them, and what becomes of each: ratings, or one sentence."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse

from marginmf.datasets import make_ratings
from marginmf.labels import PLST, BinaryRelevance, Scaled
from marginmf.ratings import ALS, EASE, HMF, MMMF, BiasOnly, MostPopular, Ratings


class Call(NamedTuple):
    """Something to do, and its value or the sentence that it gets."""

    do: Callable[[], Any]
    outcome: Any


IDS = {"userId": ["ann", "bob", "bob"], "movieId": ["x", "x", "y"]}
STARS = [5, 3, 1]
GOOD = {**IDS, "rating": STARS}
STRANGE = {"kunde": IDS["userId"], "artikel": IDS["movieId"], "note": STARS}
NAMED = {"user": "kunde", "item": "artikel", "rating": "note"}
PAIRS = [("ann", "x"), ("bob", "x"), ("bob", "y")]
VALUES = [5.0, 3.0, 1.0]
WORDS = ["great", "good", "bad"]
ORDER = ["bad", "good", "great"]


def values(*data: Any, **options: Any) -> list[float]:
    """Return ratings as they were read."""
    return Ratings.of(*data, **options).values.tolist()


def small() -> tuple[Any, Any]:
    table = make_ratings(30, 20, n_factors=2, observed=0.5, random_state=0)
    return table.pairs, table.ratings


def bias(*data: Any, **options: Any) -> BiasOnly:
    return BiasOnly().fit(*(data or small()), **options)


def frame(**more: Any) -> pd.DataFrame:
    return pd.DataFrame({**GOOD, **more})


def categorical(ordered: bool) -> pd.DataFrame:
    return frame(rating=pd.Categorical(WORDS, categories=ORDER, ordered=ordered))


RNG = np.random.default_rng(0)
DENSE = RNG.integers(0, 6, (6, 8))
X, Y = RNG.random((40, 3)), RNG.integers(0, 2, (40, 4))

FRAMES: dict[str, Call] = {
    "pandas": Call(lambda: values(pd.DataFrame(GOOD)), VALUES),
    "polars": Call(lambda: values(pl.DataFrame(GOOD)), VALUES),
    "arrow": Call(lambda: values(pa.table(GOOD)), VALUES),
    "a dictionary": Call(lambda: values(GOOD), VALUES),
    "another order": Call(
        lambda: values(pd.DataFrame(GOOD)[["rating", "movieId", "userId"]]), VALUES
    ),
    "more columns": Call(lambda: values(frame(city="Rome", genre=["a", "b", "c"])), VALUES),
    "an index of users": Call(
        lambda: values(pd.DataFrame(GOOD).set_index("userId")),
        "is known as the user; .* with user=",
    ),
    "unknown names": Call(
        lambda: values(pd.DataFrame(STRANGE)), "'kunde', 'artikel', 'note' is known as the user, it"
    ),
    "unknown names, named": Call(lambda: values(pd.DataFrame(STRANGE), **NAMED), VALUES),
    "unknown names in polars": Call(lambda: values(pl.DataFrame(STRANGE), **NAMED), VALUES),
    "fit with names": Call(lambda: bias(pd.DataFrame(STRANGE), **NAMED).column_names_, NAMED),
    "columns without names": Call(
        lambda: values(pd.DataFrame(list(zip(*GOOD.values(), strict=True)))), "'0', '1', '2' is kn"
    ),
    "columns by number": Call(
        lambda: values(
            pd.DataFrame(list(zip(*GOOD.values(), strict=True))), user=0, item=1, rating=2
        ),
        VALUES,
    ),
    "a number that is no column": Call(
        lambda: values(frame(), user=7), "has no column 7 for the us"
    ),
    "a misspelt column": Call(lambda: values(frame(), rating="raiting"), "no column 'raiting' for"),
    "a column twice": Call(
        lambda: values(pd.DataFrame([[1, 2, 3]], columns=["user", "user", "rating"])),
        "Two columns of the frame are called 'user'; rename",
    ),
    "lazy": Call(lambda: values(pl.LazyFrame(GOOD)), r"lazy frame \(polars\).*frame.collect"),
    "lazy to predict": Call(lambda: bias().predict(pl.LazyFrame(IDS)), "lazy frame.*collect"),
    "pivoted": Call(
        lambda: values(pd.DataFrame(DENSE, columns=[f"film{k}" for k in range(8)])),
        "look like one for each item.*frame.melt",
    ),
    "pivoted with users": Call(
        lambda: values(pd.DataFrame(DENSE).rename(columns={0: "user"})), "frame.melt"
    ),
    "no ratings": Call(lambda: values(pd.DataFrame(IDS)), "known as the rating.*positive-only"),
    "counts": Call(
        lambda: values(pd.DataFrame({**IDS, "plays": STARS})), "holds counts, which are"
    ),
    "booleans": Call(lambda: values(frame(rating=[True, False, True])), [1.0, 0.0, 1.0]),
    "likes": Call(lambda: values(frame(rating=["like", "dislike", "like"])), [1.0, 0.0, 1.0]),
    "text of numbers": Call(lambda: values(frame(rating=["5", "3", "1"])), VALUES),
    "decimal commas": Call(lambda: values(frame(rating=["4,5", "3", "1"])), [4.5, 3.0, 1.0]),
    "words": Call(
        lambda: values(frame(rating=WORDS)), "'great', is not a number, or a word that le"
    ),
    "words in order": Call(lambda: values(frame(rating=WORDS), levels=ORDER), [3.0, 2.0, 1.0]),
    "ordered categories": Call(lambda: values(categorical(True)), [3.0, 2.0, 1.0]),
    "unordered categories": Call(lambda: values(categorical(False)), "'great', is not a number"),
    "categories that are numbers": Call(
        lambda: values(frame(rating=pd.Categorical(["10", "6", "2"], ["2", "6", "10"], True))),
        [10.0, 6.0, 2.0],
    ),
    "categories for positive-only": Call(lambda: len(EASE(1.0).fit(categorical(True)).items_), 2),
    "digits that are no column": Call(lambda: values(frame(), user="1"), "has no column '1' for"),
    "an Enum of polars": Call(
        lambda: values(
            pl.DataFrame(GOOD).with_columns(rating=pl.Series(WORDS, dtype=pl.Enum(ORDER)))
        ),
        [3.0, 2.0, 1.0],
    ),
    "a word off the scale": Call(
        lambda: values(frame(rating=["great", "god", "bad"]), levels=ORDER), "did you mean 'good'"
    ),
    "words that repeat": Call(
        lambda: values(frame(rating=WORDS), levels=["bad", "Bad"]), "two or more different words"
    ),
    "words and numbers": Call(lambda: values(frame(rating=["like", "3", "1"])), "of another kind"),
    "missing ratings": Call(lambda: values(frame(rating=[5, None, 1])), "row 1 is nan"),
    "missing users": Call(
        lambda: values(frame(userId=["ann", None, "bob"])), "user id in row 1 is"
    ),
    "dates as ratings": Call(
        lambda: values(frame(rating=pd.to_datetime(["2020-01-01"] * 3))), "must be real numbers"
    ),
    "all ones": Call(lambda: values(frame(rating=1)), "Every rating is 1.*positive-only"),
    "a frame of one column": Call(
        lambda: values(frame()[["rating"]]), "is known as the user or item"
    ),
    "repeats": Call(lambda: values(frame(userId="ann", movieId="x")), "occur more than once"),
    "score": Call(lambda: bias(pd.DataFrame(GOOD)).score(pd.DataFrame(GOOD)) <= 0, True),
    "predict with all columns": Call(lambda: len(bias(frame()).predict(frame(city="Rome"))), 3),
    "predict with the names of the fit": Call(
        lambda: len(bias(pd.DataFrame(STRANGE), **NAMED).predict(pd.DataFrame(STRANGE))), 3
    ),
    "predict with other names": Call(
        lambda: bias(frame()).predict(pd.DataFrame(STRANGE)), "Pairs need a user's and an item's co"
    ),
    "predict with items first": Call(
        lambda: bias(frame()).predict(pd.DataFrame({"item": ["x"], "who": ["ann"]})), "users first"
    ),
    "lists like the fit": Call(
        lambda: type(bias(pl.DataFrame(GOOD)).recommend("ann", 1)), pl.DataFrame
    ),
}

STARRED = [(u, i) for u in range(9) for i in range(9)]


def starred() -> MMMF:
    ratings = [1 + (u * i) % 5 for u, i in STARRED]
    return MMMF(2, 1.0, calibrate=False).fit(STARRED, ratings)


CALLS: dict[str, Call] = {
    "likes for stars": Call(
        lambda: starred().fold_in([(99, 1), (99, 2)], ["like", "yes"]), "'like', is not a number"
    ),
    "booleans for stars": Call(
        lambda: starred().fold_in([(99, 1)], np.array([True])), "true and false, which are no"
    ),
    "likes scored as stars": Call(
        lambda: starred().score(STARRED[:2], ["like", "yes"]), "'like', is not a number"
    ),
    "categories for stars": Call(
        lambda: starred().fold_in([(99, 1), (99, 2)], categorical(True).rating[:2]), "are words"
    ),
    "numbers for categories": Call(
        lambda: values(categorical(True), levels=[2, 4, 6]), "are numbers, but the ratings are wor"
    ),
    "columns of several lengths": Call(
        lambda: values({"user": [1, 2], "item": [1], "rating": [3, 4]}), "2 users but 1 items"
    ),
    "columns that are none": Call(
        lambda: values({"user": 1, "item": 2, "rating": 3}), "'user' must be a list or an array"
    ),
    "a column itself": Call(
        lambda: values(frame(), rating=frame().rating), "rating= takes the name of a column"
    ),
    "a path": Call(lambda: bias("ratings.csv"), "'ratings.csv' is a name: read the file with"),
    "triples": Call(lambda: bias([("a", "x", 1), ("b", "x", 2)]), r"Three columns.*fit\(\[\(user"),
    "an array of three columns": Call(lambda: bias(np.ones((5, 3))), "Three columns without names"),
    "a dense matrix": Call(lambda: bias(DENSE), r"shape \(6, 8\).*scipy.sparse.csr_array"),
    "a sparse matrix": Call(lambda: len(bias(sparse.csr_array(DENSE)).items_), 8),
    "pairs alone": Call(lambda: bias(PAIRS), "The ratings are missing.*positive-only"),
    "a number": Call(lambda: bias(7), "not 7"),
    "one rating": Call(lambda: bias(PAIRS, 5), "Ratings must be a column of numbers, not 5"),
    "a word for ratings": Call(
        lambda: bias(PAIRS, "good"), "must be a column of numbers, not 'good"
    ),
    "too few ratings": Call(lambda: bias(PAIRS, [1, 2]), "There are 3 pairs but 2 ratings"),
    "names for pairs": Call(lambda: bias(PAIRS, STARS, user="who"), "names a column of a frame"),
    "counts": Call(
        lambda: values([("a", k) for k in range(90)], range(90)),
        "90 distinct values, 0 to 89.*count",
    ),
    "measurements": Call(
        lambda: values([("a", k) for k in range(90)], np.arange(90) / 7), "that is a measurement"
    ),
    "measurements in bins": Call(
        lambda: Ratings.of([("a", k) for k in range(90)], np.arange(90) / 7, n_levels=3).n_levels, 3
    ),
    "measurements as levels": Call(
        lambda: Ratings.of([("a", k) for k in range(90)], range(90), levels=range(90)).n_levels, 90
    ),
    "measurements for numbers": Call(
        lambda: (
            ALS(2, 1.0, calibrate=False).fit(small()[0], RNG.random(len(small()[0]))).n_iter_ > 0
        ),
        True,
    ),
    "a rating off the scale": Call(
        lambda: values(PAIRS, STARS, levels=[1, 2, 5]), "3 in row 1 is no"
    ),
    "a misspelt option": Call(
        lambda: bias().predict(PAIRS, output="men"), "output='men' is not kn"
    ),
    "a misspelt rule": Call(lambda: bias().predict(PAIRS, unknown="rise"), "unknown='rise'"),
    "a misspelt loss": Call(lambda: MMMF(loss="hing").fit(*small()), "hing"),
    "a bad strength": Call(lambda: MMMF(reg=-1).fit(*small()), "reg=-1 must be"),
    "no factors": Call(lambda: MMMF(n_factors=0).fit(*small()), "n_factors=0"),
    "two levels for BMMMF": Call(lambda: HMF().fit(PAIRS, [1, 1, 1]), "Every rating is 1"),
    "an unknown user": Call(
        lambda: bias(PAIRS, STARS).predict([("anne", "x")], unknown="raise"), "Did you mean 'ann'"
    ),
    "a user of another type": Call(
        lambda: bias([("1", "x"), ("2", "x"), ("2", "y")], STARS).predict(
            [(1, "x")], unknown="raise"
        ),
        "'1'",
    ),
    "an unknown item": Call(
        lambda: MMMF(2, 0.1, calibrate=False).fit(PAIRS, STARS).similar_items("z"), "'z'"
    ),
    "nothing to fold in": Call(
        lambda: MMMF(2, 0.1, calibrate=False).fit(PAIRS, STARS).fold_in([("cy", "q")], [5]),
        "nothing",
    ),
    "a folder that is missing": Call(lambda: bias().save("no/such/m.marginmf"), "no/such"),
    "not fitted": Call(lambda: BiasOnly().predict(PAIRS), "not fitted"),
    "a list of zero": Call(lambda: bias().recommend(1, 0), "n=0"),
    "likes for positive-only": Call(lambda: len(EASE(1.0).fit(PAIRS).items_), 2),
    "a frame for positive-only": Call(lambda: len(MostPopular().fit(pd.DataFrame(IDS)).items_), 2),
    "names of the fit for positive-only": Call(
        lambda: (
            EASE(1.0)
            .fit(pd.DataFrame(STRANGE), **NAMED)
            .decision_function(pd.DataFrame(STRANGE)[["artikel", "kunde"]])
            .any()
        ),
        np.True_,
    ),
    "names for positive-only": Call(
        lambda: len(MostPopular().fit(pd.DataFrame(STRANGE), **NAMED).items_), 2
    ),
    "tags as lists": Call(
        lambda: PLST().fit(X[:2], [["rock", "jazz"], ["pop"]]), "MultiLabelBinarizer"
    ),
    "tags as sets": Call(lambda: PLST().fit(X[:2], [{"rock"}, {"pop"}]), "MultiLabelBinarizer"),
    "tags in a column": Call(
        lambda: PLST().fit(X[:2], pd.Series([["rock"], ["pop", "jazz"]])), "MultiLabelBinarizer"
    ),
    "lazy features": Call(lambda: PLST().fit(pl.LazyFrame({"a": [1.0]}), Y), r"give X.collect\(\)"),
    "labels that are no indicator": Call(lambda: PLST().fit(X, Y + 3), "0|indicator"),
    "rows that differ": Call(lambda: PLST().fit(X[:9], Y), "9|40"),
    "features that are missing": Call(
        lambda: PLST().fit(np.where(X > 0.9, np.nan, X), Y), "NaN|fin"
    ),
    "two decision rules": Call(
        lambda: Scaled(PLST(decision="sign"), decision="per_label").fit(X, Y),
        "sign.*per_label|per_l",
    ),
    "a rule inside": Call(
        lambda: Scaled(BinaryRelevance(decision="sign")).fit(X, Y).thresholds_.tolist(), [0.0] * 4
    ),
    "probabilities of a rule without folds": Call(
        lambda: PLST(decision="sign").fit(X, Y).predict_proba(X), "calibrate=True"
    ),
}
