"""Accuracy of label methods under every decision rule: how much the rule matters.

``--data medical,corel5k --only GroPLE MLkNN`` measures a part; all takes hours on two cores.
Means of five folds; thresholds are chosen by three-fold cross-validation inside training folds.
"""

from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from studies.harness import Cell, make_splits
from studies.harness.cell import measure_cell
from studies.harness.markdown import print_header, print_row
from studies.thesis.label_trials import LABEL_METHODS, has_label_method

RULES: dict[str, dict[str, Any]] = {
    "sign": {"decision": "sign"},
    "global": {"decision": "global", "top1_if_empty": False},
    "global, top 1": {"decision": "global", "top1_if_empty": True},
    "per label": {"decision": "per_label", "top1_if_empty": True},
    "jaccard": {"decision": "jaccard"},
    "auto": {"decision": "auto", "top1_if_empty": "auto"},
}
#: Names in the table; the measure's names, and parameters.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "GroPLE": ("GroPLE", {}),
    "MLCHMF": ("MLC-HMF", {"max_depth": "auto"}),
    "MLCHMF, one node": ("MLC-HMF", {"max_depth": 0}),
    "MLCHMF, tree": ("MLC-HMF", {}),
    "RidgeEmbedding": ("Ridge", {}),
    "BinaryRelevance": ("BSVM", {}),
    "MLkNN": ("ML-kNN", {}),
}
#: All others that the library has, as they are by default.
METHODS |= {
    kind: (name, {})
    for name, kind in LABEL_METHODS.items()
    if kind not in METHODS and has_label_method(name)
}
DATA = ("emotions", "scene", "yeast", "medical", "enron", "corel5k", "bibtex", "yahoo-education")
N_FOLDS = 5


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--data", default=",".join(DATA), help="data sets, with commas between")
    parser.add_argument("--only", nargs="+", default=list(METHODS), help="only these methods")
    parser.add_argument("--jobs", type=int, default=2)


def cells_for(data: str, name: str, rule: str) -> list[Cell]:
    method, params = METHODS[name]
    return make_splits(
        "label_measures",
        N_FOLDS,
        data=data,
        protocol={"folds": N_FOLDS},
        method=method,
        params=params,
        rule=RULES[rule],
    )


def main(args: Namespace) -> None:
    print_header("data", "method", *RULES)
    for data in args.data.split(","):
        for name in args.only:
            cells = [cell for rule in RULES for cell in cells_for(data, name, rule)]
            found = Parallel(args.jobs)(delayed(measure_cell)(cell) for cell in cells)
            accuracies = np.reshape([one["accuracy"] for one in found], (len(RULES), N_FOLDS))
            shown = [f"{mean:.3f}" for mean in accuracies.mean(axis=1)]
            marked = [f"**{one}**" if one == max(shown) else one for one in shown]
            print_row(data, name, *marked)
