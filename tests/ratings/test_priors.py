"""Who rated what, and side information, as a prior: the mathematics, against dense matrices."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from marginmf.backends import get_backend
from marginmf.backends.specs import Thresholds
from marginmf.losses import smooth_hinge
from marginmf.ratings import ALS, HMF, MMMF, PMF, Ratings
from marginmf.ratings.features import Features
from marginmf.ratings.fitting.new_rows import NewRows
from marginmf.ratings.fitting.objective import FactorObjective, Parameters
from marginmf.ratings.fitting.priors import (
    FEW_RATINGS,
    TIED,
    Penalties,
    Prior,
    Priors,
    common_direction,
    raters,
    regression_weights,
)

N_USERS, N_ITEMS, N_COLD = 30, 24, 4
sample = settings(max_examples=30, deadline=None)
sides = pytest.mark.parametrize("side", ["user", "item"])


def make_data(seed=0, observed=0.4, features="", cold=0):
    """Return random ratings, where wanted with features of users and items, and cold items."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(3, size=N_USERS), rng.integers(4, size=N_ITEMS)
    factors = [
        rng.normal(size=(4, 2))[kind] + 0.4 * rng.normal(size=(len(kind), 2)) for kind in kinds
    ]
    pairs = np.argwhere(rng.random((N_USERS, N_ITEMS)) < observed)
    pairs = pairs[pairs[:, 1] < N_ITEMS - cold]
    scores = np.einsum("kp,kp->k", factors[0][pairs[:, 0]], factors[1][pairs[:, 1]])
    values = np.clip(np.round(3 + scores + 0.3 * rng.normal(size=len(scores))), 1, 5)
    tables = {
        f"{side}_features": {side: np.arange(len(kind)), "kind": [f"k{k}" for k in kind]}
        for side, kind in zip(("user", "item"), kinds, strict=True)
        if features in (side, "both")
    }
    return Ratings.of(pairs, values, levels=[1, 2, 3, 4, 5], **tables)


def pairs_of(data):
    return set(zip(data.rows.tolist(), data.indices.tolist(), strict=True))


def pairs_in(matrix, side):
    """Return the (user, item) pairs that a matrix of raters holds."""
    rows, columns = matrix.nonzero()
    users, items = (rows, columns) if side == "user" else (columns, rows)
    return set(zip(users.tolist(), items.tolist(), strict=True))


# The matrices


@sides
@given(seed=st.integers(0, 999))
@sample
def test_raters_are_the_pairs_in_rows_of_unit_length(side, seed):
    data = make_data(seed, observed=0.1)
    matrix = raters(data, side)
    assert pairs_in(matrix, side) == pairs_of(data)
    lengths = np.linalg.norm(matrix.toarray(), axis=1)
    counts = np.diff((data if side == "user" else data.by_item).indptr)
    np.testing.assert_allclose(lengths, counts > 0, rtol=1e-6)


@pytest.mark.parametrize(
    ("implicit", "features", "expected"),
    [
        (None, "", None),
        ("items", "", [[], ["raters"]]),
        ("users", "", [["raters"], []]),
        ("both", "item", [["raters"], ["raters", "features"]]),
        (None, "user", [["features"], []]),
    ],
)
def test_what_factors_are_built_from(implicit, features, expected):
    found = Priors.of(make_data(features=features), Penalties(implicit))
    blocks = None if found is None else [list(prior.blocks) for prior in found]
    assert blocks == expected


def test_common_direction_is_the_first_singular_vector():
    prior = Prior.of(data := make_data(), "item", Penalties("items"))
    weighted = np.sqrt(np.diff(data.by_item.indptr))[:, None] * prior.matrix.toarray()
    _, values, vectors = np.linalg.svd(weighted)
    direction, damping = common_direction(prior.matrix, prior.counts, np.ones(N_USERS))
    assert abs(direction @ vectors[0]) > 0.99
    assert np.linalg.norm(direction) == pytest.approx(1, abs=1e-5)
    assert damping == pytest.approx(values[1] / values[0], rel=0.1)


# The objective


@given(
    seed=st.integers(0, 999),
    implicit=st.sampled_from(["items", "users", "both"]),
    features=st.sampled_from(["", "user", "item", "both"]),
    cold=st.sampled_from([0, N_COLD]),
    regs=st.tuples(st.floats(0.1, 30), st.floats(0.1, 30), st.sampled_from([None, 0.5, 8.0])),
)
@sample
def test_parameters_are_joined_and_split(seed, implicit, features, cold, regs):
    data, (reg, reg_implicit, reg_features) = make_data(seed, 0.2, features, cold), regs
    found = Priors.of(data, Penalties(implicit, reg_implicit, reg_features))
    spec, backend, rng = Thresholds(smooth_hinge), get_backend("cpu"), np.random.default_rng(seed)
    coordinates = found.coordinates(reg)
    shape = (data.n_items, 3)
    placed = backend.place(data, spec, reg, shape, np.float64, found.features)
    objective = FactorObjective(backend, placed.asking(spec, reg, coordinates), found, coordinates)
    shapes = [(data.n_users, 3), shape, (data.n_users, data.n_levels - 1)]
    users, items, thresholds = (rng.normal(size=each) for each in shapes)
    weights = tuple(rng.normal(size=(matrix.shape[1], 3)) for matrix in found.features)
    point = objective.join(Parameters(users, items, thresholds, weights))
    again = objective.split(point)
    for a, b in zip(
        (*again[:3], *again.weights), (users, items, thresholds, *weights), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-8)
    np.testing.assert_allclose(objective.join(again), point, atol=1e-8)


def kernel_inverse(data, side, penalties, reg):
    """Return what the penalty of effective factors is made of, in dense matrices.

    ``reg/2 |V|^2 + 1/2 sum_f reg_f |X_f|^2`` at its least over all V + B X = F is
    ``reg/2 tr F' (I + sum_f reg/reg_f B_f B_f')^-1 F``.
    """
    prior = Prior.of(data, side, penalties)
    kernel = np.eye(prior.matrix.shape[0])
    for name in prior.blocks:
        B, own = (
            prior.matrix[:, prior.block(name)].toarray().astype(float),
            getattr(penalties, name),
        )
        kernel += (1 / TIED[name] if own is None else reg / own) * B @ B.T
    return np.linalg.inv(kernel)


@pytest.mark.parametrize(
    ("implicit", "features", "reg_implicit", "reg_features"),
    [
        ("items", "", "auto", "auto"),
        ("items", "", 1.5, "auto"),
        ("users", "", 9.0, "auto"),
        ("both", "", 2.0, "auto"),
        (None, "item", "auto", 0.7),
        ("both", "both", 2.0, 5.0),
    ],
)
def test_effective_factors_minimise_the_kernel_form(implicit, features, reg_implicit, reg_features):
    data, reg = make_data(features=features), 4.0
    regs = {"reg_implicit": reg_implicit, "reg_features": reg_features}
    settings = {"dtype": "float64", "tol": 1e-14, "max_iter": 5000, "calibrate": False}
    model = PMF(3, reg, implicit=implicit, random_state=0, **regs, **settings).fit(data)
    U, V = model.user_factors_, model.item_factors_
    inverses = [kernel_inverse(data, side, model._penalties, reg) for side in ("user", "item")]

    def of(inverses):
        """Return the kernel form, and its gradients by U and V, at the solution."""
        errors = np.zeros((N_USERS, N_ITEMS))
        errors[data.rows, data.indices] = data.values - data.values.mean()
        errors[data.rows, data.indices] -= (U @ V.T)[data.rows, data.indices]
        value = np.sum(errors**2)
        for factors, inverse in zip((U, V), inverses, strict=True):
            value += reg / 2 * np.trace(factors.T @ inverse @ factors)
        by_U = -2 * errors @ V + reg * inverses[0] @ U
        by_V = -2 * errors.T @ U + reg * inverses[1] @ V
        return value, max(np.abs(by_U).max(), np.abs(by_V).max())

    value, slope = of(inverses)
    assert model.history_[-1].objective == pytest.approx(value, rel=1e-6)
    assert slope < 2e-3
    assert np.abs(U @ V.T).max() > 0.3
    # Under the penalty of factors without features it is far from a minimum.
    assert of([np.eye(N_USERS), np.eye(N_ITEMS)])[1] > 0.2


@pytest.mark.parametrize(
    ("implicit", "features", "cold"),
    [
        *product([None, "items", "users", "both"], ["", "item", "both"], [N_COLD]),
        (None, "", 0),
        ("both", "", 0),
        ("both", "both", 0),
    ],
)
def test_als_never_rises_and_ends_where_pmf_does(implicit, features, cold):
    data = make_data(3, features=features, cold=cold)
    shared = {"implicit": implicit, "random_state": 0, "calibrate": False, "dtype": "float64"}
    als = ALS(3, 4.0, max_iter=1000, tol=1e-9, **shared).fit(data)
    values = [record.objective for record in als.history_]
    assert max(np.diff(values)) <= 1e-9
    # There are two minima near each other, and chance decides which one is found.
    pmf = PMF(3, 4.0, max_iter=1000, tol=1e-9, **shared).fit(data)
    assert values[-1] == pytest.approx(pmf.history_[-1].objective, rel=0.01)
    assert als.history_[-1].gradient_norm < 0.01 * als.history_[0].gradient_norm


@pytest.mark.parametrize("features", ["", "both"])
def test_improved_weights_are_those_of_a_ridge_regression(features):
    prior = Prior.of(make_data(features=features), "item", Penalties("both", 2.0, 7.0))
    rng, reg = np.random.default_rng(0), 3.0
    factors, B = rng.normal(size=(N_ITEMS, 2)), prior.matrix.toarray().astype(float)
    penalties = np.repeat([2.0, 7.0][: len(prior.blocks)], np.diff([0, *prior.blocks.values()]))
    expected = np.linalg.solve(reg * B.T @ B + np.diag(penalties), reg * B.T @ factors)
    start = rng.normal(size=expected.shape)
    np.testing.assert_allclose(prior.improved(start, factors, reg, 200), expected, atol=1e-6)

    def penalty(weights):
        return reg * np.sum((factors - B @ weights) ** 2) + penalties @ np.sum(weights**2, axis=1)

    along = [penalty(prior.improved(start, factors, reg, n)) for n in range(6)]
    assert (np.diff(along) < 0).all()


# Rows without ratings


@pytest.mark.parametrize("features", ["", "item"])
def test_unrated_rows_are_taken_to_have_the_raters_of_rows_like_them(features):
    data = make_data(5, features=features, cold=N_COLD)
    if not features:
        data = make_data(5).subset(np.arange(len(make_data(5))) % 9 > 0)
        data = data.subset(~np.isin(data.indices, [2, 20]))
    prior = Prior.of(data, "item", Penalties("items"))
    unrated = np.flatnonzero(prior.counts == 0)
    assert len(unrated) >= 2
    weights = np.random.default_rng(0).normal(size=(prior.matrix.shape[1], 2))
    dense, own = prior.matrix.toarray().astype(float), prior.block("raters")
    if features:
        B, W = dense[:, prior.block("features")], np.diag(prior.counts)
        of_users = np.linalg.solve(B.T @ W @ B + FEW_RATINGS * np.eye(B.shape[1]), B.T @ W)
        expected_raters = B[unrated] @ of_users @ dense[:, own]
    else:
        mean = prior.counts @ dense[:, own] / prior.counts.sum()
        expected_raters = np.tile(mean, (len(unrated), 1))
    filled = dense.copy()
    filled[unrated, own] = expected_raters
    np.testing.assert_allclose(prior.means(weights), filled @ weights, atol=1e-5)


# New rows


@pytest.mark.parametrize(
    ("reg", "penalties"), [(3.0, Penalties("both", 2.0, 7.0)), (5.0, Penalties("items"))]
)
def test_means_of_new_rows_are_the_dense_ridge_formula(reg, penalties):
    # More new rows than are worked on at a time, with the features of known ones.
    known, rng = make_data(6, features="item"), np.random.default_rng(1)
    pairs = [(user, 1000 + k) for k in range(80) for user in rng.choice(N_USERS, 5, replace=False)]
    new = Ratings.of(pairs, np.full(len(pairs), 3.0), levels=known.levels, users=known.users)
    features, drawn = known.item_features, rng.integers(N_ITEMS, size=new.n_items)
    new = new.described("item", Features(features.matrix[drawn], features.encoder))
    factors = rng.normal(size=(N_ITEMS, 3))
    new_rows = NewRows("item", known, new)
    assert new_rows.fresh.all()
    new_rows.fresh[:] = False  # their raters are what they are
    means = new_rows.means(penalties, reg, factors)
    prior, own = (Prior.of(data, "item", penalties) for data in (known, new))
    squares = prior.scales(reg) ** 2
    B, b = prior.matrix.toarray().astype(float), own.matrix.toarray().astype(float)
    K = np.linalg.solve(B * squares @ B.T + np.eye(N_ITEMS), B * squares @ b.T)
    np.testing.assert_allclose(means, K.T @ factors, atol=1e-5)
    # What is kept for the next member does not depend on the factors.
    np.testing.assert_allclose(new_rows.means(penalties, reg, -factors), -means, atol=1e-12)


def test_raters_to_come_are_between_those_that_came_and_those_expected():
    prior = Prior.of(make_data(6), "item", Penalties("items"))
    own, expected = np.full((3, 4), 0.5), np.full((3, 4), 0.1)
    none, few, many = prior.to_come(own, np.array([0, 5, 20]), expected)
    np.testing.assert_allclose(none, expected[0])
    np.testing.assert_array_equal(many, own[0])
    # Five raters stand for as many as a rating's item has on average; with twenty they are all.
    usual = (prior.counts**1.5).sum() / prior.counts.sum()
    stretched = own[0] * max(usual / np.sqrt(5), 1)
    sample = (5 * stretched + 10 * expected[0]) / 15
    np.testing.assert_allclose(few, 0.75 * sample + 0.25 * own[0])


def test_the_mean_of_a_new_row_does_not_depend_on_the_others():
    known, rng = make_data(7), np.random.default_rng(2)
    scales = np.ones(N_USERS)
    matrix = raters(known, "item")
    new = csr_array(rng.random((90, N_USERS)) * (rng.random((90, N_USERS)) < 0.3))
    together = regression_weights(matrix, scales, new)
    for row in (0, 17, 89):
        alone = regression_weights(matrix, scales, new[[row]])
        np.testing.assert_array_equal(alone[:, 0], together[:, row])


@pytest.mark.parametrize("features", ["", "item"])
def test_the_threads_of_blas_do_not_change_means(features):
    # Of a size where they would: products of 64 x 1700 and 1700 x 16.
    rng = np.random.default_rng(0)
    pairs = np.argwhere(rng.random((40, 1700)) < 0.2)
    table = {"item": np.arange(1800), "kind": [f"k{k % 5}" for k in range(1800)]}
    known = Ratings.of(pairs, pairs[:, 0] % 2, item_features=table if features else None)
    new = known.subset(known.indices >= 64)
    prior = Prior.of(new, "item", Penalties("items"))
    weights = rng.normal(size=(prior.matrix.shape[1], 16)).astype(np.float32)
    factors = rng.normal(size=(known.n_items, 16)).astype(np.float32)
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, "blas"):
            new_rows = NewRows("item", known, new)
            found.append([prior.means(weights), new_rows.means(prior.penalties, 3.0, factors)])
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("implicit", ["items", "both"])
@pytest.mark.parametrize("make", [PMF, MMMF, HMF])
def test_a_known_item_folded_in_by_its_own_ratings_is_itself_again(make, implicit):
    data, tight = make_data(8), {"tol": 1e-13, "max_iter": 3000, "dtype": "float64"}
    model = make(3, 3.0, implicit=implicit, random_state=0, calibrate=False, **tight).fit(data)
    mine = np.isin(data.indices, [3, 11])
    pairs = np.column_stack([data.rows, data.indices])[mine]
    folded = model.fold_in_items(pairs, data.values[mine])
    before, after = model.item_factors_, folded.item_factors_
    moved = np.abs(after - before[..., [3, 11], :]).max()
    assert moved < 0.02 * np.abs(before).max()
