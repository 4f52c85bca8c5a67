"""The compiled functions behind `marginmf.backends.labels`.

Each works on the range ``start:stop`` of rows and writes nothing outside it.
"""

from typing import Any

import numpy as np
from numba import njit

from marginmf.backends.cpu.compiling import kernel, registered
from marginmf.backends.cpu.losses import _POSITION, _real_loss, _two_level_loss, for_loss
from marginmf.losses import RealLoss, TwoLevelLoss

# No fastmath: counts and the comparisons behind them are exact.
_exact = njit(cache=True, nogil=True)


def for_label_loss(loss: TwoLevelLoss | RealLoss) -> Any:
    """Return the kernel of `marginmf.backends.labels.label_losses` for a loss."""
    return for_loss(make_real_rows if isinstance(loss, RealLoss) else make_two_level_rows, loss)


def make_two_level_rows(key: int) -> Any:
    """Make the kernel of `label_losses` for a loss of margins."""

    @kernel
    def label_rows(start, stop, indptr, indices, scores, losses):
        n_labels = scores.shape[1]
        signs = np.full(n_labels, -1.0)
        for i in range(start, stop):
            present = indices[indptr[i] : indptr[i + 1]]
            for k in range(len(present)):
                signs[present[k]] = 1.0
            x = scores[i]
            total = 0.0
            for k in range(n_labels):
                y = signs[k]
                value, derivative = _two_level_loss(key & _POSITION, y * x[k])
                total += value
                x[k] = y * derivative
            for k in range(len(present)):
                signs[present[k]] = -1.0
            losses[i] = total

    return label_rows


def make_real_rows(key: int) -> Any:
    """Make the kernel of `label_losses` for a loss of real targets."""

    @kernel
    def label_rows(start, stop, indptr, indices, scores, losses):
        n_labels = scores.shape[1]
        signs = np.full(n_labels, -1.0)
        for i in range(start, stop):
            present = indices[indptr[i] : indptr[i + 1]]
            for k in range(len(present)):
                signs[present[k]] = 1.0
            x = scores[i]
            total = 0.0
            for k in range(n_labels):
                y = signs[k]
                value, derivative = _real_loss(key & _POSITION, y, x[k])
                total += value
                x[k] = derivative
            for k in range(len(present)):
                signs[present[k]] = -1.0
            losses[i] = total

    return label_rows


@kernel
def gram_rows(start, stop, indptr, indices, values, by_column, rows, positions, out):
    """Fill rows of ``out`` with the upper triangle of ``X^T X``; the rest of them becomes zero.

    Column ``j`` of X has the entries ``by_column[j]:by_column[j + 1]`` in the order of its rows:
    entry ``t`` is in row ``rows[t]``, at ``positions[t]`` of the arrays of X.
    """
    for j in range(start, stop):
        total = out[j]
        total[:] = 0
        for t in range(by_column[j], by_column[j + 1]):
            first = positions[t]
            value = total.dtype.type(values[first])
            # Columns ascend within a row: those from here on are to the right of the diagonal.
            for k in range(first, indptr[rows[t] + 1]):
                total[indices[k]] += value * values[k]


@registered
@_exact
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
                cell = (score - lowest) * scale
                # An infinite score is in the last cell too, whatever the scale.
                k = cells[int(cell) if cell < last_cell else len(cells) - 1]
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
