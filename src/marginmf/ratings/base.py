"""What every ratings estimator has in common: fit, predict, margins, score."""

from abc import ABC, abstractmethod
from copy import copy
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from marginmf._ids import shown
from marginmf._typing import Float64Array, FloatArray, IntArray
from marginmf.kernels import Kernels, get_kernels
from marginmf.metrics import mean_absolute_error
from marginmf.ratings.changes import observed
from marginmf.ratings.columns import as_values, split_pairs
from marginmf.ratings.data import Ratings
from marginmf.ratings.decoders import count_above
from marginmf.ratings.fallback import LevelFrequencies
from marginmf.ratings.newcomers import Newcomers

Unknown = Literal["fallback", "raise", "nan"]

#: The largest number that is not infinite.
MOST = float(np.finfo(np.float64).max)


class RatingsEstimator(Newcomers, BaseEstimator, ABC):
    """A supervised estimator over (user, item) pairs.

    Subclasses say how to learn from ratings (`_fit`), how far a pair's score is above each level
    (`_margins`), and how to place new users or items while the others stay (`_place`).
    """

    n_jobs: int | None
    _decode = staticmethod(count_above)

    def fit(self, pairs: Any, ratings: Any = None) -> Self:
        """Learn from observed ratings; what was learned before is forgotten.

        Parameters
        ----------
        pairs : pairs, data frame, sparse matrix or Ratings
            (user, item) pairs with any hashable ids; see `Ratings.of`.  Ids of a `Ratings` that
            have no rating stay unknown.
        ratings : sequence of float, optional
            The ratings of the pairs, where ``pairs`` does not hold them.

        Returns
        -------
        self
        """
        data = observed(Ratings.of(pairs, ratings))
        # Learned on a copy, so that a fit that fails or is interrupted leaves this one as it was.
        fitted = copy(self)
        fitted._check(data)
        fitted._set_data(data)
        fitted._fit(data)
        self.__dict__.update(fitted.__dict__)
        return self

    def predict(self, pairs: Any, unknown: Unknown = "fallback") -> Float64Array:
        """Predict the rating of every pair, on the scale seen in training.

        Parameters
        ----------
        pairs : pairs
            (user, item) pairs.
        unknown : {"fallback", "raise", "nan"}
            What to do with users or items that training did not see: predict the median of the
            level frequencies of the half that is known (see
            `marginmf.ratings.fallback.LevelFrequencies`), raise an error, or answer NaN.
        """
        margins = self._margin_matrix(pairs, unknown)
        levels = self.levels_[self._decode(margins)]
        return np.where(np.isnan(margins).any(axis=1), np.nan, levels)

    def decision_function(self, pairs: Any, unknown: Unknown = "fallback") -> FloatArray:
        """Return how far each pair's score is above each level but the last.

        Returns
        -------
        array of shape (n_pairs, n_levels - 1), or (n_pairs,) for two levels
            Positive in column ``q`` means "higher than level q".  For unknown users or items
            these are log-odds from level frequencies.
        """
        margins = self._margin_matrix(pairs, unknown)
        return margins[:, 0] if margins.shape[1] == 1 else margins

    def score(self, pairs: Any, ratings: Any) -> float:
        """Return minus the mean absolute error: the higher, the better."""
        return -mean_absolute_error(as_values(ratings), self.predict(pairs))

    @abstractmethod
    def _fit(self, data: Ratings) -> None:
        """Learn everything."""

    @abstractmethod
    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        """Return the margins of known users and items, given as codes."""

    def _check(self, data: Ratings) -> None:
        """Raise ValueError if the parameters or the data cannot be used."""
        if self.n_jobs is not None:
            check_number(self, "n_jobs", int, -np.inf)

    def _set_data(self, data: Ratings) -> None:
        self.users_ = data.users
        self.items_ = data.items
        self.levels_ = data.levels
        self.ratings_ = data
        self._frequencies = LevelFrequencies.of(data)

    def _margin_matrix(self, pairs: Any, unknown: Unknown) -> FloatArray:
        check_is_fitted(self)
        if unknown not in ("fallback", "raise", "nan"):
            raise ValueError(
                f"unknown={unknown!r} is not known. Choose 'fallback', 'raise' or 'nan'."
            )
        user_ids, item_ids = split_pairs(pairs)
        users, items = self.users_.encode(user_ids), self.items_.encode(item_ids)
        known = (users >= 0) & (items >= 0)
        if known.all():
            return self._margins(users, items)
        if unknown == "raise":
            row = int(np.argmin(known))
            what, ids = ("user", user_ids) if users[row] < 0 else ("item", item_ids)
            raise ValueError(
                f"{int((~known).sum())} of {len(known)} pairs have a user or an item that training "
                f"did not see; the first is {what} {shown(list(ids)[row])} in row {row}."
            )
        margins = np.full((len(users), len(self.levels_) - 1), np.nan)
        margins[known] = self._margins(users[known], items[known])
        if unknown == "fallback":
            margins[~known] = self._frequencies.log_odds(users[~known], items[~known])
        return margins

    def _kernels(self) -> Kernels:
        return get_kernels("cpu", effective_n_jobs(self.n_jobs))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor"
        tags.target_tags.required = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.two_d_array = True
        return tags


def check_number(
    estimator: Any, name: str, kind: type[int] | type[float], least: float, most: float = MOST
) -> None:
    """Raise ValueError unless a parameter is a number of that kind within bounds."""
    value = getattr(estimator, name)
    number = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if not (number and least <= value <= most):
        wanted = "a whole number" if kind is int else "a number"
        bound = f" >= {least:g}" if np.isfinite(least) else ""
        raise ValueError(f"{name}={value!r} must be {wanted}{bound}.")
