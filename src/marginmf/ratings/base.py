"""What every ratings estimator has in common: fit, predict, probabilities, score."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from marginmf._utils.ids import shown
from marginmf._utils.parameters import (
    check_flag,
    check_n_jobs,
    check_option,
    check_verbose,
    n_threads,
    unfitted,
)
from marginmf._utils.saved import Methods, Optional, Scale, Sized
from marginmf._utils.types import BoolArray, Float64Array, FloatArray, IntArray
from marginmf.backends import Backend, get_backend
from marginmf.backends.rows import Side
from marginmf.backends.threads import SMALLEST_TASK
from marginmf.checkpoints import CheckpointLike, OpenCheckpoint, open_checkpoint
from marginmf.datasets.table import as_pairs
from marginmf.metrics import mean_absolute_error
from marginmf.persistence import Counts, Savable
from marginmf.ratings.data import Ratings, observed
from marginmf.ratings.fitting import calibration
from marginmf.ratings.fitting.calibration import Calibrator, distribution_of
from marginmf.ratings.fitting.fallback import LevelFrequencies
from marginmf.ratings.fitting.new_rows import NewRows, join_arrays
from marginmf.ratings.fitting.on_demand import LearnedOnDemand
from marginmf.ratings.fitting.validation import calibration_seed
from marginmf.ratings.ids import IdIndex, id_column
from marginmf.ratings.lists.relevance import Columns, Exposure, MarginBlock
from marginmf.ratings.scales import read_values
from marginmf.ratings.tables import given_ratings, split_pairs

#: Every ratings method by its name on the command line.
METHODS = Methods("ratings")
#: Registers a ratings method: model files and the command line know it from then on.
method = METHODS.register
Unknown = Literal["fallback", "raise", "nan"]
Output = Literal["median", "mode", "mean", "rule"]
#: What is learned and private, beside the attributes that end in an underscore.
LEARNED_IN_PRIVATE = (
    *("_calibration_seed", "_calibrator", "_exposure", "_frequencies", "_from_file", "_origin"),
)


class RatingsPredictor(LearnedOnDemand, Savable, BaseEstimator, ABC):
    """A supervised estimator over (user, item) pairs.

    Subclasses say how to learn from ratings (`_fit`) and how far a pair's score is above each level
    (`_margins`); and, where they can, how margins of a block are found faster (`_margin_block`) and
    how new users or items are learned while the others stay (`_fold_in`).

    Parameters
    ----------
    calibrate : bool
        Whether `fit` learns how margins become probabilities, which `predict` needs, on held-out
        ratings.  With False, the first call that needs them takes about as long as another fit;
        but a model that was loaded from a file then needs `fit_calibrator`.
    n_jobs : int or None
        Threads, as in scikit-learn; the result does not depend on it, to the last bit.
    verbose : int
        1 shows a progress bar on standard error.

    Attributes
    ----------
    users_, items_ : IdIndex
        The ids seen in training, and their codes.
    levels_ : array
        The scale seen in training, ascending.
    ratings_ : Ratings
        What the users were learned from.
    """

    n_jobs: int | None
    calibrate: bool = False
    #: What the method is called on the command line, and its docstring's first line.
    command_name: ClassVar[str]
    summary: ClassVar[str]
    #: What a model file holds; see `marginmf._utils.saved`.  Estimators and ratings anywhere
    #: in it must have as many users, items and levels as the estimator itself.
    _saved: ClassVar[dict[str, Any]] = {
        "users_": Sized(IdIndex, "users"),
        "items_": Sized(IdIndex, "items"),
        "levels_": Scale("levels"),
        "ratings_": Ratings,
        "_frequencies": LevelFrequencies,
        "_calibration_seed": Optional(int),
        "_calibrator": Optional("Calibrator"),
        "_exposure": Optional("Exposure"),
    }
    _counts_type = Counts
    #: The fitted arrays that have a row for each user, and those that have one for each item.
    _user_arrays: ClassVar[tuple[str, ...]] = ()
    _item_arrays: ClassVar[tuple[str, ...]] = ()
    #: Whether side information is of any use to the method.
    _takes_features: ClassVar[bool] = False
    _decode = staticmethod(calibration.count_above)
    _calibration_seed: int = 0
    #: What is known of users and items without the method.
    _frequencies: LevelFrequencies
    #: What turns margins into probabilities, when that has been learned.
    _calibrator: Calibrator | None = None
    #: Who takes what, when that has been learned.
    _exposure: Exposure | None = None
    #: The model that this one's items come from, when it may be asked for what is not learned yet.
    _origin: "RatingsPredictor | None" = None
    #: Runs the minimisations of `_fit`; one that keeps what was done is there during a fit only.
    _checkpoint = OpenCheckpoint()
    #: What new rows should be like before their ratings are looked at, while they are folded in.
    _new_rows: NewRows

    def fit(
        self,
        pairs: Any,
        ratings: Any = None,
        *,
        user: Any = None,
        item: Any = None,
        rating: Any = None,
        levels: Any = None,
        user_features: Any = None,
        item_features: Any = None,
        checkpoint: CheckpointLike = None,
    ) -> Self:
        """Learn from observed ratings; what was learned before is forgotten.

        Parameters
        ----------
        pairs : pairs, data frame, sparse matrix, RatingsTable or Ratings
            (user, item) pairs with any hashable ids; see `Ratings.of`.  Ids of a `Ratings` that
            have no rating stay unknown.
        ratings : sequence of float, optional
            The ratings of the pairs, where ``pairs`` does not hold them.
        user, item, rating : optional
            The columns of a frame, where their names do not say which is which.
        levels : sequence of float or str, optional
            The scale, such as ratings in words from the lowest; by default the values that occur.
        user_features, item_features : data frame, dict of columns or pair (ids, matrix), optional
            Side information: a column of ids, and columns of numbers and categories; see
            `marginmf.ratings.features.FeatureTable.of`.  Users and items that have features but
            no rating are known to the model too.  For methods with factors.
        checkpoint : path or Checkpoint, optional
            A folder that keeps what was done while the fit runs: if it is interrupted, the same
            call goes on from there to the same answer.  It is removed after the fit; see
            `marginmf.checkpoints.Checkpoint`.
        """
        columns = {"user": user, "item": item, "rating": rating, "levels": levels}
        data = self._read(pairs, ratings, **columns)
        data = data.with_features(user_features, item_features)
        if not self._takes_features and (data.user_features or data.item_features) is not None:
            raise ValueError(
                f"{type(self).__name__} learns from ratings alone: leave the features out, or use "
                "a method with factors, such as MMMF, HMF or MarginEnsemble."
            )
        fitted = self._fit_copy(observed(data), checkpoint)
        self.__dict__ = fitted.__dict__
        return self

    def _read(self, pairs: Any, ratings: Any, **reading: Any) -> Ratings:
        return Ratings.of(pairs, ratings, **reading)

    def _fit_copy(
        self,
        data: Ratings,
        checkpoint: CheckpointLike = None,
        frequencies: LevelFrequencies | None = None,
    ) -> Self:
        """Return a fitted copy, so that a fit that fails or is interrupted changes nothing."""
        fitted = unfitted(self, LEARNED_IN_PRIVATE)
        fitted._check(data)
        fitted._set_data(data, frequencies)
        # So that a calibration gives the same answer, here or after loading.
        fitted._calibration_seed = calibration_seed(getattr(self, "random_state", 0))
        with open_checkpoint(checkpoint, self, data.arrays) as fitted._checkpoint:
            fitted._fit(data)
            if self.calibrate and fitted._calibrator is None:
                fitted._calibrator = fitted._learn_calibrator()
        del fitted._checkpoint
        return fitted

    def predict(
        self, pairs: Any, unknown: Unknown = "fallback", output: Output = "median"
    ) -> Float64Array:
        """Predict the rating of every pair, on the scale seen in training.

        Parameters
        ----------
        pairs : pairs
            (user, item) pairs.
        unknown : {"fallback", "raise", "nan"}
            What to do with users or items that training did not see: predict from how often each
            level was used by the user, or for the item, that is known; raise an error; or answer
            NaN.
        output : {"median", "mode", "mean", "rule"}
            From the probabilities of the levels, the median (best for the mean absolute error),
            the mode (for the zero-one error) or the mean (for the squared error, and perhaps
            between levels); or the method's own rule, as in the literature.
        """
        check_option("output", output, ("median", "mode", "mean", "rule"))
        if output != "rule":
            return calibration.answer(output, self.predict_proba(pairs, unknown), self.levels_)
        users, items, known = self._encoded(pairs, unknown)
        predicted = self.levels_[self._decode(self._code_margins(users, items))]
        return np.where(known, predicted, np.nan) if unknown == "nan" else predicted

    def predict_proba(self, pairs: Any, unknown: Unknown = "fallback") -> Float64Array:
        """Return the probability of every level, for every pair.

        Of the ratings that are said to be at a level with probability 0.7, about 70 % should be.
        The probabilities of most methods are calibrated to that end, on held-out ratings; see
        `fit_calibrator`.  Methods whose model is a distribution over the levels (`BPMF`,
        `GibbsMMMF`, `GibbsIPMMMF`, `URP`, `Attitude` and `GPLVM`) return that as it is.

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

    def _above(self, users: IntArray, items: IntArray) -> Float64Array:
        """Return the probability of a rating above each level, for known users and items."""
        calibrator = self._with_calibrator()._calibrator
        assert calibrator is not None
        margins = self._member_margins(users, items)
        threads = self._n_threads(calibration.PAIR_WORK * len(users))
        return calibrator.above_pairs(margins, self._frequencies, users, items, threads)

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

    def score(self, pairs: Any, ratings: Any = None) -> float:
        """Return minus the mean absolute error of `predict`: higher is better.

        Parameters
        ----------
        pairs, ratings
            As in `fit`; a frame has the ratings itself, in the columns that it had there.
        """
        check_is_fitted(self)
        if isinstance(pairs, Ratings):
            return -mean_absolute_error(pairs.values, self.predict(pairs.pairs))
        given = given_ratings(pairs, ratings, names=self.column_names_)
        users, items = id_column(given.users, "user"), id_column(given.items, "item")
        scale = self.ratings_.source.level_names or self.levels_.tolist()
        values, _ = read_values(given, scale)
        return -mean_absolute_error(values, self.predict(as_pairs(users, items)))

    @property
    def column_names_(self) -> dict[str, str]:
        """What users, items and ratings were called in the table of the fit, if that had names."""
        check_is_fitted(self)
        return dict(self.ratings_.source.columns)

    @property
    def level_names_(self) -> dict[float, str] | None:
        """What the levels were called, where ratings were words."""
        check_is_fitted(self)
        names = self.ratings_.source.level_names
        return None if names is None else dict(zip(self.levels_.tolist(), names, strict=True))

    def _to_save(self) -> "RatingsPredictor":
        """Return this model without the one that its items come from, once that has been asked."""
        if self._origin is None:
            return self
        alone = copy(self._with_calibrator())
        if alone._frequencies.placed == "user":
            alone._with_exposure()
        del alone._origin
        return alone

    def _learned_from(self) -> Counts:
        data = self.ratings_
        return Counts(data.n_users, data.n_items, len(data), data.n_levels)

    def _check_loaded(self) -> None:
        self._check(self.ratings_)

    @abstractmethod
    def _fit(self, data: Ratings) -> None: ...

    @abstractmethod
    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        """Return the margins of known users and items, given as codes."""

    def _member_margins(self, users: IntArray, items: IntArray) -> FloatArray:
        """Return the margins that the calibrator takes: those of all members of an ensemble."""
        return self._margins(users, items)

    def _margin_block(self, users: IntArray, items: Columns) -> MarginBlock:
        """Return the margins of all of some users and items; several threads call this at once."""
        numbers = np.arange(len(self.items_))[items]
        shape = (len(users), len(numbers))
        margins = self._margins(np.repeat(users, shape[1]), np.tile(numbers, shape[0]))
        scores = margins.T.reshape(-1, *shape).astype(np.float32)
        return MarginBlock(scores, np.zeros((shape[0], len(scores))))

    def _fold_in(self, side: Side, data: Ratings) -> None:
        """Learn one side's part alone, with the other side's part as it is."""
        raise ValueError(
            f"{type(self).__name__} cannot learn new {side}s while the rest stays as it is: fit it "
            "again with all ratings."
        )

    def _folded(self, side: Side, data: Ratings, new_rows: NewRows | None = None) -> Self:
        """Return a model for the users (or items) of some ratings, whose other side is ours."""
        folded = copy(self)
        folded._check(data)
        folded._set_data(data, self._frequencies.for_new_rows(side, data))
        folded._new_rows = new_rows or NewRows(side, self.ratings_, data)
        if side == "item":
            folded._exposure = None  # the model does not hold what its users have
        folded._fold_in(side, data)
        del folded._new_rows
        return folded

    def _joined(
        self, folded: Self, side: Side, data: Ratings, frequencies: LevelFrequencies | None = None
    ) -> Self:
        """Return a model of all the data, with the rows of another where that has them."""
        joined = copy(self)
        joined._set_data(data, frequencies or self._frequencies.changed(self.ratings_, data))
        join_arrays(joined, self, folded, side)
        if side == "item" and self._origin is not None and self._frequencies.placed == "user":
            self._with_exposure()  # the original model does not know the items that come now
        if side == "item" and self._exposure is not None:
            joined._exposure = self._exposure.updated(data, self.items_, folded.items_)
        return joined

    def _check(self, data: Ratings) -> None:
        """Raise ValueError if the parameters or the data cannot be used."""
        check_n_jobs(self)
        check_flag(self, "calibrate")
        check_verbose(self)

    def _set_data(self, data: Ratings, frequencies: LevelFrequencies | None = None) -> None:
        self.users_, self.items_ = data.users, data.items
        self.levels_, self.ratings_ = data.levels, data
        self._frequencies = frequencies or LevelFrequencies.of(data)

    def _encoded(self, pairs: Any, unknown: Unknown) -> tuple[IntArray, IntArray, BoolArray]:
        """Return the codes of users and items, and which pairs have both."""
        check_is_fitted(self)
        check_option("unknown", unknown, ("fallback", "raise", "nan"))
        user_ids, item_ids = split_pairs(pairs, self.column_names_)
        quiet = unknown == "raise"  # the error says it
        users = self.users_.encode(user_ids, quiet=quiet)
        items = self.items_.encode(item_ids, quiet=quiet)
        known = (users >= 0) & (items >= 0)
        if unknown == "raise" and not known.all():
            row = int(np.argmin(known))
            index, ids = (self.users_, user_ids) if users[row] < 0 else (self.items_, item_ids)
            raise ValueError(
                f"{int((~known).sum())} of {len(known)} pairs have a user or an item that training "
                f"did not see; the first is {index.what} {shown(ids[row])} in row {row}. "
                f"{index.hint(ids[row])}"
            )
        return users, items, known

    def _share(self, other: "RatingsPredictor") -> None:
        """Hold another model's ratings, which has the same users and items, instead of our own."""
        self.ratings_, self._frequencies = other.ratings_, other._frequencies

    def _code_margins(self, users: IntArray, items: IntArray) -> FloatArray:
        """Return the margins of codes; unknown ones have log-odds from level frequencies."""
        return _answers(self._margins, self._frequencies.log_odds, users, items)

    def _code_distribution(self, users: IntArray, items: IntArray) -> Float64Array:
        """Return the distributions of codes; unknown ones have those of level frequencies."""
        fallback = self._frequencies.distribution
        return _answers(lambda *known: distribution_of(self._above(*known)), fallback, users, items)

    def _arithmetic(self, work: float = np.inf) -> Backend:
        """Return the backend, with the threads that this model may use for this much work."""
        return get_backend(getattr(self, "backend", "cpu"), self._n_threads(work))

    def _n_threads(self, work: float = np.inf) -> int:
        """Return how many threads to use for this much work, in multiplications."""
        # Little work is done in less time than cores are counted.
        return n_threads(self.n_jobs) if work > SMALLEST_TASK else 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor"
        tags.target_tags.required = True
        given = tags.input_tags
        given.string = given.categorical = given.two_d_array = True
        return tags


def _answers(
    of_known: Callable[..., Any], of_unknown: Callable[..., Any], users: IntArray, items: IntArray
) -> Any:
    """Return the answers of two functions: for pairs of known ids, and for all others."""
    known = (users >= 0) & (items >= 0)
    if known.all():
        return of_known(users, items)
    others = of_unknown(users[~known], items[~known])
    answers = np.empty((len(users), others.shape[1]))
    answers[known], answers[~known] = of_known(users[known], items[known]), others
    return answers
