"""Random numbers of new rows: they belong to a row's own ratings, and to nothing else."""

import numpy as np
import pytest
from scipy import stats

from marginmf.backends.rows import SIDES
from marginmf.datasets import make_ratings
from marginmf.ratings import BPMF, GibbsIPMMMF, GibbsMMMF, Ratings
from marginmf.ratings.fitting.chains import Sweep, row_keys

TABLE = make_ratings(300, 40, n_factors=2, observed=0.3, random_state=3)
DATA = Ratings.of(TABLE.pairs, TABLE.ratings)
FEW = {"n_burn": 3, "n_samples": 4, "random_state": 0}
SAMPLERS = pytest.mark.parametrize(
    "model",
    [BPMF(3, **FEW), GibbsMMMF(3, **FEW), GibbsIPMMMF(cost=0.3, **FEW)],
    ids=lambda model: type(model).__name__,
)


def test_keys_follow_from_the_ratings_of_a_row_in_any_order():
    keys = row_keys(DATA)
    assert len(np.unique(keys)) == DATA.n_users
    for user in (0, 7, 299):
        mine = DATA.rows == user
        pairs, ratings = DATA.pairs[mine], DATA.values[mine]
        alone = Ratings.of(pairs[::-1], ratings[::-1], items=DATA.items, levels=DATA.levels)
        assert row_keys(alone) == keys[user]
        other = ratings.copy()
        other[0] = DATA.levels[DATA.levels != other[0]][0]
        changed = Ratings.of(pairs, other, items=DATA.items, levels=DATA.levels)
        assert row_keys(changed) != keys[user]


@pytest.mark.parametrize("keys", [row_keys(DATA), np.arange(300, dtype=np.uint64)])
def test_numbers_of_rows_are_uniform_and_unrelated(keys):
    found = Sweep(0, 0).row_uniforms(keys, 1, 200)
    assert found.shape == (300, 200)
    assert 0 < found.min() < found.max() < 1
    assert stats.kstest(found.ravel(), "uniform").pvalue > 1e-3
    # Rows, neighbouring numbers of a row, sweeps and steps: no pair is correlated.
    others = [
        *(Sweep(0, 0).row_uniforms(keys, 2, 200), Sweep(0, 1).row_uniforms(keys, 1, 200)),
        *(Sweep(1, 0).row_uniforms(keys, 1, 200), np.roll(found, 1, axis=0)),
        np.roll(found, 1, axis=1),
    ]
    for other in others:
        assert abs(np.corrcoef(found.ravel(), other.ravel())[0, 1]) < 4 / np.sqrt(found.size)
    between = np.corrcoef(found)[np.triu_indices(300, 1)] * np.sqrt(200)
    assert stats.kstest(between, "norm").pvalue > 1e-3
    np.testing.assert_array_equal(found[5:7, :9], Sweep(0, 0).row_uniforms(keys[5:7], 1, 9))


def test_normal_numbers_of_rows_are_normal():
    found = Sweep(3, 4).row_normals(row_keys(DATA), 0, 100)
    assert stats.kstest(found.ravel(), "norm").pvalue > 1e-3


@SAMPLERS
def test_new_users_do_not_depend_on_who_else_is_new(model):
    model.fit(DATA)
    moved = TABLE.pairs + np.array([1000, 0])
    whole = model.fold_in(moved, TABLE.ratings)
    for user in (0, 41):
        mine = TABLE.pairs[:, 0] == user
        alone = model.fold_in(moved[mine][::-1], TABLE.ratings[mine][::-1])
        np.testing.assert_allclose(
            alone.predict_proba(moved[mine]), whole.predict_proba(moved[mine]), rtol=1e-5
        )


@SAMPLERS
def test_draws_of_new_users_are_not_alike(model):
    model.fit(DATA)
    moved = TABLE.pairs + np.array([1000, 0])
    drawn = model.fold_in(moved, TABLE.ratings).user_factors_.astype(float)
    # What a sample has beyond the mean over samples: noise, which is each user's own.
    left = drawn - drawn.mean(axis=0)
    left -= left.mean(axis=1, keepdims=True)
    left = left.transpose(1, 0, 2).reshape(len(drawn[0]), -1)
    sizes = np.sqrt(np.square(left).sum(axis=1))
    between = (left @ left.T / np.outer(sizes, sizes))[np.triu_indices(len(left), 1)]
    assert abs(between.mean()) < 0.05


@SAMPLERS
def test_new_users_and_new_items_share_no_random_numbers(model):
    model.fit(DATA)
    assert len({model._new_row_sweep(side, n) for side in SIDES for n in range(9)}) == 18
