"""Neighbours by the cosine of factors."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

from contracts import synthetic
from marginmf.ratings import HMF, MMMF, BiasOnly, search


@pytest.fixture(scope="module")
def data():
    return synthetic((1, 2, 3, 4, 5))


@pytest.fixture(scope="module")
def model(data):
    return MMMF(n_factors=4, reg=0.5, random_state=0).fit(*data)


def test_the_columns_say_what_is_compared(model):
    items, users = model.similar_items([3, 7], n=2), model.similar_users(5, n=3)
    assert list(items.columns) == ["item", "similar", "rank", "similarity"]
    assert items["item"].tolist() == [3, 3, 7, 7]
    assert items["rank"].tolist() == [1, 2, 1, 2]
    assert list(users.columns) == ["user", "similar", "rank", "similarity"]
    assert users["user"].tolist() == [5, 5, 5]


def test_nobody_is_similar_to_themselves(model):
    similar = model.similar_items(model.items_.ids, n=1000)
    assert (similar["item"] != similar["similar"]).all()
    assert len(similar) == 30 * 29


def test_similarity_goes_both_ways(model):
    similar = model.similar_items(model.items_.ids, n=1000)
    table = similar.pivot(index="item", columns="similar", values="similarity").to_numpy()
    np.testing.assert_array_equal(table, table.T)


def test_equal_factors_are_as_similar_as_can_be_whatever_their_length(model):
    factors = model.item_factors_.copy()
    factors[9], factors[12] = 3.0 * factors[3], -0.5 * factors[3]
    changed = MMMF(n_factors=4)
    changed.__dict__.update(model.__dict__, item_factors_=factors)
    similar = changed.similar_items(3, n=29)
    assert similar["similar"].iloc[0] == 9
    assert similar["similar"].iloc[-1] == 12
    assert similar["similarity"].iloc[0] == pytest.approx(1.0)
    assert similar["similarity"].iloc[-1] == pytest.approx(-1.0)
    assert similar["similarity"].between(-1.0, 1.0).all()


def test_what_has_no_length_is_similar_to_nothing(model):
    factors = model.item_factors_.copy()
    factors[[4, 5]] = 0.0
    changed = MMMF(n_factors=4)
    changed.__dict__.update(model.__dict__, item_factors_=factors)
    similar = changed.similar_items(4, n=3)
    assert similar["similarity"].tolist() == [0.0, 0.0, 0.0]
    assert similar["similar"].tolist() == [0, 1, 2]
    others = changed.similar_items(3, n=29)
    assert set(others.loc[others["similar"].isin([4, 5]), "similarity"]) == {0.0}
    assert not others["similarity"].isna().any()


@pytest.mark.parametrize(
    ("ask", "kind"),
    [(pd.Series, pd.DataFrame), (pl.Series, pl.DataFrame), (pa.array, pa.Table)],
)
def test_the_frame_is_of_the_kind_that_came_in(model, ask, kind):
    similar = model.similar_items(ask([3, 7]), n=2)
    assert isinstance(similar, kind)
    expected = model.similar_items([3, 7], n=2)
    for name in expected.columns:
        column = similar[name].to_pylist() if kind is pa.Table else similar[name].to_list()
        assert column == expected[name].tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_neither_threads_nor_blocks_matter(monkeypatch, data, dtype):
    model = HMF(n_factors=4, reg=0.5, random_state=0, dtype=dtype).fit(*data)
    expected = model.similar_users(model.users_.ids, n=5)
    pd.testing.assert_frame_equal(
        model.set_params(n_jobs=2).similar_users(model.users_.ids, n=5), expected
    )
    monkeypatch.setattr(search, "BLOCK_ROWS", 3)
    monkeypatch.setattr(search, "BLOCK_BYTES", 100)
    pd.testing.assert_frame_equal(model.similar_users(model.users_.ids, n=5), expected)


def test_bad_input_gets_a_sentence(model, data):
    with pytest.raises(ValueError, match=r"2 of 3 items were not seen .* the first is 777"):
        model.similar_items([3, 777, 888])
    with pytest.raises(ValueError, match=r"1 of 1 users were not seen .* the first is 777"):
        model.similar_users(777)
    with pytest.raises(ValueError, match="n=0 must be a whole number >= 1"):
        model.similar_items(3, n=0)
    with pytest.raises(ValueError, match="item id in row 0 is missing"):
        model.similar_items(None)
    with pytest.raises(NotFittedError):
        MMMF().similar_items(3)
    bias = BiasOnly().fit(*data)
    with pytest.raises(ValueError, match="BiasOnly has no factors, so no item is more similar"):
        bias.similar_items(3)
    with pytest.raises(ValueError, match="BiasOnly has no factors, so no user is more similar"):
        bias.similar_users(3)
