"""Draws of many rows at once, against the ones spelled out in NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginmf.backends.cpu.backend import CpuBackend
from marginmf.backends.reference import ReferenceBackend
from marginmf.backends.rows import Rows


def problem(seed, lengths, n_factors, dtype=np.float64, n_columns=7):
    """Return the arguments of `draw_rows`; rows may be empty."""
    rng = np.random.default_rng(seed)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    n = int(indptr[-1])
    indices = rng.integers(0, n_columns, n).astype(np.int32)
    rows = Rows(np.arange(1.0, 6.0), indptr, indices, np.zeros(n, np.int16))
    given_factors = rng.normal(size=(n_columns, n_factors)).astype(dtype)
    root = rng.normal(size=(n_factors, n_factors))
    precision = root @ root.T + np.eye(n_factors)
    weights, linear = rng.gamma(1.0, size=n), rng.normal(size=n)
    noise = rng.normal(size=(len(lengths), n_factors))
    shift = rng.normal(size=n_factors)
    return rows, given_factors, weights, linear, precision, shift, noise


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    lengths=st.lists(st.integers(0, 12), min_size=1, max_size=8),
    n_factors=st.sampled_from([1, 3, 8, 21, 40]),
    dtype=st.sampled_from([np.float32, np.float64]),
    one_weight=st.booleans(),
    one_noise=st.booleans(),
)
def test_draws_are_those_of_the_reference(seed, lengths, n_factors, dtype, one_weight, one_noise):
    rows, factors, weights, linear, *prior, noise = problem(seed, lengths, n_factors, dtype)
    weights = weights[:1] if one_weight and len(weights) else weights
    noise = noise[:1] if one_noise else noise
    arguments = (rows, factors, weights, linear, *prior, noise)
    drawn, expected = (one.draw_rows(*arguments) for one in (CpuBackend(1), ReferenceBackend()))
    assert drawn.dtype == expected.dtype == dtype
    atol = 1e-8 if dtype == np.float64 else 2e-3
    np.testing.assert_allclose(drawn, expected, atol=atol, rtol=atol)


def test_rows_of_many_entries_are_worked_on_in_chunks():
    arguments = problem(0, [5000, 0, 1, 3000], 40, n_columns=200)
    expected = ReferenceBackend().draw_rows(*arguments)
    np.testing.assert_allclose(CpuBackend(1).draw_rows(*arguments), expected, atol=1e-9)


def test_sums_are_exact_enough_for_large_weights_of_few_directions():
    rows, factors, weights, linear, *rest = problem(0, [2000, 3], 8, np.float32)
    factors[:, 4:] = factors[:, :4]  # in half of the directions there is the prior alone
    weights, linear = np.full_like(weights[:1], 1e6), 1e6 * linear.astype(np.float32)
    arguments = (rows, factors, weights, linear, *rest)
    drawn, expected = (one.draw_rows(*arguments) for one in (CpuBackend(1), ReferenceBackend()))
    np.testing.assert_allclose(drawn, expected, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_change_a_bit(dtype):
    arguments = problem(1, [60] * 300, 16, dtype)
    drawn = [CpuBackend(n).draw_rows(*arguments).tobytes() for n in (1, 2, 5)]
    assert drawn[0] == drawn[1] == drawn[2]


def test_moments_of_draws():
    rows, factors, weights, linear, precision, shift, _ = problem(2, [6], 3)
    rng, n = np.random.default_rng(0), 20_000
    many = Rows(rows.levels, np.arange(n + 1) * 6, np.tile(rows.indices, n), np.tile(rows.codes, n))
    drawn = CpuBackend(1).draw_rows(
        many,
        factors,
        np.tile(weights, n),
        np.tile(linear, n),
        precision,
        shift,
        rng.normal(size=(n, 3)),
    )
    V = factors[rows.indices]
    covariance = np.linalg.inv(precision + (V.T * weights) @ V)
    np.testing.assert_allclose(drawn.mean(axis=0), covariance @ (shift + V.T @ linear), atol=0.02)
    np.testing.assert_allclose(np.cov(drawn.T), covariance, rtol=0.05, atol=0.005)
