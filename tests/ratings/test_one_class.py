"""OneClassMMMF: its objective beside a slow oracle, its solutions, and new users."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginmf.backends import get_backend
from marginmf.losses import smooth_hinge
from marginmf.ratings import OneClassMMMF, Ratings
from marginmf.ratings.one_class import NewUsers, OneClassObjective, as_upper, row_strengths


def random_pairs(n_users=25, n_items=18, share=0.3, seed=0):
    has = np.random.default_rng(seed).random((n_users, n_items)) < share
    has[:, 0] = True  # nobody is without an item, ...
    has[0] = True  # ... and no item without a user
    return has


def as_ratings(has):
    pairs = np.argwhere(has)
    return Ratings.of(pairs, np.ones(len(pairs)), levels=(0, 1))


def oracle(has, U, V, reg, weight):
    """The objective as the docstring has it, over a dense matrix of all pairs."""
    scores = U @ V.T
    n_users, n_items = has.shape
    value = smooth_hinge.value(scores)[has].sum() + 0.5 * weight * (scores**2).sum()
    for own, n, m in ((U, has.sum(axis=1), n_items), (V, has.sum(axis=0), n_users)):
        value += 0.5 * (reg * np.sqrt(n + weight * m) * (own**2).sum(axis=1)).sum()
    return value


def numeric_gradient(function, point, step=1e-5):
    gradient = np.empty_like(point)
    for k in range(point.size):
        ahead, behind = point.copy(), point.copy()
        ahead.flat[k] += step
        behind.flat[k] -= step
        gradient.flat[k] = (function(ahead) - function(behind)) / (2 * step)
    return gradient


cases = given(
    n_users=st.integers(1, 9),
    n_items=st.integers(1, 9),
    rank=st.integers(1, 5),
    reg=st.floats(0, 3),
    weight=st.floats(0, 2),
    seed=st.integers(0, 999),
)


@settings(deadline=None, max_examples=40)
@cases
def test_value_and_gradient_are_those_of_the_oracle(n_users, n_items, rank, reg, weight, seed):
    has = random_pairs(n_users, n_items, 0.4, seed)
    rng = np.random.default_rng(seed)
    U, V = rng.normal(size=(n_users, rank)), rng.normal(size=(n_items, rank))
    objective = OneClassObjective(as_ratings(has), rank, reg, weight, dtype=np.float64)
    value, gradient = objective(objective.join(U, V))
    assert value == pytest.approx(oracle(has, U, V, reg, weight), rel=1e-9)
    by_U, by_V = objective.split(gradient)
    expected = numeric_gradient(lambda u: oracle(has, u, V, reg, weight), U)
    np.testing.assert_allclose(by_U, expected, rtol=1e-4, atol=1e-5)
    expected = numeric_gradient(lambda v: oracle(has, U, v, reg, weight), V)
    np.testing.assert_allclose(by_V, expected, rtol=1e-4, atol=1e-5)


@settings(deadline=None, max_examples=40)
@cases
def test_the_rows_of_new_users_add_up_to_the_objective(n_users, n_items, rank, reg, weight, seed):
    has = random_pairs(n_users, n_items, 0.4, seed)
    rng = np.random.default_rng(seed)
    U, V = rng.normal(size=(n_users, rank)), rng.normal(size=(n_items, rank))
    data = as_ratings(has)
    strengths = row_strengths(reg, weight, data.indptr, n_items)
    rows = NewUsers(as_upper(data), V, weight, strengths, get_backend("cpu"))
    values, by_rows = rows(U)
    of_items = reg * np.sqrt(has.sum(axis=0) + weight * n_users) @ (V**2).sum(axis=1) / 2
    assert values.sum() + of_items == pytest.approx(oracle(has, U, V, reg, weight), rel=1e-9)
    expected = numeric_gradient(lambda u: oracle(has, u, V, reg, weight), U)
    np.testing.assert_allclose(by_rows, expected, rtol=1e-4, atol=1e-5)
    some = np.arange(n_users)[::-2]
    taken, by_taken = rows.take(some)(U[some])
    np.testing.assert_allclose(taken, values[some], rtol=1e-12)
    np.testing.assert_allclose(by_taken, by_rows[some], rtol=1e-12, atol=1e-12)


def test_the_objective_falls_and_is_stationary_at_the_end():
    has = random_pairs()
    model = OneClassMMMF(4, reg=0.3, weight=0.2, tol=0, max_iter=500).fit(np.argwhere(has))
    values = [record.objective for record in model.history_]
    assert all(later <= earlier * (1 + 1e-6) for earlier, later in pairwise(values))
    U, V = (factors.astype(float) for factors in (model.user_factors_, model.item_factors_))
    assert values[-1] == pytest.approx(oracle(has, U, V, 0.3, 0.2), rel=1e-5)
    for function, own in (
        (lambda u: oracle(has, u, V, 0.3, 0.2), U),
        (lambda v: oracle(has, U, v, 0.3, 0.2), V),
    ):
        assert np.abs(numeric_gradient(function, own)).max() < 1e-2


def test_pairs_that_are_there_score_higher():
    has = random_pairs()
    model = OneClassMMMF(6, reg=0.05, weight=0.1).fit(np.argwhere(has))
    scores = model.user_factors_ @ model.item_factors_.T
    assert scores[has].mean() > scores[~has].mean() + 0.3


def test_large_penalties_leave_nothing():
    model = OneClassMMMF(3, reg=1000.0).fit(np.argwhere(random_pairs()))
    assert np.abs(model.user_factors_ @ model.item_factors_.T).max() < 1e-3


def test_new_users_are_at_the_minimum_of_their_problems():
    has = random_pairs()
    model = OneClassMMMF(4, reg=0.2, weight=0.2).fit(np.argwhere(has))
    new = random_pairs(5, 18, 0.3, seed=9)
    folded = model.fold_in(np.argwhere(new))
    V = model.item_factors_.astype(float)

    def row(u, own):
        scores = u @ V.T
        penalty = 0.2 * np.sqrt(own.sum() + 0.2 * 18) * (u**2).sum()
        return smooth_hinge.value(scores[own]).sum() + 0.1 * (scores**2).sum() + penalty / 2

    for u, own in zip(folded.user_factors_.astype(float), new, strict=True):
        assert np.abs(numeric_gradient(lambda point, own=own: row(point, own), u)).max() < 1e-3


def test_folding_everybody_in_again_gives_nearly_their_own_factors():
    pairs = np.argwhere(random_pairs())
    model = OneClassMMMF(4, tol=1e-9, max_iter=1000).fit(pairs)
    np.testing.assert_allclose(model.fold_in(pairs).user_factors_, model.user_factors_, atol=5e-3)


def test_the_rank_is_no_larger_than_the_data():
    model = OneClassMMMF().fit([(0, 0), (1, 1), (2, 0), (2, 1)])
    assert model.item_factors_.shape == (2, 2)


def test_other_seeds_give_other_factors():
    pairs = np.argwhere(random_pairs())
    one, other = (OneClassMMMF(4, random_state=seed).fit(pairs) for seed in (0, 1))
    assert not np.array_equal(one.item_factors_, other.item_factors_)


def test_users_are_similar_by_their_factors():
    pairs = [(user, item) for user in range(12) for item in range(12) if (user + item) % 2]
    found = OneClassMMMF(2).fit(pairs).similar_users(4, n=5)
    assert set(found["similar"] % 2) == {0}


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"n_factors": 0}, "n_factors=0 must be a whole number >= 1"),
        ({"reg": -1}, "reg=-1 must be a number >= 0"),
        ({"weight": "much"}, "weight='much' must be a number >= 0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"tol": -1}, "tol=-1"),
        ({"random_state": "x"}, "random_state='x' cannot seed a generator"),
    ],
    ids=str,
)
def test_parameters_that_cannot_be_used_get_a_sentence(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        OneClassMMMF(**params).fit([(0, 0), (1, 1)])
