"""The kernels of attitude models: the digamma function, ranges of rows, and extreme numbers.

What they compute is compared with plain NumPy in the tests of `URP` and `Attitude`.
"""

import numpy as np
import pytest
from scipy.special import psi

from marginmf.backends.cpu.attitudes import (
    LARGEST_LOGIT,
    attitude_items,
    attitude_pairs,
    attitude_users,
    fill_digamma,
    profile_items,
    profile_pairs,
    profile_users,
)

N_USERS, N_ITEMS, N_LEVELS, K = 13, 7, 4, 3


def digamma(x):
    out = np.empty(len(x))
    fill_digamma(0, len(x), np.asarray(x, float), out)
    return out


def test_digamma_is_that_of_scipy():
    x = np.concatenate([np.geomspace(1e-9, 1e9, 20_001), np.arange(1.0, 200.0) / 2])
    expected = psi(x)
    error = np.abs(digamma(x) - expected)
    assert (error / np.maximum(1.0, np.abs(expected))).max() < 5e-15


def test_digamma_around_its_root_and_where_the_series_begins():
    near_root = 1.4616321449683622 + np.linspace(-1e-3, 1e-3, 201)
    np.testing.assert_allclose(digamma(near_root), psi(near_root), atol=2e-15)
    below, above = np.nextafter(8.0, 0.0), 8.0
    assert abs(np.diff(digamma([below, above]))[0]) < 5e-15


def ratings(seed=0, share=0.5):
    """Return ratings in rows of users: ends, items, codes; the third user has none."""
    rng = np.random.default_rng(seed)
    marked = rng.random((N_USERS, N_ITEMS)) < share
    marked[2] = False
    indptr = np.concatenate(([0], marked.sum(axis=1).cumsum()))
    items = np.nonzero(marked)[1].astype(np.int32)
    return indptr, items, rng.integers(0, N_LEVELS, len(items)).astype(np.int16)


def calls():
    """Every kernel with its number of rows, its arguments, and which of them it writes to."""
    rng = np.random.default_rng(1)
    beta = rng.dirichlet(np.ones(N_LEVELS), (N_ITEMS, K)).transpose(0, 2, 1).copy()
    gamma, prior = rng.gamma(2.0, size=(N_USERS, K)), np.array([0.5, 1.0, 2.0])
    proposals = rng.standard_normal((N_ITEMS, N_LEVELS, K + 1))
    chances, logits = rng.random((N_USERS, K)), rng.standard_normal(K)
    users = rng.integers(0, N_USERS, 40).astype(np.int32)
    items = rng.integers(0, N_ITEMS, 40).astype(np.int32)
    by_user = ratings()
    # Rows of "items" that users of the same number have rated: any rows will do here.
    indptr, indices, codes = by_user
    first = indptr[N_ITEMS]
    by_item = indptr[: N_ITEMS + 1], (indices[:first] + 3).astype(np.int32), codes[:first]
    pseudo_counts = rng.random((N_ITEMS, N_LEVELS)) + 0.1
    out = [np.zeros((N_USERS, K)), np.zeros((N_USERS, K)), np.zeros(N_USERS)]
    pairs = np.zeros((40, N_LEVELS))
    by_level = [np.ascontiguousarray(a.transpose(1, 0, 2)) for a in (beta, np.exp(proposals))]
    return {
        profile_users: (N_USERS, [*by_user, beta, prior, 3, 0.0, gamma, *out], (-3, -2, -1)),
        profile_items: (N_ITEMS, [*by_item, gamma, pseudo_counts, 2, beta], (-1,)),
        profile_pairs: (40, [users, items, gamma, by_level[0], pairs], (-1,)),
        attitude_users: (N_USERS, [*by_user, np.exp(proposals), logits, 3, chances], (-1,)),
        attitude_items: (
            N_ITEMS,
            [*by_item, chances, proposals, np.zeros(N_ITEMS), np.zeros_like(proposals)],
            (-2, -1),
        ),
        attitude_pairs: (40, [users, items, chances, by_level[1], pairs], (-1,)),
    }


@pytest.mark.parametrize("kernel", calls(), ids=lambda kernel: kernel.__name__)
def test_rows_do_not_depend_on_the_range_and_others_stay(kernel):
    n, whole, written = calls()[kernel]
    _, parts, _ = calls()[kernel]
    _, before, _ = calls()[kernel]
    kernel(0, n, *whole)
    for start, stop in ((5, n), (2, 3), (0, 2)):
        kernel(start, stop, *parts)
    for which in written:
        np.testing.assert_array_equal(parts[which][:3], whole[which][:3])
        np.testing.assert_array_equal(parts[which][3:5], before[which][3:5])
        np.testing.assert_array_equal(parts[which][5:], whole[which][5:])
        assert np.isfinite(whole[which]).all()


def test_a_user_without_ratings_keeps_to_the_prior():
    _, arguments, _ = calls()[profile_users]
    profile_users(0, N_USERS, *arguments)
    np.testing.assert_array_equal(arguments[-3][2], arguments[4])
    _, arguments, _ = calls()[attitude_users]
    attitude_users(0, N_USERS, *arguments)
    np.testing.assert_allclose(arguments[-1][2], 1 / (1 + np.exp(-arguments[4])), rtol=1e-15)


def test_the_bound_of_very_many_unlikely_ratings_is_finite():
    # Their product is far below the least number.
    n = 5_000
    indptr, items, codes = np.array([0, n]), np.zeros(n, np.int32), np.zeros(n, np.int16)
    beta = np.full((1, 2, K), 1e-12)
    gamma, prior, value = np.full((1, K), 1.0), np.full(K, 1.0), np.empty(1)
    changed, weights = np.empty((1, K)), np.empty((1, K))
    arguments = (beta, prior, 1, 0.0, gamma, changed, weights, value)
    profile_users(0, 1, indptr, items, codes, *arguments)
    expected = n * np.log(1e-12 * K * np.exp(psi(1.0) - psi(3.0)))
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(changed, 1.0 + n / K)


def test_log_odds_of_attitudes_are_bounded():
    n = 400
    indptr, items = np.array([0, n]), np.zeros(n, np.int32)
    proposals = np.zeros((1, 2, 3))
    proposals[0, 0, 1], proposals[0, 0, 2] = 5.0, -5.0
    chances = np.full((1, 2), 0.5)
    codes, tilts = np.zeros(n, np.int16), np.exp(proposals)
    attitude_users(0, 1, indptr, items, codes, tilts, np.zeros(2), 5, chances)
    logits = np.log(chances / (1 - chances))
    np.testing.assert_allclose(logits, [[LARGEST_LOGIT, -LARGEST_LOGIT]], rtol=1e-3)
