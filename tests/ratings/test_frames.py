"""Frames as people have them: one is enough to fit, to score, to search and to ask."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import marginmf
from marginmf.datasets import RatingsTable, make_ratings
from marginmf.ratings import EASE, MMMF, BiasOnly, Ratings
from marginmf.ratings.tables import Table

TABLE = make_ratings(30, 20, n_factors=2, observed=0.6, random_state=0)
NAMES = {"user": "kunde", "item": "artikel", "rating": "note"}


def frame(kind=pd.DataFrame, names=("userId", "movieId", "stars")):
    return kind(dict(zip(names, (TABLE.users, TABLE.items, TABLE.ratings), strict=True)))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_one_frame_is_enough_for_scikit_learn(kind) -> None:
    folds = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(BiasOnly(), frame(kind), cv=folds)
    expected = cross_val_score(BiasOnly(), TABLE.pairs, TABLE.ratings, cv=folds)
    np.testing.assert_allclose(scores, expected)
    grid = {"reg": [0.5, 5.0]}
    search = GridSearchCV(MMMF(2, calibrate=False), grid, cv=folds, error_score="raise")
    search.fit(frame(kind))
    assert search.best_params_["reg"] in grid["reg"]
    assert len(search.predict(frame(kind))) == len(TABLE)


def test_a_table_of_a_file_is_enough() -> None:
    model = BiasOnly().fit(TABLE)
    assert model.score(TABLE) == BiasOnly().fit(TABLE.pairs, TABLE.ratings).score(
        TABLE.pairs, TABLE.ratings
    )
    assert model.score(Ratings.of(TABLE)) == model.score(TABLE)


def test_names_are_remembered_also_in_a_file(tmp_path) -> None:
    own = frame(names=tuple(NAMES.values()))
    model = BiasOnly().fit(own, **NAMES)
    model.save(tmp_path / "m.marginmf")
    again = marginmf.load(tmp_path / "m.marginmf")
    assert again.column_names_ == NAMES
    assert again.score(own) == model.score(own)
    np.testing.assert_array_equal(again.predict(own), model.predict(TABLE.pairs))
    folded = MMMF(2, 1.0, calibrate=False).fit(own, **NAMES).fold_in(own.head(9))
    assert folded.column_names_ == NAMES


def test_words_are_remembered_also_in_a_file(tmp_path) -> None:
    words = np.array(["awful", "bad", "fair", "good", "great"], object)
    worded = frame().assign(stars=words[TABLE.ratings.astype(int) - 1])
    model = BiasOnly().fit(worded, levels=words.tolist())
    model.save(tmp_path / "m.marginmf")
    again = marginmf.load(tmp_path / "m.marginmf")
    assert again.level_names_ == dict(zip([1.0, 2.0, 3.0, 4.0, 5.0], words, strict=True))
    assert again.score(worded) == model.score(worded) == BiasOnly().fit(TABLE).score(TABLE)


def test_level_names_of_another_scale_are_refused(tmp_path, monkeypatch) -> None:
    model = BiasOnly().fit(
        [("a", 1), ("a", 2), ("b", 1)], ["bad", "good", "bad"], levels=["bad", "good"]
    )
    object.__setattr__(model.ratings_.source, "level_names", ("bad", "good", "great"))
    with pytest.raises(ValueError, match="level_names are those of other levels"):
        model.save(tmp_path / "m.marginmf")


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_lists_come_in_the_kind_of_frame_of_the_fit(kind) -> None:
    assert isinstance(BiasOnly().fit(frame(kind)).recommend(1, 2), kind)
    ease = EASE(10.0).fit(frame(kind))
    assert isinstance(ease.similar_items(1, 2), kind)
    assert isinstance(ease.recommend(pd.Series([1])), pd.DataFrame)


def test_a_table_shows_its_first_and_last_rows() -> None:
    table = Table(item=np.array([f"film {k}" for k in range(30)], object), score=np.arange(30.0))
    lines = repr(table).splitlines()
    assert lines[0].split() == ["item", "score"]
    assert lines[6] == "..."
    assert lines[-1] == "(30 rows)"
    assert RatingsTable("t", ["a"], ["x"], [1]).columns is None
