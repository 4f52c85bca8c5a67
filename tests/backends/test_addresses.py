"""The same numbers give the same bits wherever in memory they lie, or fits could not be repeated.

Vector code looks at addresses before it runs, and takes another path where arrays seem to overlap.
"""

import numpy as np
import pytest

from marginmf.backends.cpu import attitudes, epochs, mixtures, sampling, variational

N_USERS, N_ITEMS, N_LEVELS, K = 30, 60, 5, 11
#: How many numbers further on an array may begin.
MOST = 16


def view(rng, n_rows, n_columns):
    """Return compressed rows: ends, columns, codes."""
    rated = rng.random((n_rows, n_columns)) < 0.5
    indptr = np.concatenate([[0], rated.sum(axis=1).cumsum()])
    indices = np.nonzero(rated)[1].astype(np.int32)
    return indptr, indices, rng.integers(0, N_LEVELS, len(indices)).astype(np.int16)


def calls():
    """Return arguments of the kernels that sum next to buffers of their own."""
    rng = np.random.default_rng(0)
    by_user, by_item = view(rng, N_USERS, N_ITEMS), view(rng, N_ITEMS, N_USERS)
    indptr, indices, codes = by_user
    n, rows = len(codes), np.repeat(np.arange(N_USERS, dtype=np.int32), np.diff(indptr))
    U, V = rng.normal(size=(N_USERS, K)), rng.normal(size=(N_ITEMS, K))
    thresholds, per_user = rng.normal(size=(N_USERS, N_LEVELS - 1)), np.zeros(N_USERS)
    prior = np.stack([rng.normal(size=N_LEVELS - 1), rng.gamma(2.0, size=N_LEVELS - 1)])
    noise = np.stack([rng.normal(size=(N_LEVELS - 1, n)), rng.random((N_LEVELS - 1, n))])
    weights, linear, odds = rng.gamma(1.0, size=n), rng.normal(size=n), rng.normal(size=K)
    terms = np.zeros(n), np.zeros(n)
    of_items = len(by_item[2])
    Z, chances = np.round(rng.random((N_USERS, K))), rng.random((N_USERS, K))
    beta = rng.dirichlet(np.ones(N_LEVELS), (N_ITEMS, K)).transpose(0, 2, 1).copy()
    proposals = rng.normal(size=(N_ITEMS, N_LEVELS, K + 1))
    by_level = np.exp(proposals).transpose(1, 0, 2).copy()
    tables = [np.zeros((N_USERS, K)) for _ in range(2)]
    points, (rbf, half) = 0.1 * rng.normal(size=(5, 150)), np.zeros((2, 150, 150))
    epochs.fill_covariance(points, 1.0, 1.0, 0.3, 0.5, rbf, half)
    covariance, z = half + np.triu(half, 1).T, rng.normal(size=150)
    root, inverse = np.linalg.cholesky(covariance).T.copy(), np.linalg.inv(covariance)
    about = points, root, z, 1.0, 1.0, 0.3, rng.normal(size=(9, 5))
    hinge, rest = (0.7, 1.0), (0.3, 1.0, 2)
    of_rows, of_all = (0, N_USERS, indptr, indices), (0, N_USERS, *by_user)
    of_hinges = (*hinge, noise, thresholds.copy(), False)
    return [
        (epochs.covariance_slopes, points, 1.0, rbf, inverse, z, 0 * points, z[:4]),
        (epochs.predict_points, *about, np.zeros(9), np.zeros(9)),
        (epochs.predictive_slopes, *about, np.zeros((9, 2, 5))),
        *(
            (epochs.multiply_rows, *of_rows, weights, abs(V), 0.1, kl, 3, 0.0, abs(U), per_user)
            for kl in (False, True)
        ),
        (attitudes.profile_users, *of_all, beta, odds**2, 3, 0.0, chances, *tables, per_user),
        (attitudes.attitude_users, *of_all, np.exp(proposals), odds, 3, chances),
        (
            *(attitudes.attitude_items, 0, N_ITEMS, *by_item, chances, proposals),
            *(np.zeros(N_ITEMS), np.zeros_like(proposals)),
        ),
        (attitudes.attitude_pairs, 0, n, rows, indices, chances, by_level, np.zeros((n, N_LEVELS))),
        (mixtures.user_terms, *of_all, U, V, prior, *of_hinges, thresholds, *terms),
        (
            *(mixtures.item_terms, 0, N_ITEMS, *by_item, V, U, thresholds, *hinge),
            *(noise[:, :, :N_USERS], np.zeros(of_items), np.zeros(of_items)),
        ),
        (mixtures.draw_features, *of_rows, weights, linear, V, odds, chances, Z),
        (sampling.draw_rows, *of_rows, V, weights, linear, np.eye(K), odds, U, tables[0]),
        (
            *(variational.improve_items, 0, N_ITEMS, *by_item, chances, per_user, thresholds),
            *(*rest, 1e-9, np.zeros(of_items), V),
        ),
        (
            *(variational.improve_users, *of_all, V, odds, prior[0], 1.5),
            *(*rest, chances, thresholds, per_user),
        ),
    ]


def moved(array, by):
    """Return a copy that begins this many numbers after the beginning of its memory."""
    copied = np.empty(array.size + MOST, array.dtype)[by : by + array.size].reshape(array.shape)
    copied[...] = array
    return copied


@pytest.mark.parametrize("call", calls(), ids=lambda call: call[0].__name__)
def test_addresses_do_not_change_a_bit(call):
    kernel, *arguments = call
    rng, answers, kept = np.random.default_rng(1), set(), []
    for _ in range(60):
        own = [
            moved(one, rng.integers(MOST)) if isinstance(one, np.ndarray) else one
            for one in arguments
        ]
        kept.append(own)  # so that memory is not always the same again
        kernel(*own)
        answers.add(b"".join(one.tobytes() for one in own if isinstance(one, np.ndarray)))
    assert len(answers) == 1
