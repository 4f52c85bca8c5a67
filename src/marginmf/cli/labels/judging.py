"""Split rows, fit every method, measure the label sets that it predicts: in silence."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sklearn.model_selection import KFold

from marginmf._utils.types import IntArray
from marginmf.cli.labels.options import FoldOptions
from marginmf.cli.scores import Scores
from marginmf.datasets import LabelsTable
from marginmf.protocols import IterativeStratifiedKFold, compare_labels


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


def compare(
    models: Mapping[str, Any],
    table: LabelsTable,
    options: FoldOptions,
    seed: int,
    step: Callable[[str], None] = lambda text: None,
) -> dict[str, Scores]:
    """Judge every method on every fold; ``step`` hears of each fit before it starts."""
    found = compare_labels(
        table,
        models,
        list(folds(table, options, seed)),
        progress=lambda done, total, text: step(text.replace("split", "fold")),
    )
    return {name: Scores(own) for name, own in found.values.items()}
