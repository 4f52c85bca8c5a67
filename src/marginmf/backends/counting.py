"""The compiled function that counts what every threshold would predict.

It keeps the rules of `marginmf.backends.compiled`.
"""
# What Numba compiles is typed by Numba.
# mypy: allow-untyped-defs, allow-untyped-decorators

import numpy as np
from numba import njit

# No fastmath: counts and the comparisons behind them are exact.
_kernel = njit(cache=True, nogil=True)


@_kernel
def count_above(
    start, stop, scores, present, top1, candidates, cells, scale, predicted, right, overlap
):
    """Count, for rows ``start:stop``, how many candidates each score is above.

    ``predicted[l, k]`` and ``right[l, k]`` gain one for each row whose score of label ``l`` is
    above exactly ``k`` candidates, ``right`` for the rows that have the label.  ``overlap[k]``
    gains, for each row, how much of its labels and of those above candidate ``k`` is common to
    both (nothing of nothing is 0).  With ``top1``, each row's best label is above all candidates.

    ``cells[c]`` is how many candidates have ``int((candidate - candidates[0]) * scale) < c``: from
    there on it takes a step or two, where halving would take eight.
    """
    n, n_labels = len(candidates), scores.shape[1]
    lowest, last_cell = candidates[0], np.float64(len(cells) - 1)
    above, above_right = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for i in range(start, stop):
        above[:] = 0
        above_right[:] = 0
        n_present = 0
        best = np.argmax(scores[i]) if top1 else -1
        for label in range(n_labels):
            there = present[i, label]
            n_present += there
            score = np.float64(scores[i, label])
            if label == best:
                k = n
            elif score > lowest:
                place = (score - lowest) * scale
                # An infinite score is in the last cell too, whatever the scale.
                k = cells[int(place) if place < last_cell else len(cells) - 1]
                while k < n and candidates[k] < score:
                    k += 1
            else:
                continue  # most scores are below all candidates
            above[k] += 1
            predicted[label, k] += 1
            if there:
                above_right[k] += 1
                right[label, k] += 1
        n_above, n_right = 0, 0
        for k in range(n, 0, -1):
            # What is above k candidates is above the first k of them.
            n_above += above[k]
            n_right += above_right[k]
            if n_right:
                overlap[k - 1] += n_right / (n_above + n_present - n_right)
