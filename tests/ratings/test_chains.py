"""What is kept of a chain, and its random numbers: none is used twice."""

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from marginmf.backends.rows import SIDES
from marginmf.datasets import make_ratings
from marginmf.ratings import BPMF, GibbsIPMMMF, GibbsMMMF, Ratings
from marginmf.ratings.fitting.chains import Chain, Sweep, row_keys
from marginmf.solvers import Stopping, minimise

TABLE = make_ratings(300, 40, n_factors=2, observed=0.3, random_state=3)
DATA = Ratings.of(TABLE.pairs, TABLE.ratings)
FEW = {"n_burn": 3, "n_samples": 4, "random_state": 0}
SAMPLERS = pytest.mark.parametrize(
    "model",
    [BPMF(3, **FEW), GibbsMMMF(3, **FEW), GibbsIPMMMF(cost=0.3, **FEW)],
    ids=lambda model: type(model).__name__,
)


class Counter:
    """A sampler whose sample is the number of its sweep."""

    def __init__(self):
        self.kept = {"number": (2,)}

    def start(self, sweep):
        return self.sweep({}, sweep)

    def sweep(self, current, sweep):
        return {"number": np.full(2, float(sweep.number))}, 0.0


@pytest.mark.parametrize(("n_burn", "n_samples", "thin"), [(5, 4, 3), (0, 3, 1), (2, 1, 4)])
def test_every_so_many_sweeps_after_the_first_ones_are_kept(n_burn, n_samples, thin):
    chain = Chain(Counter(), 0, n_burn, n_samples, thin)
    stopping = Stopping(chain.n_sweeps, tol=-np.inf)
    result = minimise(chain, None, np.zeros(2 * n_samples, np.float32), stopping)
    expected = n_burn + thin * np.arange(1, n_samples + 1)
    np.testing.assert_array_equal(result.point.reshape(n_samples, 2), np.stack([expected] * 2, 1))
    assert result.n_iter == n_burn + n_samples * thin == expected[-1]


@SAMPLERS
def test_no_random_number_is_used_twice(model, monkeypatch):
    used, generator = [], Sweep.generator

    def note(sweep, step, block=0):
        used.append((sweep, step, block))
        return generator(sweep, step, block)

    monkeypatch.setattr(Sweep, "generator", note)
    model.fit(DATA)
    n_fit = len(used)
    model.fold_in(TABLE.pairs + np.array([1000, 0]), TABLE.ratings)
    n_users = len(used)
    model.fold_in_items(TABLE.pairs + np.array([0, 1000]), TABLE.ratings)
    assert 0 < n_fit < n_users < len(used) == len(set(used))


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


def memory_of(model):
    """Return the bytes of a model's arrays of samples, and of all that they keep in memory."""
    arrays = [one for one in vars(model).values() if isinstance(one, np.ndarray)]
    arrays = [array for array in arrays if len(array) == model.n_samples]
    owners = {id(one): one for one in (a if a.base is None else a.base for a in arrays)}
    return sum(a.nbytes for a in arrays), sum(memoryview(one).nbytes for one in owners.values())


def test_samples_are_in_memory_once():
    model = BPMF(60, n_burn=0, n_samples=2, thin=1, random_state=0).fit(DATA)
    model.n_samples = 40  # the fit before has compiled what it takes
    tracemalloc.start()
    model.fit(DATA)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.5 * memory_of(model)[0]


@SAMPLERS
def test_samples_that_are_not_used_are_let_go_of(model):
    used, kept = memory_of(model.fit(DATA))
    assert kept < 1.05 * used


@SAMPLERS
def test_updates_let_go_of_the_samples_that_they_replace(model):
    model.fit(DATA)
    restored = pickle.loads(pickle.dumps(model))
    assert len(pickle.dumps(restored)) == len(pickle.dumps(model))
    for one in (model, restored):
        one.update_users([(7, 3), (900, 3)], [1, 5])
        used, kept = memory_of(one)
        assert kept < 1.05 * used
    expected = restored.predict_proba(TABLE.pairs)
    np.testing.assert_array_equal(model.predict_proba(TABLE.pairs), expected)


@pytest.mark.parametrize("n_samples", [10**12, 10**30])
@SAMPLERS
def test_too_many_samples_for_the_memory_get_a_sentence(model, n_samples):
    wanted = f"take .* GiB, .*: {n_samples:,} of .* numbers. Lower n_samples or the number"
    with pytest.raises(MemoryError, match=wanted):
        clone(model).set_params(n_samples=n_samples).fit(DATA)


@SAMPLERS
def test_new_users_and_new_items_share_no_random_numbers(model):
    model.fit(DATA)
    assert len({model._new_row_sweep(side, n) for side in SIDES for n in range(9)}) == 18
