"""Lists of the best items, which are all that serving needs.

Blocks have a row for each user and a column for each item; threads work on rows of their own.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from marginmf._utils.types import FloatArray, IntArray


class Best(NamedTuple):
    """The best columns of every row, best first, with their scores and ties.

    Where there are no more, the column is -1, and score and tie are minus infinity.
    """

    columns: IntArray
    scores: FloatArray
    ties: FloatArray

    @classmethod
    def none_yet(cls, n_rows: int, n: int, dtype: DTypeLike) -> "Best":
        """Return an empty list of n columns for every row."""
        scores, ties = np.full((2, n_rows, n), -np.inf, dtype)
        return cls(np.full((n_rows, n), -1, np.int32), scores, ties)

    def rows(self, start: int, stop: int) -> "Best":
        """Return a view of some rows."""
        part = slice(start, stop)
        return Best(self.columns[part], self.scores[part], self.ties[part])


def expected_ratings(
    scores: FloatArray,
    offsets: FloatArray,
    bounds: FloatArray,
    weights: FloatArray,
    user_terms: FloatArray,
    item_terms: FloatArray,
    steps: FloatArray,
    *,
    unimodal: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Return the expected ratings of a block of users and items, and what breaks their ties.

    Expected ratings count from the lowest level, and ``steps[q]`` is what level ``q + 1`` is
    above level ``q``.  Margin ``p`` is ``scores[p] + offsets[:, p]``, and a step's log-odds are
    ``user_terms[:, q] + item_terms[q] + sum over p of weights[q, p] * margin p``, margins
    clipped to ``bounds[:, p]``.  Where the chances rise from one step to the next they are held
    down to the lower one, and levels' chances become unimodal if told so.  Ties are broken by the
    sum of the margins, infinite ones left out.

    All arrays are float32: scores of shape (n_margins, n_users, n_items), or (1, ...) where
    all margins share them; offsets (n_users, n_margins); bounds (2, n_margins); user_terms
    (n_users, n_steps); item_terms (n_steps, n_items).
    """
    from marginmf.backends.cpu import ranking

    _, n_rows, n_columns = scores.shape
    expected, ties = np.empty((2, n_rows, n_columns), np.float32)
    arguments = (scores, offsets, bounds, weights, user_terms, item_terms, steps)
    ranking.expected_ratings(*arguments, unimodal, expected, ties)
    return expected, ties


def top_n(
    scores: FloatArray,
    ties: FloatArray,
    indptr: IntArray,
    excluded: IntArray,
    best: Best,
    first: int = 0,
) -> None:
    """Improve, in place, the best columns of every row that were found so far.

    The higher score is better, then the higher tie, then the lower column.  Column ``j`` of
    the scores has the number ``first + j``, which is higher than those found so far; row
    ``i`` leaves out the numbers ``excluded[indptr[i]:indptr[i + 1]]``, which ascend, and
    scores that are minus infinity or not a number.
    """
    from marginmf.backends.cpu import ranking

    ranking.top_n(scores, ties, indptr, excluded, first, *best)
