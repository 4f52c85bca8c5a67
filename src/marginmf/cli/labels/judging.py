"""Split rows, fit every method, measure the label sets that it predicts: in silence."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sklearn.base import clone
from sklearn.model_selection import KFold

from marginmf._utils.types import IntArray
from marginmf.cli.labels.options import FoldOptions
from marginmf.cli.scores import Scores
from marginmf.datasets import LabelsTable
from marginmf.metrics import labels_report
from marginmf.protocols import IterativeStratifiedKFold

#: Rows on which methods are fitted first, so that no fit is charged for compiling kernels.
SAMPLE_ROWS = 20
#: For which first places to measure precision and nDCG.
PLACES = (1, 3, 5)


def folds(
    table: LabelsTable, options: FoldOptions, seed: int
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the rows to learn from and the rows to judge on."""
    if options.split:
        if table.train_idx is None or table.test_idx is None:
            raise ValueError(
                f"{table.name} does not say which rows to train and to test on; leave --split out."
            )
        yield table.train_idx, table.test_idx
        return
    if options.cv > table.n_samples:
        raise ValueError(
            f"{table.name} has {table.n_samples} rows, too few for {options.cv} folds; give fewer "
            "with --cv."
        )
    if options.stratified:
        yield from IterativeStratifiedKFold(options.cv, seed).split(table.X, table.Y)
    else:
        yield from KFold(options.cv, shuffle=True, random_state=seed).split(table.X)


def judge(model: Any, table: LabelsTable, train: IntArray, test: IntArray) -> Scores:
    """Fit a fresh copy of a method to some rows and measure it on others."""
    fresh = clone(model)
    started = time.perf_counter()
    fresh.fit(table.X[train], table.Y[train])
    seconds = time.perf_counter() - started
    rows = table.X[test]
    places = [k for k in PLACES if k <= table.n_labels]
    measured = labels_report(
        table.Y[test], fresh.predict(rows), fresh.decision_function(rows), k=places
    )
    scores = Scores()
    scores.add(measured, seconds)
    return scores


def compare(
    models: Mapping[str, Any],
    table: LabelsTable,
    options: FoldOptions,
    seed: int,
    step: Callable[[str], None] = lambda text: None,
) -> dict[str, Scores]:
    """Judge every method on every fold; ``step`` hears of each fit before it starts."""
    scores = {name: Scores() for name in models}
    for number, (train, test) in enumerate(folds(table, options, seed), start=1):
        if number == 1:
            step("Compiling the kernels, which takes long only the first time")
            _warm_up(models, table)
        for name, model in models.items():
            step(f"{name}, fold {number}")
            for metric, values in judge(model, table, train, test).values.items():
                scores[name].values.setdefault(metric, []).extend(values)
    return scores


def _warm_up(models: Mapping[str, Any], table: LabelsTable) -> None:
    for model in models.values():
        quick = clone(model).set_params(decision="sign")
        quick.fit(table.X[:SAMPLE_ROWS], table.Y[:SAMPLE_ROWS]).predict(table.X[:1])
