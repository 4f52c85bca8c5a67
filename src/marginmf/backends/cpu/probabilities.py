"""The compiled function that turns margins of pairs into probabilities."""

import math

import numpy as np
from numba import njit

from marginmf.backends.cpu.compiling import registered

# Division by zero cannot happen in the sigmoid: no code to ask whether it does.
_kernel = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})


@registered
@_kernel
def chances_above(
    start,
    stop,
    margins,
    bounds,
    weights,
    user_terms,
    user_rows,
    item_terms,
    item_rows,
    shrink,
    shift,
    out,
):
    """Fill ``out`` with the probability of a rating above each level, pair by pair.

    The log-odds of pair ``k`` are ``user_terms[user_rows[k]] + item_terms[item_rows[k]]`` plus the
    weights times the margins, clipped to the bounds.  Probabilities that rise from level to level
    are held down; then all are multiplied by ``shrink`` and moved by ``shift``.
    """
    n_steps, n_margins = weights.shape
    clipped = np.empty(n_margins)
    for k in range(start, stop):
        margin, chances = margins[k], out[k]
        user_term, item_term = user_terms[user_rows[k]], item_terms[item_rows[k]]
        for p in range(n_margins):
            clipped[p] = min(max(np.float64(margin[p]), bounds[0, p]), bounds[1, p])
        lowest = 1.0
        for q in range(n_steps):
            log_odds = user_term[q] + item_term[q]
            for p in range(n_margins):
                log_odds += weights[q, p] * clipped[p]
            lowest = min(lowest, 1.0 / (1.0 + math.exp(-log_odds)))
            chances[q] = shrink * lowest + shift[q]
