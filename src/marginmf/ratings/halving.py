"""Successive halving: many candidates make a few iterations, and the better ones go on.

Between two rungs a candidate keeps the whole state of its solver, so nothing is done twice.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from marginmf._utils.parameters import check_number, check_verbose
from marginmf._utils.random import as_generator
from marginmf._utils.types import Float64Array
from marginmf.checkpoints import OpenCheckpoint
from marginmf.metrics import mean_absolute_error
from marginmf.progress import Report, progress_bar
from marginmf.ratings.base import METHODS
from marginmf.ratings.data import Ratings, observed
from marginmf.ratings.factoriser import Factoriser, is_auto
from marginmf.ratings.fitting.validation import HoldoutTrial, ValidationSplit
from marginmf.solvers import Paused, Result, StopReason, Vectors

#: From true and predicted ratings to an error; lower is better.
Metric = Callable[[Any, Any], float]


class Outcome(NamedTuple):
    """How far a candidate came: its last error, the iterations and the gradients."""

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
    on for ``factor`` times as many iterations, and so on until one is left.

    Parameters
    ----------
    estimator : Factoriser
        What to tune, such as ``HMF()``; it keeps the parameters that are not searched.  While
        searching, the stages of HMF have independent starts, because others may be paused.
    param_grid : dict or list of dict
        Values to try for each parameter, as in scikit-learn's `GridSearchCV`; or, with
        ``n_candidates``, distributions to draw from.  ``reg`` must be among them, or be a number.
    n_candidates : int, optional
        Draw this number of candidates at random instead of trying all.
    factor : int
        One in ``factor`` candidates goes on, for ``factor`` times as many iterations.
    min_iter : int
        Iterations of the first rung.
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
    best_params_, best_error_
        What was found, and its error on held-out ratings.
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
    metric: Metric = mean_absolute_error
    refit: bool = True
    random_state: Any = None
    verbose: int = 0

    def fit(self, pairs: Any, ratings: Any = None) -> Self:
        """Search, and fit the best to all ratings, given as to the ``fit`` of the factorisers."""
        self._check()
        data = observed(self.estimator._read(pairs, ratings))
        rng = as_generator(self.random_state)
        seed = int(rng.integers(2**31))
        candidates = self._candidates(seed)
        models = [self._model(params, data) for params in candidates]
        splits = [ValidationSplit.at_random(data, rng) for _ in range(self.holdouts)]
        self._climb(candidates, [HalvingCandidate(model, data, splits, seed) for model in models])
        if self.refit:
            best = clone(self.estimator).set_params(**self.best_params_)
            self.best_estimator_ = best.fit(data)
        return self

    def _climb(
        self, params: Sequence[dict[str, Any]], candidates: "list[HalvingCandidate]"
    ) -> None:
        errors, rungs = np.full(len(candidates), np.inf), np.zeros(len(candidates), int)
        running, max_iter = list(range(len(candidates))), self.min_iter
        self.rungs_: list[Rung] = []

        def named(k: int) -> Report:
            return lambda part: report(f"candidate {k + 1} {part}")

        with progress_bar(type(self).__name__, len(candidates), bool(self.verbose)) as report:
            while True:
                self.rungs_.append(Rung(len(running), max_iter))
                n_kept = -(-len(running) // self.factor)
                ahead: list[int] = []
                for k in running:
                    errors[k] = candidates[k].error_after(max_iter, self.metric, named(k))
                    rungs[k] = len(self.rungs_)
                    # Those that are out already need not keep their vectors until the rung ends.
                    ahead = sorted([*ahead, k], key=lambda one: (errors[one], one))
                    for out in ahead[n_kept:]:
                        candidates[out].forget()
                    ahead = ahead[:n_kept]
                running = ahead
                if len(running) == 1 or all(candidates[k].finished for k in running):
                    break
                max_iter *= self.factor
        order = sorted(range(len(candidates)), key=lambda k: (-rungs[k], errors[k], k))
        costs = [(one.n_iter, one.n_evaluations) for one in candidates]
        self.results_ = [
            Outcome(params[k], float(errors[k]), int(rungs[k]), *costs[k]) for k in order
        ]
        self.best_params_, self.best_error_ = self.results_[0][:2]
        self.n_evaluations_ = sum(outcome.n_evaluations for outcome in self.results_)

    def _candidates(self, seed: int) -> list[dict[str, Any]]:
        # Here, because it takes longer to import than all of marginmf.
        from sklearn.model_selection import ParameterGrid, ParameterSampler

        if self.n_candidates is None:
            return list(ParameterGrid(self.param_grid))
        return list(ParameterSampler(self.param_grid, self.n_candidates, random_state=seed))

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
            known = [kind.__name__ for kind in METHODS.values() if issubclass(kind, Factoriser)]
            raise ValueError(
                f"{type(self.estimator).__name__} cannot be tuned by halving. Give one of the "
                f"factorisers ({', '.join(known)}), or search with scikit-learn's GridSearchCV."
            )
        check_number(self, "factor", int, 2)
        check_number(self, "min_iter", int, 1)
        check_number(self, "holdouts", int, 1)
        check_verbose(self)
        if self.n_candidates is not None:
            check_number(self, "n_candidates", int, 1)
        if not callable(self.metric):
            raise ValueError(f"metric={self.metric!r} must be a function of two arrays.")

    def predict(self, pairs: Any, **options: Any) -> Float64Array:
        """Predict with the best estimator; see `RatingsEstimator.predict`."""
        return self._best().predict(pairs, **options)

    def predict_proba(self, pairs: Any, **options: Any) -> Float64Array:
        """Return probabilities of the best estimator; see `RatingsEstimator.predict_proba`."""
        return self._best().predict_proba(pairs, **options)

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


@dataclass(frozen=True)
class PausingStore:
    """Lets minimisations, which have names, run up to some iteration, and later on from there."""

    max_iter: int
    reached: dict[str, Paused | Result]

    def find(self, name: str, vectors: Vectors) -> Paused | Result | None:
        """Return the run of this name as it was left."""
        return self.reached.get(name)

    def note(self, name: str, content: Any, vectors: Vectors) -> bool:
        """Keep a result, and a run that is far enough; return whether to pause."""
        if isinstance(content, Result):
            self.reached[name] = content
            return False
        if content.history[-1].iteration < self.max_iter:
            return False
        self.reached[name] = content.keep()
        return True


class HalvingCandidate:
    """One candidate of a search, on every split; all start from the same seed."""

    def __init__(
        self, model: Factoriser, data: Ratings, splits: Sequence[ValidationSplit], seed: int
    ) -> None:
        self.model, self.data, self.splits, self.seed = copy(model), data, splits, seed
        if hasattr(model, "schedule"):  # see HalvingSearch
            self.model.set_params(schedule="independent")
        self.trials: list[HoldoutTrial] = []
        self.reached: list[dict[str, Paused | Result]] = [{} for _ in splits]

    def error_after(self, max_iter: int, metric: Metric, report: Report) -> float:
        """Go on up to an iteration of every stage; return the mean error on the splits."""
        if not self.trials:
            self.trials = [self.model.trial(split, self.data) for split in self.splits]
        levels, errors = self.data.levels, []
        for trial, reached in zip(self.trials, self.reached, strict=True):
            checkpoint = OpenCheckpoint(PausingStore(max_iter, reached))
            training = replace(trial.training, checkpoint=checkpoint)
            n_stages = len(training.stages)
            rngs = np.random.default_rng(self.seed).spawn(n_stages)
            solutions = training.train(self.model.given_regs(n_stages), rngs, report)
            predicted = levels[self.model._decode(trial.margins(solutions))]
            errors.append(metric(self.data.values[trial.split.entries], predicted))
        return float(np.mean(errors))

    @property
    def n_evaluations(self) -> int:
        """How many gradients it took so far."""
        return sum(run.history[-1].n_evaluations for run in self._runs())

    @property
    def n_iter(self) -> int:
        """How many iterations its longest stage made."""
        return max(run.history[-1].iteration for run in self._runs())

    @property
    def finished(self) -> bool:
        """Whether every stage came to its end by itself."""
        return all(isinstance(run, Result) for run in self._runs())

    def _runs(self) -> list[Paused | Result]:
        return [run for reached in self.reached for run in reached.values()]

    def forget(self) -> None:
        """Drop the vectors: it is out, and only its numbers are of interest."""
        self.trials.clear()
        for reached in self.reached:
            for name, run in reached.items():
                n_evaluations = run.history[-1].n_evaluations
                reached[name] = Result(None, [*run.history], StopReason.PAUSED, n_evaluations)
