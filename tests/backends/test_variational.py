"""Each step of variational max-margin factorisation finds what slow minimisation finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, xlogy

from marginmf.backends.cpu import variational

SEEDS = st.integers(0, 10_000)


class Problem:
    """Random ratings, factors and thresholds, with rows without ratings and equal scores."""

    def __init__(self, seed):
        rng = self.rng = np.random.default_rng(seed)
        self.n_users, self.n_items, self.n_factors = rng.integers(1, 6, 3)
        self.n_levels, self.cost = int(rng.integers(2, 6)), float(rng.choice([0.05, 0.3, 2.0]))
        self.margin, self.spread = float(rng.choice([1.0, 9.0])), 1.5
        self.rated = rng.random((self.n_users, self.n_items)) < rng.choice([0.2, 0.8])
        self.codes = rng.integers(0, self.n_levels, self.rated.shape).astype(np.int16)
        self.users = rng.random((self.n_users, self.n_factors))
        self.items = 5 * rng.normal(size=(self.n_items, self.n_factors))
        if seed % 3 == 0:  # ties
            self.items, self.users = np.round(self.items), np.full(self.users.shape, 0.5)
        self.centres = np.arange(self.n_levels - 1) * self.margin
        noise = rng.normal(size=(self.n_users, self.n_levels - 1))
        self.thresholds = self.centres + self.margin * noise
        self.odds = rng.normal(size=self.n_factors)

    def view(self, side):
        """Return the compressed rows of one side."""
        rated, codes = (a if side == "user" else a.T for a in (self.rated, self.codes))
        indptr = np.concatenate(([0], np.cumsum(rated.sum(axis=1))))
        return indptr, np.nonzero(rated)[1].astype(np.int32), codes[rated]

    def hinges(self, x, code, thresholds):
        """Return the sum over thresholds of max(0, margin - T (threshold - x))."""
        T = np.where(code <= np.arange(len(thresholds)), 1.0, -1.0)
        return np.maximum(0.0, self.margin - T * (thresholds - x)).sum()

    def losses(self, users, items, thresholds):
        return self.cost * sum(
            self.hinges(users[i] @ items[j], self.codes[i, j], thresholds[i])
            for i, j in zip(*np.nonzero(self.rated), strict=True)
        )

    def improved_users(self, n_rounds, start=0, stop=None):
        users, thresholds = self.users.copy(), self.thresholds.copy()
        losses = np.zeros(self.n_users)
        given = self.items, self.odds, self.centres, self.spread, self.cost, self.margin, n_rounds
        stop = self.n_users if stop is None else stop
        variational.improve_users(
            start, stop, *self.view("user"), *given, users, thresholds, losses
        )
        return users, thresholds, losses

    def improved_items(self, n_passes, duals, offsets):
        items = self.items.copy()
        given = self.users, offsets, self.thresholds, self.cost, self.margin, n_passes, 1e-12
        variational.improve_items(0, self.n_items, *self.view("item"), *given, duals, items)
        return items


def best_of(candidates, value):
    return min(candidates, key=value)


def improved_user_slowly(problem, i):
    """Try every kink and every stationary point, coordinate after coordinate."""
    own, theta = problem.users[i].copy(), problem.thresholds[i].copy()
    rated = np.flatnonzero(problem.rated[i])
    V, codes = problem.items[rated], problem.codes[i, rated]

    def total(p, k, v):
        p = np.where(np.arange(len(p)) == k, v, p)
        hinges = [problem.hinges(x, c, theta) for x, c in zip(V @ p, codes, strict=True)]
        entropy = xlogy(v, v) + xlogy(1 - v, 1 - v) - problem.odds[k] * v
        return problem.cost * sum(hinges) + entropy

    for k in range(len(own)):
        rest = V @ own - V[:, k] * own[k]
        with np.errstate(divide="ignore", invalid="ignore"):
            kinks = np.concatenate(
                [((theta + s) - rest[:, None]).ravel() for s in (problem.margin, -problem.margin)]
            ) / np.tile(np.repeat(V[:, k], len(theta)), 2)
        kinks = kinks[(kinks > 0) & (kinks < 1)]
        edges = np.concatenate(([0.0], np.sort(kinks), [1.0]))
        middles = (edges[:-1] + edges[1:]) / 2
        slopes = []
        for v in middles:
            x = rest + V[:, k] * v
            T = np.where(codes[:, None] <= np.arange(len(theta)), 1.0, -1.0)
            active = problem.margin - T * (theta - x[:, None]) > 0
            slopes.append(problem.cost * (T * active * V[:, [k]]).sum())
        stationary = expit(problem.odds[k] - np.array(slopes))
        tries = np.clip(np.concatenate([kinks, stationary]), 1e-10, 1 - 1e-10)
        own[k] = best_of(tries, lambda v, k=k: total(own, k, v))
    x, found = V @ own, theta.copy()
    for r in range(len(theta)):
        T = np.where(codes <= r, 1.0, -1.0)

        def value(t, r=r, T=T):
            hinges = np.maximum(0.0, problem.margin - T * (t - x)).sum()
            return problem.cost * hinges + 0.5 * ((t - problem.centres[r]) / problem.spread) ** 2

        counts = np.arange(-len(x), len(x) + 1)
        tries = problem.centres[r] - problem.spread**2 * problem.cost * counts
        found[r] = best_of([*tries, *(x + problem.margin * T)], value)
    return own, found


@settings(deadline=None)
@given(SEEDS)
def test_users_are_improved_coordinate_after_coordinate(seed):
    problem = Problem(seed)
    users, thresholds, losses = problem.improved_users(1)
    for i in range(problem.n_users):
        own, theta = improved_user_slowly(problem, i)
        np.testing.assert_allclose(users[i], own, atol=1e-7)
        np.testing.assert_allclose(thresholds[i], theta, atol=1e-6)
    penalty = 0.5 * np.square((thresholds - problem.centres) / problem.spread).sum()
    expected = problem.losses(users, problem.items, thresholds) + penalty
    assert losses.sum() == pytest.approx(expected)


@settings(deadline=None)
@given(SEEDS)
def test_no_rounds_change_nothing(seed):
    problem = Problem(seed)
    users, thresholds, losses = problem.improved_users(0)
    assert np.array_equal(users, problem.users)
    assert np.array_equal(thresholds, problem.thresholds)
    penalty = 0.5 * np.square((thresholds - problem.centres) / problem.spread).sum()
    expected = problem.losses(users, problem.items, thresholds) + penalty
    assert losses.sum() == pytest.approx(expected)


@settings(deadline=None)
@given(SEEDS)
def test_users_do_not_depend_on_one_another(seed):
    problem = Problem(seed)
    whole = problem.improved_users(3)
    i = problem.n_users - 1
    alone = problem.improved_users(3, i, i + 1)
    for one, other in zip(whole, alone, strict=True):
        assert np.array_equal(one[i], other[i])


def solved_item_slowly(problem, rated, codes, offsets):
    """Return factors from the dual problem with one number for each hinge, and its value."""
    U, theta = problem.users[rated], problem.thresholds[rated]
    T = np.where(codes[:, None] <= np.arange(theta.shape[1]), 1.0, -1.0)
    gaps = (problem.margin - T * (theta - offsets[rated, None])).ravel()
    A = (T[:, :, None] * U[:, None, :]).reshape(gaps.size, problem.n_factors)

    def dual(a):
        v = -a @ A
        return 0.5 * v @ v - a @ gaps, -A @ v - gaps

    bounds = [(0, problem.cost)] * gaps.size
    found = minimize(dual, np.zeros(gaps.size), jac=True, bounds=bounds, tol=1e-14)
    return -found.x @ A, -found.fun


@settings(deadline=None)
@given(SEEDS)
def test_items_are_solved_as_quadratic_programs(seed):
    problem = Problem(seed)
    offsets = problem.rng.normal(size=problem.n_users)
    duals = np.zeros(problem.rated.sum())
    items = problem.improved_items(20_000, duals, offsets)
    indptr = problem.view("item")[0]
    for j in range(problem.n_items):
        rated = np.flatnonzero(problem.rated[:, j])
        if not rated.size:
            assert not items[j].any()
            continue
        codes, own = problem.codes[rated, j], duals[indptr[j] : indptr[j + 1]]

        def value(v, rated=rated, codes=codes):
            x = offsets[rated] + problem.users[rated] @ v
            each = zip(x, codes, problem.thresholds[rated], strict=True)
            return 0.5 * v @ v + problem.cost * sum(problem.hinges(*one) for one in each)

        slow, bound = solved_item_slowly(problem, rated, codes, offsets)
        found = value(items[j])
        assert found <= value(slow) + 1e-5 * (1 + found)
        assert found >= bound - 1e-5 * (1 + found)
        # The dual numbers prove that nothing is better: the gap between the problems is closed.
        v = -own @ problem.users[rated]
        least = own @ offsets[rated] - 0.5 * v @ v
        for code, theta, b in zip(codes, problem.thresholds[rated], own, strict=True):
            kinks = np.concatenate([theta + problem.margin, theta - problem.margin])
            least += min(problem.cost * problem.hinges(x, code, theta) - b * x for x in kinks)
        assert found == pytest.approx(least, rel=1e-4, abs=1e-4)


@settings(deadline=None)
@given(SEEDS, st.integers(1, 3))
def test_few_passes_from_stale_duals_never_raise_the_objective(seed, n_passes):
    problem = Problem(seed)
    offsets, n = np.zeros(problem.n_users), int(problem.rated.sum())
    codes = problem.view("item")[2]
    # A slope of the loss is between minus the code and the number of levels above it.
    shares = problem.rng.random(n) * (problem.n_levels - 1) - codes
    items = problem.improved_items(n_passes, problem.cost * shares, offsets)
    before, after = (
        0.5 * np.square(V).sum() + problem.losses(problem.users, V, problem.thresholds)
        for V in (problem.items, items)
    )
    assert after <= before + 1e-9 * abs(before)


@settings(deadline=None)
@given(SEEDS)
def test_proximal_of_many_kinks_in_any_order(seed):
    rng = np.random.default_rng(seed)
    kinks = np.round(rng.normal(size=rng.integers(0, 30)), int(rng.integers(0, 3)))
    centre, step, lowest = rng.normal(), float(rng.exponential()), float(rng.integers(0, 31))
    expected = variational.proximal(centre, step, lowest, np.sort(kinks))
    assert variational.proximal_of_many(centre, step, lowest, kinks) == expected
