"""What a fitted model learns when it is first asked: probabilities, and who takes what.

One that was loaded from a file learns nothing unless it is told to: who answers questions must not
find that an answer takes as long as a fit, with parameters that a file from elsewhere says.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from threading import RLock
from typing import Any, ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from marginmf._utils.concurrency import Snapshot, after_fork, hold_at_fork
from marginmf._utils.parameters import n_threads
from marginmf.ratings.data import Ratings
from marginmf.ratings.fitting.calibration import Calibrator
from marginmf.ratings.fitting.fallback import LevelFrequencies
from marginmf.ratings.fitting.validation import ValidationSplit, calibrated_on
from marginmf.ratings.lists.relevance import Exposure

#: A lock for each model that is being calibrated; not in the model, which is copied and saved.
_locks: "WeakKeyDictionary[LearnedOnDemand, Any]" = WeakKeyDictionary()
_locks_lock = RLock()
hold_at_fork(_locks_lock)
# The thread that calibrates a model does not go on in a forked child, which learns by itself.
after_fork(_locks.clear)

#: What a file may lack: the attribute, and what it is, needed for, learned by, and done without by.
MISSING = {
    "_calibrator": (
        "how margins become probabilities, which predictions are made of",
        "fit_calibrator(), which takes about as long as fit",
        "predict with output='rule'",
    ),
    "_exposure": (
        "who takes what, which lists by relevance and explanations need",
        "fit_exposure()",
        "rank by='expected' or by='chance'",
    ),
}


class LearnedOnDemand(Snapshot, BaseEstimator):
    """The part of a ratings estimator that learns something once, whoever asks first."""

    n_jobs: int | None
    ratings_: Ratings
    _calibration_seed: int
    _frequencies: LevelFrequencies
    _calibrator: Calibrator | None
    _exposure: Exposure | None
    _origin: Any
    #: Whether this model, or the one that it was made from, was loaded from a file.
    _from_file: bool = False
    #: The axis of the fitted arrays that is as long as ``n_factors`` says, if there is one.
    _rank_axis: ClassVar[str] = ""

    def __sklearn_is_fitted__(self) -> bool:
        # scikit-learn would look through all attributes, while other threads add some.
        return hasattr(self, "ratings_")

    def _after_load(self) -> None:
        self._from_file = True

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        """Yield what is wrong with a loaded model whose arrays have the right shapes."""
        n_steps, biases = lengths["stages"], self._frequencies.user_biases is not None
        n_inputs = self._n_margins(n_steps) + 2 * n_steps + 2 * biases
        # Kernels take as many of its columns as there are margins.
        if self._calibrator is not None and self._calibrator.bounds.shape[1] != n_inputs:
            yield "._calibrator is for other margins than the model has"
        if self._calibration_seed is None or self._calibration_seed < 0:
            yield "._calibration_seed is no seed"
        rank: Any = getattr(self, "n_factors", None)
        if self._rank_axis in lengths and rank not in ("auto", lengths[self._rank_axis]):
            yield f".n_factors is {rank!r:.60}, but the model has {lengths[self._rank_axis]}"

    def _n_margins(self, n_steps: int) -> int:
        """Return how many margins of a pair the calibrator takes."""
        return n_steps

    def fit_calibrator(self) -> Self:
        """Learn how margins become probabilities, unless that is known.

        `fit` does it unless ``calibrate=False``; else the first call that needs probabilities, but
        not of a model that was loaded from a file.  A copy of the model is fitted without a tenth
        of the ratings, which takes about as long as `fit`; with fewer than 200,000 ratings, other
        tenths follow until 20,000 were held out.
        """
        return self._learn_once("_calibrator", LearnedOnDemand._learn_calibrator)

    def fit_exposure(self) -> Self:
        """Learn who takes what, which lists by relevance need, unless that is known.

        The first call of `recommend` by relevance, or of `explain`, does it: a ridge regression
        for each item, whose strength is chosen on held-out lists.  Call this before the model is
        saved: one that was loaded from a file does not learn it by itself.
        """
        check_is_fitted(self)
        if self._exposure is None and self._frequencies.placed == "item":
            raise ValueError(
                "This model was made by fold_in_items and does not hold what its users have: use "
                "update_items on the model that it was made from, or rank by='expected' or "
                "by='chance'."
            )

        def learn(model: LearnedOnDemand) -> Exposure:
            rng = np.random.default_rng(model._calibration_seed)
            return Exposure.fit(model.ratings_, rng, n_threads(model.n_jobs))

        return self._learn_once("_exposure", learn)

    def _with_calibrator(self) -> Self:
        """Return this model, which learns what probabilities need unless it is from a file."""
        self._refuse_if_missing("_calibrator")
        return self.fit_calibrator()

    def _with_exposure(self) -> Self:
        """Return this model, which learns who takes what unless it is from a file."""
        if self._frequencies.placed != "item":  # which cannot learn it at all
            self._refuse_if_missing("_exposure")
        return self.fit_exposure()

    def _lacks(self, name: str) -> bool:
        """Whether something is not learned yet."""
        return getattr(self, name) is None

    def _refuse_if_missing(self, name: str) -> None:
        if self._from_file and self._lacks(name):
            what, how, instead = MISSING[name]
            raise ValueError(
                f"This {type(self).__name__} was loaded from a file that does not hold {what}, and "
                f"a loaded model learns nothing unless it is told to: call {how}, and save it "
                f"again; or {instead}."
            )

    def _learn_once(self, name: str, learn: Callable[["LearnedOnDemand"], Any]) -> Self:
        """Set an attribute to what is learned, unless that is known."""
        check_is_fitted(self)
        if getattr(self, name) is None:
            with _locks_lock:
                lock = _locks.setdefault(self, RLock())
            with lock:  # several threads may be the first to ask
                if getattr(self, name) is None and self._origin is not None:
                    # Folded in: what is known of all the others holds for new users too.
                    setattr(self, name, getattr(self._origin._learn_once(name, learn), name))
                elif getattr(self, name) is None:
                    setattr(self, name, learn(self))
        return self

    def _learn_calibrator(self) -> Calibrator:
        if self._frequencies.user_biases is None:  # saved before there were biases
            self._frequencies = LevelFrequencies.of(self.ratings_)
        rng = np.random.default_rng(self._calibration_seed)
        bare = {"calibrate": False, "callbacks": (), "verbose": 0}
        bare["random_state"] = self._calibration_seed
        known = self.get_params(deep=False)
        model = copy(self).set_params(**{name: bare[name] for name in bare if name in known})
        splits, margins = ValidationSplit.to_calibrate(self.ratings_, rng), []
        for split in splits:
            trial = model._fit_copy(split.train, frequencies=split.frequencies)
            margins.append(trial._margins(split.users, split.items))
        return calibrated_on(splits, margins)
