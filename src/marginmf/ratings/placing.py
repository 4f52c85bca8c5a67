"""Solve the problems of many rows, over threads."""

import math

import numpy as np

from marginmf._typing import FloatArray, IntArray
from marginmf.backends.threads import run
from marginmf.ratings.objective import RowObjective
from marginmf.solvers import minimise_rows

# Rows that are worked on together at most, because of their memory, and at least, because a round
# of few rows costs as much as one of many.
LARGEST_BLOCK, SMALLEST_BLOCK = 1024, 64


def solve_rows(objective: RowObjective, start: FloatArray, n_threads: int) -> FloatArray:
    """Return the minimum of every row's problem.

    The threads share the rows, not the work of every kernel: they hardly ever wait for each other.
    The objective's kernels must therefore run on one thread.
    """
    points = start.copy()

    def solve(first: int, last: int) -> None:
        block = objective.take(np.arange(first, last))
        points[first:last] = minimise_rows(block, points[first:last])

    run(solve, block_bounds(len(start), n_threads), n_threads)
    return points


def block_bounds(n_rows: int, n_threads: int) -> IntArray:
    """Cut the rows into blocks of equal length, as many for each thread.

    >>> block_bounds(1040, 2), block_bounds(70, 2)
    (array([   0,  520, 1040]), array([ 0, 70]))
    """
    n_blocks = n_threads * math.ceil(n_rows / (n_threads * LARGEST_BLOCK))
    n_blocks = max(1, min(n_blocks, n_rows // SMALLEST_BLOCK))
    return np.linspace(0, n_rows, n_blocks + 1).astype(np.int64)
