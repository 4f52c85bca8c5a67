"""Successive halving: many candidates make a few iterations, and the better ones go on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from marginmf._parameters import check_number
from marginmf._random import as_generator
from marginmf._typing import Float64Array
from marginmf.metrics import mean_absolute_error
from marginmf.progress import Report, progress_bar
from marginmf.ratings.changes import observed
from marginmf.ratings.contender import Contender
from marginmf.ratings.data import Ratings
from marginmf.ratings.factoriser import Factoriser, is_auto
from marginmf.ratings.holdout import HeldOut
from marginmf.solvers import Callback


class Outcome(NamedTuple):
    """How far a candidate came: its last error, and the iterations and gradients it took."""

    params: dict[str, Any]
    error: float
    rung: int
    n_iter: int
    n_evaluations: int


class Rung(NamedTuple):
    """How many candidates took part, and up to which iteration."""

    n_candidates: int
    max_iter: int


@dataclass(eq=False, repr=False)
class HalvingSearch(BaseEstimator):
    """Find the parameters of a factoriser that predict held-out ratings best, by halving.

    All candidates learn from the same ratings for a few iterations.  The better part of them goes
    on from where it stopped, for ``factor`` times as many iterations, and so on until one is left:
    most candidates never cost more than their first iterations.

    Parameters
    ----------
    estimator : Factoriser
        What to tune, such as ``HMF()``; it keeps the parameters that are not searched.
    param_grid : dict or list of dict
        Values to try for each parameter, as in scikit-learn's `GridSearchCV`; or, with
        ``n_candidates``, distributions to draw from.  ``reg`` must be among them, or be a number.
    n_candidates : int, optional
        Draw so many candidates at random instead of trying all.
    factor : int
        One of so many candidates goes on, for so many times as many iterations.
    min_iter : int
        Iterations of the first rung, for each stage.  Too few favour candidates that learn fast and
        then learn the noise.
    holdouts : int
        On how many random tenths of the ratings candidates are judged.
    metric : callable
        From true and predicted ratings to an error; see `marginmf.metrics`.
    refit : bool
        Whether the best candidate is fitted to all ratings at the end.
    random_state : int, Generator or None
        Seeds the hold-outs, the starts, and which candidates are drawn.
    verbose : int
        1 shows a progress bar on standard error.

    Attributes
    ----------
    best_params_ : dict
        What was found.
    best_error_ : float
        Its error on held-out ratings.
    best_estimator_ : Factoriser
        Fitted to all ratings with these (with ``refit``).
    results_ : list of Outcome
        Every candidate, the best first; ``pandas.DataFrame(search.results_)`` is a table.
    rungs_ : list of Rung
        How many candidates there were, and how far they went.
    n_evaluations_ : int
        How many gradients the search took.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> from marginmf.ratings import MMMF
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> grid = {"n_factors": [2, 5], "reg": [0.3, 1.0, 3.0, 10.0, 30.0]}
    >>> search = HalvingSearch(MMMF(random_state=0), grid, random_state=0)
    >>> search.fit(data.pairs, data.ratings).rungs_
    [Rung(n_candidates=10, max_iter=10), Rung(n_candidates=4, max_iter=30), ...]
    >>> search.predict(data.pairs[:2]).shape
    (2,)
    """

    estimator: Any
    param_grid: Any
    _: KW_ONLY
    n_candidates: int | None = None
    factor: int = 3
    min_iter: int = 10
    holdouts: int = 1
    metric: Callable[[Any, Any], float] = mean_absolute_error
    refit: bool = True
    random_state: Any = None
    verbose: int = 0

    def fit(self, pairs: Any, ratings: Any = None) -> Self:
        """Search, and fit the best to all ratings.

        Parameters
        ----------
        pairs, ratings
            As in the ``fit`` of the factorisers.

        Returns
        -------
        self
        """
        data = observed(Ratings.of(pairs, ratings))
        self._check()
        rng = as_generator(self.random_state)
        seed = int(rng.integers(2**31))
        candidates = self._candidates(seed)
        models = [self._model(params, data) for params in candidates]
        held_outs = [HeldOut.at_random(data, rng) for _ in range(self.holdouts)]
        contenders = [Contender(model, held_outs, seed) for model in models]
        self._climb(candidates, contenders)
        if self.refit:
            best = clone(self.estimator).set_params(**self.best_params_)
            self.best_estimator_ = best.fit(data)
        return self

    def _climb(self, candidates: Sequence[dict[str, Any]], contenders: list[Contender]) -> None:
        errors, rungs = np.full(len(contenders), np.inf), np.zeros(len(contenders), int)
        running, max_iter = list(range(len(contenders))), self.min_iter
        self.rungs_: list[Rung] = []
        with progress_bar(type(self).__name__, len(contenders), bool(self.verbose)) as report:
            while True:
                self.rungs_.append(Rung(len(running), max_iter))
                kept = -(-len(running) // self.factor)
                ahead: list[int] = []
                for k in running:
                    named = partial(_of_candidate, k, report)
                    errors[k] = contenders[k].error_after(max_iter, self.metric, named)
                    rungs[k] = len(self.rungs_)
                    # Those who are out already need not keep their vectors until the rung ends.
                    ahead = sorted([*ahead, k], key=lambda one: (errors[one], one))
                    for out in ahead[kept:]:
                        contenders[out].forget()
                    ahead = ahead[:kept]
                running = ahead
                if len(running) == 1 or all(contenders[k].finished for k in running):
                    break
                max_iter *= self.factor
        order = sorted(range(len(contenders)), key=lambda k: (-rungs[k], errors[k], k))
        self.results_ = [
            Outcome(
                candidates[k],
                float(errors[k]),
                int(rungs[k]),
                contenders[k].n_iter,
                contenders[k].n_evaluations,
            )
            for k in order
        ]
        self.best_params_ = self.results_[0].params
        self.best_error_ = self.results_[0].error
        self.n_evaluations_ = sum(outcome.n_evaluations for outcome in self.results_)

    def _candidates(self, seed: int) -> list[dict[str, Any]]:
        # Here, because it takes longer to import than all of marginmf.
        from sklearn.model_selection import ParameterGrid, ParameterSampler

        if self.n_candidates is None:
            found = ParameterGrid(self.param_grid)
        else:
            found = ParameterSampler(self.param_grid, self.n_candidates, random_state=seed)
        return list(found)

    def _model(self, params: Mapping[str, Any], data: Ratings) -> Any:
        model = clone(self.estimator).set_params(**params)
        model.set_params(callbacks=(), verbose=0, early_stopping=False)
        if is_auto(model.reg):
            raise ValueError(
                "reg='auto' is a search of its own. Give param_grid some values of reg, or the "
                "estimator a number."
            )
        model._check(data)
        return model

    def _check(self) -> None:
        if not isinstance(self.estimator, Factoriser):
            raise ValueError(
                f"estimator={self.estimator!r} cannot be tuned by halving. Give one of the "
                "factorisers: HMF, MMMF, PMMMF, BMMMF, PMF or ALS."
            )
        check_number(self, "factor", int, 2)
        check_number(self, "min_iter", int, 1)
        check_number(self, "holdouts", int, 1)
        if self.n_candidates is not None:
            check_number(self, "n_candidates", int, 1)
        if not callable(self.metric):
            raise ValueError(f"metric={self.metric!r} must be a function of two arrays.")

    def predict(self, pairs: Any, **options: Any) -> Float64Array:
        """Predict with the best estimator; see `RatingsEstimator.predict`."""
        predicted: Float64Array = self._best().predict(pairs, **options)
        return predicted

    def predict_proba(self, pairs: Any, **options: Any) -> Float64Array:
        """Return probabilities of the best estimator; see `RatingsEstimator.predict_proba`."""
        probabilities: Float64Array = self._best().predict_proba(pairs, **options)
        return probabilities

    def score(self, pairs: Any, ratings: Any) -> float:
        """Return minus the mean absolute error of the best estimator."""
        return float(self._best().score(pairs, ratings))

    def _best(self) -> Any:
        check_is_fitted(self, "best_params_")
        if not self.refit:
            raise AttributeError(
                "The search was made with refit=False, so nothing is fitted to predict with: fit "
                "the estimator with best_params_."
            )
        return self.best_estimator_


def _of_candidate(number: int, report: Report, part: str) -> list[Callback]:
    """Report a part of a fit under the number of the candidate that it belongs to."""
    return report(f"candidate {number + 1} {part}")
