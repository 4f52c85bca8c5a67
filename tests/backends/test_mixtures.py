"""The kernels of hinge mixtures against quadrature, SciPy and loops in NumPy."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import logsumexp

from marginmf.backends.cpu import mixtures
from marginmf.ratings import Ratings

COST, MARGIN = 0.7, 1.0


@pytest.mark.parametrize("u", [-3.0, -0.2, 0.4, 2.5])
def test_the_hinge_is_a_mixture_of_gaussians(u):
    # Over the root of the scale, which has no singularity at zero.
    found, _ = quad(
        lambda s: 2 * np.exp(-((s * s + u) ** 2) / (2 * s * s)) / np.sqrt(2 * np.pi),
        *(0, np.inf),
        epsabs=1e-13,
    )
    assert found == pytest.approx(np.exp(-2 * max(0.0, u)), rel=1e-10)


def scales(mean, n, seed=0):
    """Return n draws of 1 / scale whose mean is this, from the kernel of weights."""
    rng = np.random.default_rng(seed)
    distances, out = np.full(n, 2 / (COST * mean)), np.empty(n)
    mixtures.draw_weights(distances, COST, rng.standard_normal(n), rng.random(n), out)
    return out / (COST**2 / 4)


@pytest.mark.parametrize("mean", [0.3, 1.0, 10.0, 1e3, 1e6, 1e9])
def test_scales_are_inverse_gaussian(mean):
    drawn = scales(mean, 200_000)
    # With shape 1: SciPy's is that of mean mu / scale, and of shape scale.
    exact = stats.invgauss(mean)
    for share in (0.001, 0.05, 0.25, 0.5, 0.75, 0.95, 0.999):
        # As far from the share as chance allows: the quantile itself is wild in the tail.
        below = (drawn <= exact.ppf(share)).mean()
        assert below == pytest.approx(share, abs=4.5 * np.sqrt(share * (1 - share) / len(drawn)))


def test_weights_of_scores_at_the_corner_of_the_hinge_are_finite():
    rng, out = np.random.default_rng(1), np.empty(1000)
    mixtures.draw_weights(np.zeros(1000), COST, rng.standard_normal(1000), rng.random(1000), out)
    assert np.isfinite(out).all()
    assert (out > 0).all()
    mixtures.draw_weights(np.zeros(2), COST, np.zeros(2), np.array([0.0, 1 - 1e-16]), out[:2])
    assert np.isfinite(out[:2]).all()


def problem(n_levels=5, seed=0):
    """Some ratings by 7 users, the last of whom has none, with factors and thresholds."""
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(6) for j in range(9) if rng.random() < 0.6]
    codes = rng.integers(n_levels, size=len(pairs))
    codes[:n_levels] = np.arange(n_levels)
    users = Ratings.of([(i, 0) for i in range(7)], np.arange(7)).users
    data = Ratings.of(pairs, codes, users=users)
    U, V = rng.normal(size=(7, 3)), rng.normal(size=(data.n_items, 3))
    return rng, data, U, V, rng.normal(size=(7, n_levels - 1))


def plain_weight(zeta, normal, uniform):
    """The sampler as its authors have it, for means that are not too large."""
    mu = 2 / (COST * abs(zeta))
    t = mu * normal**2
    smaller = mu + mu * t / 2 - mu / 2 * np.sqrt(4 * t + t * t)
    scale = smaller if uniform <= mu / (mu + smaller) else mu**2 / smaller
    return COST**2 / 4 * scale


def plain_terms(data, x, thresholds, prior, noise, own, updates):
    """Both kernels of terms as loops; thresholds are those of entries, or replaced."""
    w, b, thresholds = np.zeros(len(data)), np.zeros(len(data)), thresholds.copy()
    for i in range(data.n_rows):
        entries = range(data.indptr[i], data.indptr[i + 1])
        for r in range(data.n_levels - 1):
            signs, omegas = [], []
            for position, k in enumerate(entries):
                row = i if updates else data.indices[k]
                sign = 1.0 if data.codes[k] <= r else -1.0
                zeta = MARGIN - sign * (thresholds[row, r] - x[k])
                mean = COST / (2 * abs(zeta))
                drawn = noise.shape[2] > 0
                omegas.append(plain_weight(zeta, *noise[:, r, position]) if drawn else mean)
                signs.append(sign)
            signs, omegas, scores = np.array(signs), np.array(omegas), x[list(entries)]
            if updates:
                p = prior[1, r] + omegas.sum()
                m = prior[1, r] * prior[0, r]
                m += (omegas * (scores + signs * MARGIN) + COST / 2 * signs).sum()
                thresholds[i, r] = m / p + own[i, r] / np.sqrt(p)
            for position, k in enumerate(entries):
                theta = thresholds[i if updates else data.indices[k], r]
                w[k] += omegas[position]
                b[k] += omegas[position] * (theta - signs[position] * MARGIN)
                b[k] -= COST / 2 * signs[position]
    return w, b, thresholds


@pytest.mark.parametrize("drawn", [True, False])
def test_terms_of_users_are_those_of_loops(drawn):
    rng, data, U, V, thresholds = problem()
    prior = np.stack([rng.normal(size=4), rng.gamma(2.0, size=4)])
    noise = np.stack([rng.normal(size=(4, 9)), rng.random((4, 9))])[:, :, : 9 * drawn]
    own = rng.normal(size=(7, 4))
    x = np.einsum("kf,kf->k", U[data.rows], V[data.indices])
    expected = plain_terms(data, x, thresholds, prior, noise, own, updates=True)
    w, b, found = np.empty(len(data)), np.empty(len(data)), thresholds.copy()
    entries = (data.indptr, data.indices, data.codes)
    arguments = (*entries, U, V, prior, COST, MARGIN, np.ascontiguousarray(noise), own, True)
    mixtures.user_terms(0, 7, *arguments, found, w, b)
    for one, other in zip((w, b, found), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    # A user without ratings has a threshold of the prior.
    np.testing.assert_allclose(found[6], prior[0] + own[6] / np.sqrt(prior[1]))


def test_rows_have_noise_of_their_own_unless_it_is_shared():
    rng, data, U, V, thresholds = problem()
    prior, n = np.stack([np.zeros(4), np.ones(4)]), len(data)
    own, noise = rng.normal(size=(7, 4)), np.stack([rng.normal(size=(4, n)), rng.random((4, n))])
    entries = (data.indptr, data.indices, data.codes)
    whole = [thresholds.copy(), np.empty(n), np.empty(n)]
    apart = [thresholds.copy(), np.empty(n), np.empty(n)]
    arguments = (*entries, U, V, prior, COST, MARGIN)
    mixtures.user_terms(0, 7, *arguments, noise, own, False, *whole)
    for start, stop in ((0, 3), (3, 4), (4, 7)):
        part = np.ascontiguousarray(noise[:, :, data.indptr[start] : data.indptr[stop]])
        mixtures.user_terms(start, stop, *arguments, part, own[start:stop], False, *apart)
    for one, other in zip(whole, apart, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("drawn", [True, False])
def test_terms_of_items_are_those_of_loops(drawn):
    rng, data, U, V, thresholds = problem()
    rows = data.by_item
    noise = np.stack([rng.normal(size=(4, 9)), rng.random((4, 9))])[:, :, : 9 * drawn]
    x = np.einsum("kf,kf->k", V[rows.rows], U[rows.indices])
    expected = plain_terms(rows, x, thresholds, None, noise, None, updates=False)
    w, b = np.empty(len(data)), np.empty(len(data))
    entries = (rows.indptr, rows.indices, rows.codes)
    arguments = (*entries, V, U, thresholds, COST, MARGIN, np.ascontiguousarray(noise))
    mixtures.item_terms(0, rows.n_rows, *arguments, w, b)
    for one, other in zip((w, b), expected, strict=False):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def hinges(x, thresholds, level):
    signs = np.where(level <= np.arange(len(thresholds)), 1.0, -1.0)
    return np.maximum(0.0, MARGIN - signs * (thresholds - x)).sum()


def test_hinge_sums_are_those_of_the_definition():
    _, data, U, V, thresholds = problem()
    out = np.empty(7)
    arguments = (data.indptr, data.indices, data.codes, U, V, thresholds, MARGIN)
    mixtures.hinge_sums(0, 7, *arguments, out)
    expected = np.zeros(7)
    for i, j, level in zip(data.rows, data.indices, data.codes, strict=True):
        expected[i] += hinges(U[i] @ V[j], thresholds[i], level)
    np.testing.assert_allclose(out, expected)


@pytest.mark.parametrize("cost", [0.7, 500.0])
def test_distributions_are_those_of_the_hinges(cost):
    rng, data, *_ = problem()
    U, V = rng.normal(size=(3, 7, 2)), rng.normal(size=(3, data.n_items, 2))
    thresholds, out = rng.normal(size=(3, 7, 4)), np.zeros((len(data), 5))
    pairs = (data.rows, data.indices)
    mixtures.add_distributions(0, len(data), *pairs, U, V, thresholds, cost, MARGIN, out)
    for p, (i, j) in enumerate(zip(*pairs, strict=True)):
        expected = np.zeros(5)
        for s in range(3):
            own = [-cost * hinges(U[s, i] @ V[s, j], thresholds[s, i], v) for v in range(5)]
            expected += np.exp(own - logsumexp(own))
        np.testing.assert_allclose(out[p], expected, rtol=1e-8, atol=1e-300)


def log_density(x, w, b):
    return (b * x - w * x * x / 2).sum()


def test_features_are_drawn_from_their_conditionals():
    rng, data, _, _, _ = problem()
    V, Z = rng.normal(size=(data.n_items, 4)), (rng.random((7, 4)) < 0.5).astype(float)
    w, b, log_odds = rng.gamma(1.0, size=len(data)), rng.normal(size=len(data)), rng.normal(size=4)
    log_odds[2] = -np.inf
    uniforms, found = rng.random((7, 4)), Z.copy()
    mixtures.draw_features(0, 7, data.indptr, data.indices, w, b, V, log_odds, uniforms, found)
    for i in range(7):
        own = slice(data.indptr[i], data.indptr[i + 1])
        for k in (0, 1, 3):
            densities = []
            for value in (0.0, 1.0):
                Z[i, k] = value
                densities.append(log_density(V[data.indices[own]] @ Z[i], w[own], b[own]))
            chance = 1 / (1 + np.exp(-(log_odds[k] + densities[1] - densities[0])))
            Z[i, k] = float(uniforms[i, k] < chance)
    np.testing.assert_array_equal(found, Z)


def test_births_have_the_chances_of_an_integral():
    # One rating: what c features add is normal, and integrated by quadrature.
    x, w, b, rate, variance = 0.4, 1.7, -1.1, 0.3, 1.5
    weights = [1.0]
    for c in range(1, 4):
        factor = stats.poisson.pmf(c, rate) / stats.poisson.pmf(0, rate)
        inner = lambda s, c=c: (  # noqa: E731
            np.exp(-w * (x + s) ** 2 / 2 + b * (x + s) + w * x * x / 2 - b * x)
            * stats.norm.pdf(s, scale=np.sqrt(c * variance))
        )
        weights.append(factor * quad(inner, -20, 20)[0])
    edges = np.cumsum(weights) / np.sum(weights)
    for n_new in range(4):
        for inside in (edges[n_new] - 1e-6, 1e-6 + (edges[n_new - 1] if n_new else 0.0)):
            assert births(x, w, b, rate, variance, 3, inside) == n_new


def births(x, w, b, rate, variance, most, uniform):
    """Ask for the births of the first of two rows, which have a feature in common."""
    indptr, indices = np.array([0, 1, 1]), np.zeros(1, np.int32)
    Z, counts = np.ones((2, 1)), np.array([2])
    uniforms = np.array([[uniform, 0.0], [0.0, 0.0]])  # both keep what they have
    entries = (np.arange(2), indptr, indices, np.array([w]), np.array([b]))
    arguments = (*entries, np.array([[x]]), Z, counts, 2 * rate, variance, most, 9, uniforms)
    scores = np.empty(1)
    position, n_new = mixtures.next_birth(0, *arguments, scores)
    assert position == (0 if n_new else 2)
    assert n_new == 0 or scores == x
    assert Z.all()
    return n_new


def test_features_of_one_row_alone_are_left_to_births():
    indptr, indices = np.array([0, 2, 3]), np.array([0, 1, 0], np.int32)
    Z, counts = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([2, 1])
    entries = (np.array([1, 0]), indptr, indices, np.full(3, 1e-9), np.zeros(3))
    uniforms = np.full((2, 3), 0.5)
    arguments = (*entries, np.ones((2, 2)), Z, counts, 1e-9, 1.0, 3, 9, uniforms, np.empty(2))
    assert mixtures.next_birth(0, *arguments) == (2, 0)
    assert Z[:, 1].sum() == counts[1] == 0
    np.testing.assert_array_equal(counts, Z.sum(axis=0))


def test_shared_features_are_drawn_given_those_of_the_row_alone():
    # A row has a feature that another one has too, and one of its own that weighs much.
    indptr, indices = np.array([0, 1, 2]), np.zeros(2, np.int32)
    V, w, b = np.array([[0.8, 2.0]]), np.array([1.3, 1.0]), np.array([1.1, 0.0])
    logit = np.log(1 / 1) + 0.8 * (b[0] - w[0] * (2.0 + 0.8 / 2))
    chance = 1 / (1 + np.exp(-logit))
    assert chance < 0.3
    assert 1 / (1 + np.exp(-0.8 * (b[0] - w[0] * 0.8 / 2))) > 0.6  # without its own
    for uniform, expected in ((chance - 1e-9, 1.0), (chance + 1e-9, 0.0)):
        Z, counts = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1, 1])
        uniforms = np.array([[0.0, uniform, 0.5], [0.0, 0.0, 0.5]])
        arguments = (np.arange(1), indptr, indices, w, b, V, Z, counts)
        mixtures.next_birth(0, *arguments, 1e-9, 1.0, 3, 9, uniforms, np.empty(1))
        np.testing.assert_array_equal(Z, [[expected, 0.0], [1.0, 0.0]])
        np.testing.assert_array_equal(counts, [1 + expected, 0])


def test_births_take_the_room_that_features_of_the_row_alone_leave():
    # Two features are shared, one is the second row's alone, and no more than three may be in use.
    indptr, indices = np.array([0, 1, 2]), np.zeros(2, np.int32)
    Z, counts = np.array([[1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 1.0]]), np.array([2, 0, 2, 1])
    entries = (np.arange(2), indptr, indices, np.full(2, 1e-9), np.zeros(2), np.ones((1, 4)))
    # All keep what is shared.  The first row finds no room, the second that which it has left.
    for uniform, expected in ((0.0, (2, 0)), (0.999, (1, 1))):
        uniforms = np.array(2 * [[uniform, 0.0, 0.0, 0.0, 0.9]])
        arguments = (*entries, Z.copy(), counts.copy(), 2.0, 1.0, 9, 3, uniforms, np.empty(1))
        assert mixtures.next_birth(0, *arguments) == expected
