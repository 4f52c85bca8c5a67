"""New users, new items and new ratings: solved exactly, and nothing else moves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from contracts import synthetic
from marginmf.backends import get_backend
from marginmf.backends.specs import TwoLevel
from marginmf.losses import TWO_LEVEL
from marginmf.ratings import ALS, HMF, MMMF, PMF, PMMMF, BiasOnly, MarginEnsemble, Ratings
from marginmf.ratings.fitting.objective import (
    LARGEST_BLOCK,
    SMALLEST_BLOCK,
    RowObjective,
    block_bounds,
    solve_rows,
)
from marginmf.ratings.ids import IdIndex
from marginmf.solvers import minimise_rows
from marginmf.thresholds import REACH

LEVELS = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
PAIRS, RATINGS = synthetic(LEVELS)
IS_TRAINED = PAIRS[:, 0] < 30
NEW = PAIRS[~IS_TRAINED], RATINGS[~IS_TRAINED]
SETTINGS = {"n_factors": 4, "reg": 0.7, "random_state": 0, "dtype": "float64"}


def fitted(make, **params):
    return make(**{**SETTINGS, **params}).fit(PAIRS[IS_TRAINED], RATINGS[IS_TRAINED])


def h(z):
    return np.where(z >= 1, 0.0, np.where(z > 0, (1 - z) ** 2 / 2, 0.5 - z))


# --- every row is the minimum of its own problem, by another solver and plain formulas ------------


def two_level_loss(x, stars, q, _):
    return h(np.where(stars > q, 1, -1) * x).sum()


def threshold_loss(x, stars, thresholds, reach):
    r = np.arange(1, len(LEVELS))
    counted = np.abs(r - stars[:, None] + 0.5) < reach
    sign = np.where(r >= stars[:, None], 1, -1)
    return (counted * h(sign * (thresholds - x[:, None]))).sum()


def prototype_loss(x, stars, prototypes, _):
    r = np.arange(1, len(LEVELS) + 1)
    own, sign = r == stars[:, None], np.where(r < stars[:, None], 1, -1)
    distance = x[:, None] - prototypes
    losses = np.where(own, distance**2, h(sign * distance))
    return np.where(np.isnan(prototypes), 0.0, losses).sum()


def means(x, stars):
    return np.array([x[stars == r].mean() if (stars == r).any() else np.nan for r in LEVELS])


def least(function, n):
    found = minimize(function, np.zeros(n), method="BFGS", options={"gtol": 1e-7, "maxiter": 1000})
    return found.x, found.fun


def rows_of(side, model, which):
    """Return the stars of one new row, and the codes of the other side that they belong to."""
    data = model.ratings_
    mine = (data.rows if side == "user" else data.indices) == which
    return data.values[mine], (data.indices if side == "user" else data.rows)[mine]


def folded_in(model, side):
    """Return the model with new rows, which come with the ratings of PAIRS beyond the training."""
    if side == "user":
        return model.fold_in(*NEW)
    known, moved = PAIRS[IS_TRAINED], RATINGS[IS_TRAINED]
    return model.fold_in_items(known[:150] + np.array([0, 1000]), moved[:150])


@pytest.mark.parametrize("side", ["user", "item"])
@pytest.mark.parametrize("which", [0, 3, 7])
def test_hmf_rows_are_exact(side, which):
    folded = folded_in(fitted(HMF, reg=[0.5, 1.0, 1.5, 2.0]), side)
    stars, columns = rows_of(side, folded, which)
    for q in range(4):
        given, rows = folded.item_factors_[q], folded.user_factors_[q]
        if side == "item":
            given, rows = rows, given

        def objective(u, q=q, given=given):
            return two_level_loss(given[columns] @ u, stars, q + 1, None) + (0.25 + q / 4) * u @ u

        expected, _ = least(objective, 4)
        np.testing.assert_allclose(rows[which], expected, atol=1e-4)


@pytest.mark.parametrize("threshold", ["all", "immediate"])
@pytest.mark.parametrize("which", [0, 3, 7])
def test_mmmf_rows_are_exact(which, threshold):
    model = fitted(MMMF, threshold=threshold)
    users, items = (folded_in(model, side) for side in ("user", "item"))
    reach = REACH[threshold]

    stars, columns = rows_of("user", users, which)
    given = users.item_factors_[columns]

    # The thresholds of new users are held near those of known ones, the fewer ratings the more.
    usual, hold = model.thresholds_.mean(axis=0), 2.0 * max(1 - len(stars) / 20, 0)

    def user_objective(p):
        held = hold / 2 * np.sum((p[4:] - usual) ** 2)
        return threshold_loss(given @ p[:4], stars, p[4:], reach) + 0.35 * p[:4] @ p[:4] + held

    expected, lowest = least(user_objective, 8)
    found = np.append(users.user_factors_[which], users.thresholds_[which])
    assert user_objective(found) == pytest.approx(lowest, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(found[:4], expected[:4], atol=1e-3)

    stars, columns = rows_of("item", items, which)
    given, thresholds = items.user_factors_[columns], model.thresholds_[columns]

    def item_objective(v):
        return threshold_loss(given @ v, stars, thresholds, reach) + 0.35 * v @ v

    expected, _ = least(item_objective, 4)
    np.testing.assert_allclose(items.item_factors_[which], expected, atol=1e-4)
    assert items.thresholds_ is model.thresholds_


@pytest.mark.parametrize("which", [0, 3, 7])
def test_pmmmf_rows_are_exact(which):
    model = fitted(PMMMF)
    users, items = (folded_in(model, side) for side in ("user", "item"))

    stars, columns = rows_of("user", users, which)
    given = users.item_factors_[columns]

    def user_objective(u):
        x = given @ u
        return prototype_loss(x, stars, means(x, stars), None) + 0.35 * u @ u

    expected, _ = least(user_objective, 4)
    np.testing.assert_allclose(users.user_factors_[which], expected, atol=1e-4)
    np.testing.assert_allclose(users.prototypes_[which], means(given @ expected, stars), atol=1e-4)

    stars, columns = rows_of("item", items, which)
    given, prototypes = items.user_factors_[columns], model.prototypes_[columns]

    def item_objective(v):
        return prototype_loss(given @ v, stars, prototypes, None) + 0.35 * v @ v

    expected, _ = least(item_objective, 4)
    np.testing.assert_allclose(items.item_factors_[which], expected, atol=1e-4)
    assert items.boundaries_ is model.boundaries_


@pytest.mark.parametrize("side", ["user", "item"])
@pytest.mark.parametrize("make", [ALS, PMF])
@pytest.mark.parametrize("bias", [False, True])
def test_least_squares_rows_are_ridge_regressions(side, make, bias):
    model = fitted(make, bias=bias)
    folded = folded_in(model, side)
    offsets = folded.offsets_
    for which in range(3):
        stars, columns = rows_of(side, folded, which)
        if side == "user":
            given, row = folded.item_factors_[columns], folded.user_factors_[which]
            left = stars - offsets.mean_ - offsets.item_biases_[columns]
            own = offsets.user_biases_[which]
        else:
            given, row = folded.user_factors_[columns], folded.item_factors_[which]
            left = stars - offsets.mean_ - offsets.user_biases_[columns]
            own = offsets.item_biases_[which]
        assert own == pytest.approx(left.sum() / (len(stars) + 5) if bias else 0.0)
        gram = given.T @ given + 0.35 * np.eye(4)
        np.testing.assert_allclose(row, np.linalg.solve(gram, given.T @ (left - own)), atol=1e-9)


def test_pmf_without_a_penalty_learns_users_with_fewer_ratings_than_factors():
    model = fitted(PMF, reg=0.0)
    folded = model.fold_in(NEW[0][:2], NEW[1][:2])
    assert np.isfinite(folded.user_factors_).all()
    np.testing.assert_allclose(folded.predict(NEW[0][:2]), NEW[1][:2])


def test_bias_only_gives_new_rows_damped_means():
    pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y")]
    model = BiasOnly(reg=1.0).fit(pairs, [5, 3, 4, 2])
    cy = model.fold_in([("cy", "x"), ("cy", "y")], [2, 2])
    left = 2 - model.mean_ - model.item_biases_
    assert cy.user_biases_[0] == pytest.approx(left.sum() / 3)
    with pytest.warns(UserWarning, match="1 of 3 ratings are by unknown users and left out"):
        new = model.fold_in_items([("ann", "z"), ("bob", "z"), ("nobody", "z")], [5, 5, 2])
    left = 5 - model.mean_ - model.user_biases_
    assert new.item_biases_[0] == pytest.approx(left.sum() / 3)


@pytest.mark.parametrize("make", [HMF, MMMF, ALS, PMF])
def test_rows_that_had_converged_are_found_again(make):
    model = make(**{**SETTINGS, "max_iter": 3000, "tol": 0.0}).fit(PAIRS, RATINGS)
    users, items = model.fold_in(PAIRS, RATINGS), model.fold_in_items(PAIRS, RATINGS)
    for again in (users, items):
        np.testing.assert_allclose(again.item_factors_, model.item_factors_, atol=2e-3)
        np.testing.assert_allclose(again.user_factors_, model.user_factors_, atol=2e-3)


def test_pmmmf_users_that_had_converged_are_found_again():
    # Items are not: in training the prototypes move with the scores, for new items they stay.
    model = PMMMF(**{**SETTINGS, "max_iter": 3000, "tol": 0.0}).fit(PAIRS, RATINGS)
    users = model.fold_in(PAIRS, RATINGS)
    np.testing.assert_allclose(users.user_factors_, model.user_factors_, atol=2e-3)
    np.testing.assert_allclose(users.boundaries_, model.boundaries_, atol=5e-3)


# --- updates --------------------------------------------------------------------------------------

small_tables = st.dictionaries(
    st.tuples(st.integers(0, 6), st.integers(0, 4)), st.integers(1, 5), min_size=1, max_size=12
)


@given(parts=st.lists(small_tables, min_size=1, max_size=3))
@settings(max_examples=30, deadline=None)
def test_updates_in_parts_end_where_one_update_ends(parts):
    pairs = [(user, item) for user in range(5) for item in range(5)]
    start = [(3 * user + 2 * item) % 5 + 1 for user, item in pairs]
    bits, whole = (BiasOnly(reg=1.0).fit(pairs, start) for _ in range(2))
    for part in parts:
        bits.update_users(list(part), list(part.values()))
    together = {pair: stars for part in parts for pair, stars in part.items()}
    whole.update_users(list(together), list(together.values()))
    np.testing.assert_array_equal(bits.users_.ids, whole.users_.ids)
    np.testing.assert_array_equal(bits.ratings_.values, whole.ratings_.values)
    np.testing.assert_allclose(bits.user_biases_, whole.user_biases_)
    for name in ("by_user", "by_item", "overall"):
        np.testing.assert_array_equal(
            getattr(bits._frequencies, name), getattr(whole._frequencies, name)
        )


def test_a_user_and_an_item_that_are_new_to_each_other_come_one_after_the_other():
    model = fitted(HMF)
    model.update_users([(900, 3), (900, 5)], [5, 1])
    model.update_items([(900, 901), (3, 901)], [4, 4])
    assert model.ratings_.values[-1] == 4  # user 900 is the last, and so is item 901
    assert np.isfinite(model.decision_function([(900, 901)], unknown="raise")).all()
    folded = model.fold_in([(1000, 901)], [2])
    assert folded.users_.ids.tolist() == [1000]


def test_ids_of_other_types_may_join():
    model = fitted(MMMF)
    known = [tuple(pair) for pair in PAIRS[IS_TRAINED][:20]]
    before = model.decision_function(known)
    with pytest.warns(UserWarning, match="ids are of another type"):
        model.update_users([("new", 3), ("new", 4)], [5, 1])
    np.testing.assert_array_equal(model.decision_function(known), before)
    assert model.users_.ids[-1] == "new"


def test_frequencies_after_each_way_to_take_new_users_in():
    model = fitted(ALS)
    item = int(NEW[0][0, 1])
    code = model.items_.encode([item])[0]
    trained = model._frequencies.by_item[code].copy()
    folded = model.fold_in(*NEW)
    np.testing.assert_array_equal(folded._frequencies.by_item[code], trained)
    n_ratings = np.bincount(folded.ratings_.rows)
    np.testing.assert_array_equal(folded._frequencies.by_user.sum(axis=1), n_ratings)
    model.update_users(*NEW)
    gained = np.bincount(NEW[1][NEW[0][:, 1] == item].astype(int) - 1, minlength=5)
    np.testing.assert_array_equal(model._frequencies.by_item[code], trained + gained)
    np.testing.assert_array_equal(model._frequencies.overall, np.bincount(RATINGS.astype(int))[1:])


def test_models_made_by_folding_in_refuse_to_update_what_they_know_in_part():
    model = fitted(HMF)
    folded = model.fold_in(*NEW)
    with pytest.raises(ValueError, match=r"Item 3 was learned from ratings .* made by fold_in:"):
        folded.update_items([(35, 3)], [2])
    folded.update_items([(35, 5000)], [2])
    folded.update_users([(35, 5000), (36, 3)], [3, 3])
    items = model.fold_in_items([(3, 5000)], [2])
    with pytest.raises(ValueError, match=r"User 3 was learned .* made by fold_in_items:"):
        items.update_users([(3, 5000)], [4])
    items.update_users([(4000, 5000)], [4])
    assert items.users_.encode([4000])[0] >= 0


def test_an_update_that_is_interrupted_leaves_the_model_as_it_was(monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    model = fitted(HMF)
    before = dict(vars(model))
    monkeypatch.setattr("marginmf.ratings.factoriser.solve_rows", interrupt)
    for update in (model.update_users, model.update_items):
        with pytest.raises(KeyboardInterrupt):
            update([(3, 3), (3, 4)], [1, 2])
        assert vars(model) == before


# --- ids without ratings --------------------------------------------------------------------------


@pytest.mark.parametrize("make", [HMF, MMMF, PMMMF, ALS, PMF])
def test_items_in_the_vocabulary_that_nobody_rated_are_unknown(make):
    items = IdIndex(np.append(np.unique(PAIRS[:, 1]), [700, 701]), "item")
    data = Ratings.of(PAIRS, RATINGS, items=items)
    model = make(**SETTINGS).fit(data)
    plain = make(**SETTINGS).fit(PAIRS, RATINGS)
    assert 700 not in model.items_.ids
    asked = [(3, 700), (3, 701), (3, 4)]
    np.testing.assert_array_equal(model.decision_function(asked), plain.decision_function(asked))
    np.testing.assert_array_equal(
        np.isnan(model.predict(asked, unknown="nan")), [True, True, False]
    )
    # Neither do they say anything about a new user who rated them.
    with pytest.raises(ValueError, match="The ratings are all of unknown items"):
        model.fold_in([(800, 700)], [5])


def test_bias_only_treats_unrated_items_as_unknown():
    items = IdIndex(["x", "y", "z"], "item")
    data = Ratings.of([("ann", "x"), ("bob", "y"), ("ann", "y")], [1, 5, 5], items=items)
    assert np.isnan(BiasOnly().fit(data).predict([("ann", "z")], unknown="nan")).all()


@given(n_rows=st.integers(0, 10_000), n_threads=st.integers(1, 16))
def test_blocks_cover_the_rows_and_are_neither_large_nor_small(n_rows, n_threads):
    bounds = block_bounds(n_rows, n_threads)
    assert bounds[0] == 0
    assert bounds[-1] == n_rows
    lengths = np.diff(bounds)
    assert lengths.max() <= LARGEST_BLOCK
    assert len(lengths) == 1 or lengths.min() >= SMALLEST_BLOCK


@pytest.mark.parametrize("n_threads", [1, 3])
def test_blocks_and_threads_do_not_matter(n_threads):
    n_users = 5 * SMALLEST_BLOCK
    data = Ratings.of(*synthetic((1, 2, 3), n_users=n_users, n=12 * n_users))
    items = np.random.default_rng(0).normal(size=(data.n_items, 6)).astype(np.float32)
    spec = TwoLevel(TWO_LEVEL["smooth_hinge"], cut=1)
    objective = RowObjective(data, spec, 0.3, items, get_backend())
    start = np.zeros((data.n_users, 6), np.float32)
    found, _ = solve_rows(objective, n_threads)
    np.testing.assert_array_equal(found, minimise_rows(objective, start))
    last = np.arange(3 * SMALLEST_BLOCK + 1, data.n_users)
    np.testing.assert_array_equal(found[last], minimise_rows(objective.take(last), start[last]))
    norms = [np.linalg.norm(objective(points)[1], axis=1) for points in (found, start)]
    assert (norms[0] <= 1.1e-5 * norms[1]).all()


@pytest.mark.parametrize("model", [MMMF(**SETTINGS), MarginEnsemble(["mmmf"], n_estimators=2)])
def test_users_then_items_and_then_lists(model):
    # The original model, which learns what users have, does not know the new items.
    folded = model.fit(PAIRS[IS_TRAINED], RATINGS[IS_TRAINED]).fold_in(*NEW)
    users = np.unique(NEW[0][:, 0])[:4]
    pairs = np.column_stack([users, np.full(4, 999)])
    listed = folded.update_items(pairs, [1, 3, 4, 5]).recommend(users, n=5)
    assert len(listed) == 20
