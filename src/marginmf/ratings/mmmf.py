"""MMMF: one factorisation, and thresholds of each user's own between the levels."""

from dataclasses import KW_ONLY, dataclass

from marginmf._typing import FloatArray, IntArray
from marginmf.losses import two_level_loss
from marginmf.ratings.data import Ratings
from marginmf.ratings.factoriser import MarginFactoriser
from marginmf.ratings.objective import AnchoredRows, Parameters, RowLoss, ThresholdRows
from marginmf.thresholds import REACH, ThresholdLoss


@dataclass(eq=False, repr=False)
class MMMF(MarginFactoriser):
    """Max-margin matrix factorisation with learned thresholds (Rennie and Srebro, 2005).

    Every user has a threshold between each two neighbouring levels.  A score should be above the
    thresholds below its rating's level and below the others, each by a margin.  Factors and
    thresholds are learned together; thresholds are not penalised.

    Parameters
    ----------
    {factor_parameters}
    {selection_parameters}
    {margin_parameters}
    {shared_parameters}
    threshold : {"all", "immediate"}
        Which thresholds a rating speaks to: all of them, or the two around its level.

    Attributes
    ----------
    {factor_attributes}
    {selection_attributes}
    thresholds_ : array of shape (n_users, n_levels - 1)
        Each user's thresholds.
    {shared_attributes}

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> model = MMMF(n_factors=5, reg=1.0, random_state=0).fit(data.pairs, data.ratings)
    >>> model.thresholds_.shape
    (50, 4)
    """

    _: KW_ONLY
    threshold: str = "all"

    _user_arrays = ("user_factors_", "thresholds_")

    def _row_loss(self, data: Ratings, stage: int = 0) -> RowLoss:
        return ThresholdRows(two_level_loss(self.loss), REACH[self.threshold])

    def _item_loss(self, data: Ratings, stage: int = 0) -> RowLoss:
        loss = ThresholdLoss(two_level_loss(self.loss), REACH[self.threshold])
        return AnchoredRows(loss, self.thresholds_[data.by_item.indices])

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        if self.threshold not in tuple(REACH):
            raise ValueError(
                f"threshold={self.threshold!r} is not known. Choose 'all' or 'immediate'."
            )

    def _set_users(self, data: Ratings, parameters: Parameters) -> None:
        super()._set_users(data, parameters)
        self.thresholds_ = parameters.thresholds

    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        return self._scores(users, items)[:, None] - self.thresholds_[users]

    def _user_offsets(self, users: IntArray) -> FloatArray:
        return -self.thresholds_[users]
