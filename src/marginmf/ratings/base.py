"""What every ratings estimator has in common: fit, predict, margins, score."""

from abc import ABC, abstractmethod
from copy import copy
from numbers import Integral
from threading import RLock
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from marginmf._ids import shown
from marginmf._parameters import check_n_jobs, unfitted
from marginmf._saving import Savable
from marginmf._threads import n_threads
from marginmf._typing import BoolArray, Float64Array, FloatArray, IntArray
from marginmf.backends import Kernels, get_kernels
from marginmf.checkpoints import CheckpointLike, Journal, open_journal
from marginmf.metrics import mean_absolute_error
from marginmf.ratings.calibration import Calibrator, distribution_of, features_of
from marginmf.ratings.changes import observed
from marginmf.ratings.columns import as_values, split_pairs
from marginmf.ratings.data import Ratings
from marginmf.ratings.decoders import ANSWERS, count_above
from marginmf.ratings.fallback import LevelFrequencies
from marginmf.ratings.holdout import HeldOut
from marginmf.ratings.newcomers import Newcomers
from marginmf.ratings.recommender import Recommender
from marginmf.ratings.selection import Trial, calibrated_on

Unknown = Literal["fallback", "raise", "nan"]
Output = Literal["rule", "median", "mode", "mean"]

#: What is learned and is nobody's business, beside the attributes that end in an underscore.
LEARNED_IN_PRIVATE = ("_calibration_seed", "_calibrator", "_frequencies", "_origin")

#: Held while a model is calibrated; the model that it comes from may have to be calibrated first.
CALIBRATING = RLock()


class RatingsEstimator(Newcomers, Recommender, Savable, BaseEstimator, ABC):
    """A supervised estimator over (user, item) pairs.

    Subclasses say how to learn from ratings (`_fit`), how far a pair's score is above each level
    (`_margins`), and how to place new users or items while the others stay (`_place`).
    """

    n_jobs: int | None
    _decode = staticmethod(count_above)
    _calibration_seed: int = 0
    #: What turns margins into probabilities, when that has been learned.
    _calibrator: Calibrator | None = None
    #: The model that this one's items come from, when it may be asked for its calibrator.
    _origin: "RatingsEstimator | None" = None
    #: Runs the minimisations of `_fit`; one that keeps what was done is there during a fit only.
    _journal = Journal()

    def fit(self, pairs: Any, ratings: Any = None, *, checkpoint: CheckpointLike = None) -> Self:
        """Learn from observed ratings; what was learned before is forgotten.

        Parameters
        ----------
        pairs : pairs, data frame, sparse matrix or Ratings
            (user, item) pairs with any hashable ids; see `Ratings.of`.  Ids of a `Ratings` that
            have no rating stay unknown.
        ratings : sequence of float, optional
            The ratings of the pairs, where ``pairs`` does not hold them.
        checkpoint : path or Checkpoint, optional
            A folder that keeps what was done while the fit runs.  If it is interrupted or killed,
            the same call goes on from there and ends at the same answer, to the last bit.  The
            folder is removed when the fit has succeeded.  See `marginmf.checkpoints.Checkpoint`.

        Returns
        -------
        self
        """
        fitted = self._learned(observed(Ratings.of(pairs, ratings)), checkpoint)
        self.__dict__ = fitted.__dict__
        return self

    def _learned(self, data: Ratings, checkpoint: CheckpointLike = None) -> Self:
        """Return a fitted copy, so that a fit that fails or is interrupted changes nothing."""
        fitted = unfitted(self, LEARNED_IN_PRIVATE)
        fitted._check(data)
        fitted._set_data(data)
        # So that whoever calibrates first, here or after loading, gives the same answer.
        fitted._calibration_seed = calibration_seed(getattr(self, "random_state", 0))
        with open_journal(checkpoint, self, data.arrays) as fitted._journal:
            fitted._fit(data)
        del fitted._journal
        return fitted

    def predict(
        self, pairs: Any, unknown: Unknown = "fallback", output: Output = "rule"
    ) -> Float64Array:
        """Predict the rating of every pair, on the scale seen in training.

        Parameters
        ----------
        pairs : pairs
            (user, item) pairs.
        unknown : {"fallback", "raise", "nan"}
            What to do with users or items that training did not see: predict the median of the
            level frequencies of the half that is known (see
            `marginmf.ratings.fallback.LevelFrequencies`), raise an error, or answer NaN.
        output : {"rule", "median", "mode", "mean"}
            Which answer: by the method's own rule, or from the probabilities of the levels (see
            `predict_proba`) the median, which is best for the mean absolute error, the mode, best
            for the zero-one error, or the mean, best for the squared error, which may lie between
            levels.
        """
        if output not in ("rule", "median", "mode", "mean"):
            raise ValueError(
                f"output={output!r} is not known. Choose 'rule', 'median', 'mode' or 'mean'."
            )
        if output != "rule":
            return ANSWERS[output](self.predict_proba(pairs, unknown), self.levels_)
        users, items, known = self._encoded(pairs, unknown)
        predicted = self._predict_codes(users, items)
        return np.where(known, predicted, np.nan) if unknown == "nan" else predicted

    def predict_proba(self, pairs: Any, unknown: Unknown = "fallback") -> Float64Array:
        """Return the probability of every level, for every pair.

        The probabilities are calibrated on held-out ratings: of the ratings that are said to be
        at a level with probability 0.7, about 70 % are.  See `calibrate`.

        Parameters
        ----------
        pairs, unknown
            As in `predict`.

        Returns
        -------
        array of shape (n_pairs, n_levels)
            Rows that add up to one, in the order of ``levels_``.

        Examples
        --------
        >>> from marginmf.datasets import make_ratings
        >>> from marginmf.ratings import MMMF
        >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
        >>> model = MMMF(n_factors=5, random_state=0).fit(data.pairs, data.ratings)
        >>> model.predict_proba(data.pairs[:2]).shape
        (2, 5)
        """
        users, items, known = self._encoded(pairs, unknown)
        distribution = self._code_distribution(users, items)
        if unknown == "nan":
            distribution[~known] = np.nan
        return distribution

    def calibrate(self) -> Self:
        """Learn how margins become probabilities, on ratings held out from training.

        With ``reg="auto"`` this has been done by `fit`.  Otherwise the first call of
        `predict_proba`, or of anything that needs it, does it: a tenth of the ratings are held
        out and a copy of the model is fitted to the rest, which takes about as long as `fit`.
        Call this to have it done at a time of your choosing.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if self._calibrator is None:
            with CALIBRATING:  # several threads may be the first to ask
                if self._calibrator is None:
                    self._calibrator = self._learned_calibrator()
        return self

    def _learned_calibrator(self) -> Calibrator:
        if self._origin is not None:
            # Folded in: what the margins of new users mean is known from all the others.
            calibrator = self._origin.calibrate()._calibrator
            assert calibrator is not None
            return calibrator
        rng = np.random.default_rng(self._calibration_seed)
        held_out = HeldOut.at_random(self.ratings_, rng)
        quiet = {"callbacks": (), "verbose": 0, "random_state": self._calibration_seed}
        known = self.get_params(deep=False)
        trial = copy(self).set_params(**{name: quiet[name] for name in quiet if name in known})
        trial = trial._learned(held_out.train)
        margins = trial._margins(held_out.users, held_out.items)
        return calibrated_on([Trial(trial, held_out)], [margins])

    def _above(self, users: IntArray, items: IntArray) -> Float64Array:
        """Return the probability of a rating above each level, for known users and items."""
        calibrator = self.calibrate()._calibrator
        assert calibrator is not None
        margins = self._margins(users, items)
        return calibrator.above(features_of([margins], self._frequencies, users, items))

    def decision_function(self, pairs: Any, unknown: Unknown = "fallback") -> FloatArray:
        """Return how far each pair's score is above each level but the last.

        Returns
        -------
        array of shape (n_pairs, n_levels - 1), or (n_pairs,) for two levels
            Positive in column ``q`` means "higher than level q".  For unknown users or items
            these are log-odds from level frequencies.
        """
        users, items, known = self._encoded(pairs, unknown)
        margins = self._code_margins(users, items)
        if unknown == "nan":
            margins[~known] = np.nan
        return margins[:, 0] if margins.shape[1] == 1 else margins

    def score(self, pairs: Any, ratings: Any) -> float:
        """Return minus the mean absolute error: the higher, the better."""
        return -mean_absolute_error(as_values(ratings), self.predict(pairs))

    def _to_save(self) -> "RatingsEstimator":
        """Return this model without the one that its items come from, once that has been asked."""
        if self._origin is None:
            return self
        alone = copy(self.calibrate())
        del alone._origin
        return alone

    @abstractmethod
    def _fit(self, data: Ratings) -> None:
        """Learn everything."""

    @abstractmethod
    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        """Return the margins of known users and items, given as codes."""

    def _check(self, data: Ratings) -> None:
        """Raise ValueError if the parameters or the data cannot be used."""
        check_n_jobs(self)

    def _set_data(self, data: Ratings) -> None:
        self.users_ = data.users
        self.items_ = data.items
        self.levels_ = data.levels
        self.ratings_ = data
        self._frequencies = LevelFrequencies.of(data)

    def _encoded(self, pairs: Any, unknown: Unknown) -> tuple[IntArray, IntArray, BoolArray]:
        """Return the codes of users and items, and which pairs have both."""
        check_is_fitted(self)
        if unknown not in ("fallback", "raise", "nan"):
            raise ValueError(
                f"unknown={unknown!r} is not known. Choose 'fallback', 'raise' or 'nan'."
            )
        user_ids, item_ids = split_pairs(pairs)
        users, items = self.users_.encode(user_ids), self.items_.encode(item_ids)
        known = (users >= 0) & (items >= 0)
        if unknown == "raise" and not known.all():
            row = int(np.argmin(known))
            what, ids = ("user", user_ids) if users[row] < 0 else ("item", item_ids)
            raise ValueError(
                f"{int((~known).sum())} of {len(known)} pairs have a user or an item that training "
                f"did not see; the first is {what} {shown(list(ids)[row])} in row {row}."
            )
        return users, items, known

    def _share(self, other: "RatingsEstimator") -> None:
        """Hold another model's ratings, which has the same users and items, instead of our own."""
        self.ratings_, self._frequencies = other.ratings_, other._frequencies

    def _code_margins(self, users: IntArray, items: IntArray) -> FloatArray:
        """Return the margins of codes; unknown ones have log-odds from level frequencies."""
        known = (users >= 0) & (items >= 0)
        if known.all():
            return self._margins(users, items)
        margins = np.empty((len(users), len(self.levels_) - 1))
        margins[known] = self._margins(users[known], items[known])
        margins[~known] = self._frequencies.log_odds(users[~known], items[~known])
        return margins

    def _code_distribution(self, users: IntArray, items: IntArray) -> Float64Array:
        """Return the distributions of codes; unknown ones have those of level frequencies."""
        known = (users >= 0) & (items >= 0)
        distribution = np.empty((len(users), len(self.levels_)))
        distribution[known] = distribution_of(self._above(users[known], items[known]))
        distribution[~known] = self._frequencies.distribution(users[~known], items[~known])
        return distribution

    def _kernels(self) -> Kernels:
        return get_kernels("cpu", n_threads(self.n_jobs))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor"
        tags.target_tags.required = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.two_d_array = True
        return tags


def calibration_seed(random_state: Any) -> int:
    """Return a number to seed the hold-out with, also where the user gave none."""
    if isinstance(random_state, Integral):
        return int(random_state)
    generator = np.random.default_rng(random_state if random_state is None else 0)
    return int(generator.integers(2**31))
