"""Many rows in blocks over threads: the same answers as one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import synthetic
from marginmf.backends import get_backend
from marginmf.backends.specs import TwoLevel
from marginmf.losses import TWO_LEVEL
from marginmf.ratings import Ratings
from marginmf.ratings.fitting.objective import (
    LARGEST_BLOCK,
    SMALLEST_BLOCK,
    RowObjective,
    block_bounds,
    solve_rows,
)
from marginmf.solvers import minimise_rows


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
