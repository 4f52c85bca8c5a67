"""BMMMF: two levels, one factorisation, a margin between them."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from marginmf._parameters import MOST, check_number
from marginmf._typing import FloatArray, IntArray
from marginmf.losses import two_level_loss
from marginmf.ratings.data import Ratings
from marginmf.ratings.decoders import first_below
from marginmf.ratings.factoriser import LOW_RANK, MarginFactoriser
from marginmf.ratings.objective import RowLoss, TwoLevelRows


@dataclass(eq=False, repr=False)
class BMMMF(MarginFactoriser):
    """Bi-level max-margin matrix factorisation, for likes and dislikes.

    Minimises ``sum h(y x) + reg/2 (|U|^2 + |V|^2)`` over the observed pairs, where ``x`` is the
    product of the user's and the item's factors and ``y`` is +1 for the upper level and -1 for
    the lower one.

    Parameters
    ----------
    {factor_parameters}
    {selection_parameters}
    {margin_parameters}
    {shared_parameters}
    threshold : float
        The upper level is predicted where the score is at least this.

    Attributes
    ----------
    {factor_attributes}
    {selection_attributes}
    {shared_attributes}

    Examples
    --------
    >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y"), ("cy", "x")]
    >>> model = BMMMF(n_factors=2, reg=0.1, random_state=0).fit(pairs, [1, 0, 1, 0, 1])
    >>> model.predict([("cy", "x"), ("cy", "y")])
    array([1., 0.])
    """

    _: KW_ONLY
    threshold: float = 0.0

    _decode = staticmethod(first_below)
    _path_rank = LOW_RANK

    def _row_loss(self, data: Ratings, stage: int = 0) -> RowLoss:
        return TwoLevelRows(two_level_loss(self.loss))

    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        return self._scores(users, items)[:, None] - self.threshold

    def _user_offsets(self, users: IntArray) -> FloatArray:
        return np.full((len(users), 1), -float(self.threshold))

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "threshold", float, -MOST)
        if data.n_levels != 2:
            raise ValueError(
                f"BMMMF tells two levels apart, but the ratings have {data.n_levels}. Use HMF, "
                "MMMF or PMMMF, or turn the ratings into likes and dislikes first."
            )
