"""Expected ratings: margins become chances of a rating above each level, and those a mean."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from marginmf._typing import Float64Array, FloatArray, IntArray
from marginmf.ratings.blocks import Columns

#: Margins beyond this say no more: their chances are 0 or 1 to float32's last digit.
BOUND = 30.0


@dataclass(frozen=True, eq=False)
class Calibration:
    """How margins become log-odds, for users ``i``, items ``j`` and cuts ``q`` between levels.

        log-odds[q] = intercepts[q] + user_terms[i, q] + item_terms[j, q]
                      + sum over p of weights[q, p] * clip(margin[p], -bound, bound)

    Parameters
    ----------
    weights : array of shape (n_cuts, n_cuts)
    intercepts : array of shape (n_cuts,)
    user_terms : array of shape (n_users, n_cuts), optional
    item_terms : array of shape (n_items, n_cuts), optional
    bound : float
    """

    weights: FloatArray
    intercepts: FloatArray
    user_terms: FloatArray | None = None
    item_terms: FloatArray | None = None
    bound: float = BOUND

    @classmethod
    def identity(cls, n_cuts: int) -> "Calibration":
        """Return the calibration that takes margins for log-odds as they are."""
        return cls(np.eye(n_cuts), np.zeros(n_cuts))

    def log_odds(self, margins: FloatArray, users: IntArray, items: IntArray) -> Float64Array:
        """Return the log-odds of pairs of known users and items, given their margins."""
        clipped = np.clip(margins.astype(np.float64), -self.bound, self.bound)
        # Not a matrix product: BLAS rounds a row by what else is in the batch.
        log_odds: Float64Array = np.einsum("kp,qp->kq", clipped, self.weights)
        log_odds += self.intercepts
        if self.user_terms is not None:
            log_odds += self.user_terms[users]
        if self.item_terms is not None:
            log_odds += self.item_terms[items]
        return log_odds

    def of_users(self, users: IntArray) -> FloatArray:
        """Return what the log-odds of each user start from, as kernels want it."""
        terms = self.intercepts if self.user_terms is None else self.user_terms[users]
        terms = terms if self.user_terms is None else terms + self.intercepts
        return np.ascontiguousarray(
            np.broadcast_to(terms, (len(users), len(self.intercepts))), np.float32
        )

    def of_items(self, items: Columns, n_items: int) -> FloatArray:
        """Return what each item adds to the log-odds, as kernels want it: a row for each cut."""
        if self.item_terms is None:
            return np.zeros((len(self.intercepts), n_items), np.float32)
        return np.ascontiguousarray(self.item_terms[items].T, np.float32)


def expected_above_lowest(log_odds: Float64Array, levels: Float64Array) -> Float64Array:
    """Return how far above the lowest level the mean rating is, given the log-odds of each cut.

    A higher level cannot be more likely than a lower one: chances that rise are held down.

    >>> expected_above_lowest(np.array([[0.0, -40.0], [40.0, 0.0]]), np.array([1.0, 2.0, 4.0]))
    array([0.5, 2. ])
    """
    chances = np.minimum.accumulate(expit(log_odds), axis=1)
    expected: Float64Array = (chances * np.diff(levels)).sum(axis=1)
    return expected


def sum_of_margins(margins: FloatArray) -> Float64Array:
    """Return what breaks ties of expected ratings; infinite margins say nothing about items.

    >>> sum_of_margins(np.array([[np.inf, 0.5, -1.0]]))
    array([-0.5])
    """
    total: Float64Array = np.where(np.isfinite(margins), margins, 0.0).sum(axis=1)
    return total
