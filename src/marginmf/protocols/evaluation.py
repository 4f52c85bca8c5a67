"""Evaluation: fit models to every split of a protocol, measure them there, and compare them."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, get_args

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from marginmf._utils.parameters import check_n_jobs, check_option, suggestion, warn
from marginmf._utils.types import IntArray
from marginmf.metrics import LABEL_METRICS
from marginmf.metrics.table import MetricKind
from marginmf.progress import show_bar
from marginmf.protocols.comparison import Comparison
from marginmf.protocols.lists import ListRule
from marginmf.protocols.results import ResultFile
from marginmf.protocols.splits import FEWEST, AllRatings, AllSamples, Protocol, SplitResult, warm_up
from marginmf.protocols.splitters import HoldOut, IterativeStratifiedKFold, SplitProtocol
from marginmf.ratings import METHODS, POSITIVE, Ratings
from marginmf.ratings.base import Output

#: The metrics of tables, by what is measured; the first one decides which model is the best.
SHOWN: Mapping[MetricKind, str] = {
    "ratings": "mae zero_one rmse nmae seconds",
    "labels": "accuracy hamming micro_f1 macro_f1 example_f1 subset_accuracy log_loss "
    "calibration_error seconds",
    "lists": "ndcg precision recall coverage seconds",
}

#: What to do with models that refuse the data.
Unsuitable = Literal["raise", "skip"]
#: Called with how many fits are done, of how many if that is known, and the next (or last) fit.
OnProgress = Callable[[int, int | None, str], None]


def evaluate(
    model: Any,
    pairs: Any,
    ratings: Any,
    protocol: SplitProtocol,
    *,
    lists: ListRule | None = None,
    times: Any = None,
    output: Output = "median",
    user_features: Any = None,
    item_features: Any = None,
) -> list[dict[str, float]]:
    """Fit a fresh copy of a model on every split and return its errors there.

    Parameters
    ----------
    model : estimator
        What to judge; it is cloned.
    pairs, ratings
        All the data.  Ratings may be None for methods that make lists from who has what.
    protocol : HoldOut, KFold, WeakGeneralisation, StrongGeneralisation or TimeSplit
        How to split it.
    lists : ListRule, optional
        Judge the lists of `recommend` by this rule instead of the predicted ratings.
    times : array-like, optional
        When each rating was given, for `TimeSplit`: numbers, dates, or texts such as "2021-03-05
        12:30:00".  By default they are in the pairs, if those are a frame with a column of a name
        such as ``timestamp`` or ``date``.
    output : {"median", "mode", "mean", "rule"}
        Which point of the predicted distribution is judged, as in ``predict``.
    user_features, item_features : optional
        Side information of all of them, as in ``fit``.

    Returns
    -------
    list of dict
        One `ratings_report` for each split; with ``lists``, one `ListScores.report`.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> from marginmf.protocols import WeakGeneralisation
    >>> from marginmf.ratings import BiasOnly
    >>> data = make_ratings(30, 30, random_state=0)
    >>> len(evaluate(BiasOnly(), data.pairs, data.ratings, WeakGeneralisation()))
    3
    """
    table = AllRatings((pairs, ratings), lists, times, output, user_features, item_features)
    reports = []
    for rows in table.rows(protocol):
        found = table.split(rows).evaluate(model)
        report = found.lists.report() if found.lists is not None else found.values
        reports.append({name: value for name, value in report.items() if name != "seconds"})
    return reports


def compare(
    data: Any,
    models: Any,
    protocol: Protocol | None = None,
    metrics: Iterable[str] | None = None,
    *,
    lists: ListRule | None = None,
    times: Any = None,
    output: Output = "median",
    baseline: str | None = None,
    unsuitable: Unsuitable = "raise",
    user_features: Any = None,
    item_features: Any = None,
    n_jobs: int | None = None,
    progress: bool | OnProgress = False,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Comparison:
    """Compare several models on the same splits of the same ratings.

    Parameters
    ----------
    data : RatingsTable, Ratings, data frame or pair (pairs, ratings)
        All the ratings.  A frame has the columns user, item and rating.  Ratings may be None for
        methods that make lists from who has what.
    models : mapping of str to estimator, or sequence of str and estimators
        What to compare, by name; estimators are cloned, not changed.  Names alone are those of
        `marginmf.ratings.METHODS` and, for lists, `POSITIVE`, with their defaults and seed 0.
    protocol : HoldOut, KFold, WeakGeneralisation, StrongGeneralisation or TimeSplit, optional
        How to split the ratings, or (train, test) row numbers; by default ``HoldOut()``.
    metrics : sequence of str, optional
        What tables show (`marginmf.metrics.METRICS`); the first decides which model is the best.
    lists : ListRule, optional
        Judge the lists of `recommend` by this rule instead of the predicted ratings.
    times : array-like, optional
        When each rating was given, for `TimeSplit`; by default the timestamps of the table, or the
        column of a frame that has a name such as ``timestamp`` or ``date``.
    output : {"median", "mode", "mean", "rule"}
        Which point of the predicted distribution is judged, as in ``predict``.
    baseline : str, optional
        Test the others against this model instead of against the best.
    unsuitable : {"raise", "skip"}
        What to do with a model that refuses the data by a ValueError: raise it, or leave the model
        out with a warning.
    user_features, item_features : optional
        Side information of all of them, as in ``fit``.
    n_jobs : int, optional
        How many fits run side by side, in processes; -1 for one a core.  The figures are the same
        for any number, but seconds are only fair with one, which is the default.
    progress : bool or callable
        True shows a bar on standard error; a function is called with the number of fits that are
        done, their total and the name of the next one (with several jobs, the one just done).
    checkpoint : path, optional
        A file that keeps every finished fit's figures.  A second call goes on where the first one
        was interrupted, and may add models; a file of another comparison is refused.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> from marginmf.ratings import ALS, BiasOnly
    >>> data = make_ratings(60, 40, n_factors=2, observed=0.5, random_state=0)
    >>> models = {"ALS": ALS(n_factors=2, random_state=0), "averages": BiasOnly()}
    >>> found = compare(data, models)
    >>> found.best("mae"), len(found.values["ALS"]["mae"])
    ('ALS', 3)
    """
    named = _named_models(models, METHODS if lists is None else {**METHODS, **POSITIVE})
    table = AllRatings(data, lists, times, output, user_features, item_features)
    if table.n_rows < FEWEST:
        raise ValueError(
            f"{table.name} has {table.n_rows} ratings, too few to hold some of them out: give at "
            f"least {FEWEST}."
        )
    if lists is None:
        Ratings.of(table.pairs, table.values)  # a fault anywhere is found before a fit
    kind: MetricKind = "ratings" if lists is None else "lists"
    values: dict[str, Any] = {name: {} for name in named}
    shown = SHOWN[kind].split() if metrics is None else metrics
    comparison = Comparison(kind, shown, values, baseline=baseline, rule=lists, output=output)
    protocol = HoldOut() if protocol is None else protocol
    return _fill(comparison, table, named, protocol, unsuitable, n_jobs, progress, checkpoint)


def compare_labels(
    data: Any,
    models: Any,
    protocol: Protocol | None = None,
    metrics: Iterable[str] | None = None,
    *,
    baseline: str | None = None,
    unsuitable: Unsuitable = "raise",
    n_jobs: int | None = None,
    progress: bool | OnProgress = False,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Comparison:
    """Compare several models of label sets on the same folds of the same samples.

    Parameters
    ----------
    data : LabelsTable or pair (X, Y)
        Features and label sets, dense or sparse.
    models : mapping of str to estimator, or sequence of str and estimators
        As in `compare`, with the names of `marginmf.labels.METHODS`; any of scikit-learn's too.
    protocol : splitter, optional
        Any of scikit-learn's, or (train, test) row numbers, such as ``[(data.train_idx,
        data.test_idx)]``; by default ``IterativeStratifiedKFold()``.
    metrics : sequence of str, optional
        As in `compare`.  By default those of label sets and the seconds of a fit; those of
        probabilities too if a model has ``predict_proba``.
    baseline, unsuitable, n_jobs, progress, checkpoint
        As in `compare`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from marginmf.labels import PLST, MLkNN
    >>> data = make_multilabel_classification(n_samples=90, n_classes=4, random_state=0)
    >>> found = compare_labels(data, [PLST(), MLkNN()], metrics=["micro_f1", "ndcg_at_2"])
    >>> found.methods, found.metrics
    (['PLST', 'MLkNN'], ('micro_f1', 'ndcg_at_2'))
    """
    from marginmf.labels import METHODS  # not needed for ratings, and slow to import

    named = _named_models(models, METHODS)
    shown = SHOWN["labels"].split() if metrics is None else metrics
    comparison = Comparison("labels", shown, {name: {} for name in named}, baseline=baseline)
    sets_alone = {*LABEL_METRICS, "seconds"}
    wanted = () if metrics is None else comparison.metrics
    asked = [name for name in wanted if name not in sets_alone]
    table = AllSamples(data, asked)
    protocol = IterativeStratifiedKFold() if protocol is None else protocol
    _fill(comparison, table, named, protocol, unsuitable, n_jobs, progress, checkpoint)
    if metrics is None:
        measured = {name for own in comparison.values.values() for name in own}
        comparison.metrics = tuple(name for name in comparison.metrics if name in measured)
    return comparison


def _named_models(models: Any, methods: Mapping[str, type[Any]]) -> dict[str, Any]:
    """Return models by name: a mapping as it is, names as methods with their defaults."""
    if isinstance(models, str) or not models:
        raise ValueError(
            "There are no models to compare: give a list of names or "
            "estimators, or a mapping of names to estimators."
        )
    if isinstance(models, Mapping):
        return dict(models)
    named: dict[str, Any] = {}
    for one in models:
        name, model = (one, None) if isinstance(one, str) else (type(one).__name__, one)
        if name in named:
            raise ValueError(
                f"Two models are called {name}: give a mapping of names to estimators."
            )
        if model is None:
            if name not in methods:
                raise ValueError(
                    f"There is no method {name!r} here; the known ones are {', '.join(methods)}."
                    f"{suggestion(name, list(methods))}"
                )
            model = methods[name]()
            if "random_state" in model.get_params():
                model.set_params(random_state=0)
        named[name] = model
    return named


def _fill(
    comparison: Comparison,
    data: AllRatings | AllSamples,
    models: dict[str, Any],
    protocol: Protocol,
    unsuitable: Unsuitable,
    n_jobs: int | None,
    progress: bool | OnProgress,
    checkpoint: str | os.PathLike[str] | None,
) -> Comparison:
    """Evaluate every model on every split, unless the checkpoint has it, and add the results."""
    check_option("unsuitable", unsuitable, get_args(Unsuitable))
    check_n_jobs(SimpleNamespace(n_jobs=n_jobs))
    file = None if checkpoint is None else ResultFile(Path(checkpoint), data, models)
    listed = protocol if isinstance(protocol, Sized) else ()
    n_splits = getattr(protocol, "n_splits", len(listed) or None)
    total = None if n_splits is None else n_splits * len(models)
    side_by_side = effective_n_jobs(n_jobs) > 1
    found: dict[tuple[int, str], SplitResult] = {}
    refused: dict[str, ValueError] = {}
    sizes: list[float] = []
    unknown: list[float] = []

    def splits() -> Iterator[tuple[int, tuple[IntArray, ...]]]:
        for number, rows in enumerate(data.rows(protocol)):
            sizes.append(len(rows[-1]) / sum(map(len, rows)))
            if isinstance(data, AllRatings):
                unknown.append(data.unknown_share(rows))
            if file is not None:
                found.update(file.finished(number, rows))
            yield number, rows

    def tasks(splits: Iterable[tuple[int, Any]]) -> Iterator[tuple[Any, ...]]:
        for number, rows in splits:
            names = [name for name in models if (number, name) not in found]
            split = data.split(rows) if names else None
            for name in names:
                if name in refused:
                    continue
                if not side_by_side:
                    announce(len(found), f"{name}, split {number + 1}")
                yield number, name, models[name], split, unsuitable

    with _announcer(progress, total) as announce:
        if side_by_side:
            # Processes ask for tasks in a thread, where an error would be lost: all row numbers
            # are found before.
            parallel = Parallel(n_jobs, return_as="generator_unordered")
            results = parallel(delayed(_measure)(*task) for task in tasks(list(splits())))
        else:
            results = (_measure(*task) for task in tasks(splits()))
        for number, name, result in results:
            if isinstance(result, ValueError):
                refused.setdefault(name, result)
                continue
            found[number, name] = result
            if file is not None:
                file.add(number, name, result)
            if side_by_side:
                announce(len(found), f"{name}, split {number + 1}")
        announce(len(found), "")
    if not sizes:
        raise ValueError("The protocol has no splits: give one at least.")
    if refused and len(refused) == len(models):
        raise next(iter(refused.values()))
    for name, error in refused.items():
        warn(f"{name} is left out: {error}")
        del comparison.values[name]
    for (_, name), result in sorted(found.items(), key=lambda item: item[0][0]):
        if name not in refused:
            comparison.add(name, result.values, result.lists)
    comparison.test_size = float(np.mean(sizes))
    comparison.unknown_share = float(np.mean(unknown)) if unknown else None
    return comparison


def _measure(
    number: int, name: str, model: Any, split: Any, unsuitable: Unsuitable
) -> tuple[int, str, SplitResult | ValueError]:
    """Evaluate a model on a split, without what is too large to come back from a process."""
    warm_up(model, split)
    try:
        return number, name, replace(split.evaluate(model), model=None, predicted=None)
    except ValueError as error:
        if unsuitable == "raise":
            raise
        return number, name, error


@contextmanager
def _announcer(
    progress: bool | OnProgress, total: int | None
) -> Iterator[Callable[[int, str], None]]:
    if callable(progress):
        yield lambda done, text: progress(done, total, text)
        return
    with show_bar(total=total, visible=bool(progress)) as update:
        yield lambda done, text: update(text, done=done)
