"""PMMMF: scores gather around a prototype of each level, and the prototypes keep apart."""

from dataclasses import dataclass

import numpy as np

from marginmf._typing import FloatArray, IntArray
from marginmf.losses import two_level_loss
from marginmf.ratings.data import Ratings
from marginmf.ratings.factoriser import MarginFactoriser
from marginmf.ratings.objective import AnchoredRows, Parameters, ProximalRows, RowLoss
from marginmf.thresholds import ProximalLoss


@dataclass(eq=False, repr=False)
class PMMMF(MarginFactoriser):
    """Proximal max-margin matrix factorisation (chapter 4 of the thesis).

    The prototype of a user's level is the mean score of the items that the user rated so.  Scores
    are drawn to their own level's prototype by a squared loss and kept a margin away from the
    others.  Prototypes follow the scores in closed form, also inside the gradient, so there is
    nothing to learn but the factors.

    Parameters
    ----------
    {factor_parameters}
    {selection_parameters}
    {margin_parameters}
    {shared_parameters}

    Attributes
    ----------
    {factor_attributes}
    {selection_attributes}
    prototypes_ : array of shape (n_users, n_levels)
        Each user's prototypes, NaN for levels that the user never used.
    boundaries_ : array of shape (n_users, n_levels - 1)
        Where each user's predictions change; infinite beyond the levels that the user used.
    {shared_attributes}

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> model = PMMMF(n_factors=5, reg=1.0, random_state=0).fit(data.pairs, data.ratings)
    >>> model.prototypes_.shape, model.boundaries_.shape
    ((50, 5), (50, 4))
    """

    _user_arrays = ("user_factors_", "prototypes_", "boundaries_")

    def _row_loss(self, data: Ratings, stage: int = 0) -> RowLoss:
        return ProximalRows(two_level_loss(self.loss))

    def _item_loss(self, data: Ratings, stage: int = 0) -> RowLoss:
        loss = ProximalLoss(two_level_loss(self.loss))
        return AnchoredRows(loss, self.prototypes_[data.by_item.indices])

    def _set_users(self, data: Ratings, parameters: Parameters) -> None:
        super()._set_users(data, parameters)
        kernels = self._kernels()
        scores = kernels.scores(data.rows, data.indices, parameters.users, self.item_factors_)
        _, _, self.prototypes_ = kernels.proximal_rows(
            data.indptr, scores, data.codes, data.n_levels, two_level_loss(self.loss)
        )
        self.boundaries_ = boundaries(self.prototypes_, data.level_counts("user"))

    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        return self._scores(users, items)[:, None] - self.boundaries_[users]

    def _user_offsets(self, users: IntArray) -> FloatArray:
        return -self.boundaries_[users]


def boundaries(prototypes: FloatArray, counts: IntArray) -> FloatArray:
    """Return each user's boundaries between levels.

    Between two levels a < b that the user used, with none used in between, the boundary divides
    the way from one prototype to the other in the ratio of their counts, and the levels in
    between are passed over: their boundaries are the same.  Levels below the lowest used one and
    above the highest are never predicted.

    >>> boundaries(np.array([[0.0, np.nan, 4.0]]), np.array([[3, 0, 1]]))
    array([[3., 3.]])
    """
    n_users, n_levels = prototypes.shape
    used = counts > 0
    place = np.arange(n_levels)
    # The nearest used level at or below each boundary, and the nearest above it; -1 is none.
    below = np.maximum.accumulate(np.where(used, place, -1), axis=1)[:, :-1]
    above = np.minimum.accumulate(np.where(used, place, n_levels)[:, ::-1], axis=1)[:, -2::-1]
    user = np.arange(n_users)[:, None]
    a, b = np.maximum(below, 0), np.minimum(above, n_levels - 1)
    # Only levels beyond the used ones have no count on one side, and those are overwritten.
    share = counts[user, a] / np.maximum(counts[user, a] + counts[user, b], 1)
    between = prototypes[user, a] + share * (prototypes[user, b] - prototypes[user, a])
    between = np.where(below < 0, -np.inf, between)
    return np.where(above == n_levels, np.inf, between).astype(prototypes.dtype)
