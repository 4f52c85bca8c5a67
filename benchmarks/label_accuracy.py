"""Accuracy of label methods under every decision rule: how much the rule matters.

Run by hand, for example::

    python -m benchmarks label-accuracy                       # about an hour on two cores
    python -m benchmarks label-accuracy --data medical,corel5k --only GroPLE

Five folds, shuffled with seed 0; thresholds are chosen by three-fold cross-validation inside the
training folds only.  Dense features are scaled to [0, 1] on the training fold.  Prints a Markdown
table of means over the folds.  The thesis's own tables are measured by ``marginmf reproduce``.
"""

from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from marginmf.experiments import Cell
from marginmf.experiments.cell import splits
from marginmf.experiments.measures import measure

RULES: dict[str, dict[str, Any]] = {
    "sign": {"decision": "sign"},
    "sign, top 1": {"decision": "sign", "top1_if_empty": True},
    "global": {"decision": "global"},
    "global, top 1": {"decision": "global", "top1_if_empty": True},
    "per label": {"decision": "per_label"},
}
#: Names in the table; the measure's names, and parameters.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "GroPLE": ("GroPLE", {}),
    "MLCHMF, one node": ("MLC-HMF", {"max_depth": 0}),
    "RidgeEmbedding": ("Ridge", {}),
    "BinaryRelevance": ("BSVM", {}),
    "MLkNN": ("ML-kNN", {}),
}
DATA = ("emotions", "yeast", "medical", "enron", "corel5k", "bibtex", "yahoo-education")
N_FOLDS = 5


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("--data", default=",".join(DATA), help="data sets, with commas between")
    parser.add_argument("--only", default="", help="only methods whose name contains this")
    parser.add_argument("--jobs", type=int, default=2)


def cells_for(data: str, name: str, rule: str) -> list[Cell]:
    """Return the folds of one place in the table."""
    method, params = METHODS[name]
    return splits(
        "label_measures",
        N_FOLDS,
        data=data,
        protocol={"folds": N_FOLDS},
        method=method,
        params=params,
        rule=RULES[rule],
    )


def main(args: Namespace) -> None:
    """Print the table, a row at a time."""
    print(f"| data | method | {' | '.join(RULES)} |")
    print(f"|---|---|{'---|' * len(RULES)}")
    for data in args.data.split(","):
        for name in (name for name in METHODS if args.only in name):
            cells = [cell for rule in RULES for cell in cells_for(data, name, rule)]
            found = Parallel(args.jobs)(delayed(measure)(cell) for cell in cells)
            accuracies = np.reshape([one["accuracy"] for one in found], (len(RULES), N_FOLDS))
            print(row(data, name, accuracies.mean(axis=1)), flush=True)


def row(data: str, name: str, means: np.ndarray) -> str:
    """Return a line of the table, the best in bold.

    >>> row("yeast", "MLkNN", np.array([0.5141, 0.5488]))
    '| yeast | MLkNN | 0.514 | **0.549** |'
    """
    shown = [f"{mean:.3f}" for mean in means]
    marked = [f"**{one}**" if one == max(shown) else one for one in shown]
    return f"| {data} | {name} | {' | '.join(marked)} |"
