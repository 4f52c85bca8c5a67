"""Measures of label methods on held-out rows."""

import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.model_selection import KFold
from sklearn.preprocessing import MinMaxScaler

from marginmf.datasets import LabelsTable, load_labels
from marginmf.labels import (
    CPLST,
    MLCHMF,
    PLST,
    BinaryRelevance,
    DecisionTuned,
    GroPLE,
    MLkNN,
    RidgeEmbedding,
)
from marginmf.metrics import labels_report
from studies.harness.cell import Values

#: Methods by the names that the thesis and the report give them.
METHODS: Mapping[str, Any] = {
    "BSVM": BinaryRelevance,
    "CPLST": CPLST,
    "GroPLE": GroPLE,
    "ML-kNN": MLkNN,
    "MLC-HMF": MLCHMF,
    "PLST": PLST,
    "Ridge": RidgeEmbedding,
}


@cache
def load_table(name: str) -> LabelsTable:
    return load_labels(name, progress=False)


def label_measures(
    data: str,
    protocol: Mapping[str, Any],
    split: int,
    method: str,
    params: Mapping[str, Any],
    rule: Mapping[str, Any],
    search: Sequence[Mapping[str, Sequence[Any]]] = (),
) -> Values:
    """Return six measures of a method on the rows of one fold (see `split_rows`).

    The grids of ``search`` are searched one after the other by three-fold cross-validation inside
    the training rows, each with the best of those before it: for the price of their sum rather than
    of their product.  ``rule`` has the parameters of the decision rule.
    """
    table = load_table(data)
    train, test = split_rows(table.n_samples, protocol, split)
    X, X_test, Y = table.X[train], table.X[test], table.Y[train]
    if not issparse(table.X):
        scaler = MinMaxScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    begin = time.perf_counter()
    chosen: dict[str, Any] = {}
    for grid in search:
        model = DecisionTuned(make_method(method, {**params, **chosen}), grid, **rule).fit(X, Y)
        chosen |= model.best_params_
    if not search:
        model = make_method(method, {**params, **rule}).fit(X, Y)
    seconds = time.perf_counter() - begin
    report = labels_report(table.Y[test], model.predict(X_test))
    return {**report, "fit_seconds": seconds, "chosen": chosen, "n_test": len(test)}


def make_method(name: str, params: Mapping[str, Any]) -> Any:
    """Return an unfitted method with a fixed seed."""
    method = METHODS[name](**params)
    if "random_state" in method.get_params():
        method.set_params(random_state=0)
    return method


def split_rows(n_rows: int, protocol: Mapping[str, Any], split: int) -> tuple[Any, Any]:
    """Return the rows to train on and to test on.

    ``{"folds": 10}``: the fold of that number.  ``{"test": 0.1, "train": 0.4}``: a random tenth for
    the test, and of the others a share, which for larger shares holds all of a smaller one.
    """
    if "folds" in protocol:
        folds = KFold(protocol["folds"], shuffle=True, random_state=0).split(np.arange(n_rows))
        train, test = list(folds)[split]
        return train, test
    order = np.random.default_rng(split).permutation(n_rows)
    n_test = round(protocol["test"] * n_rows)
    n_train = round(protocol["train"] * (n_rows - n_test))
    return np.sort(order[n_test : n_test + n_train]), np.sort(order[:n_test])


def group_pattern(data: str, params: Mapping[str, Any]) -> Values:
    """Return the factors of all labels that GroPLE finds, and the group of each label."""
    table = load_table(data)
    model = make_method("GroPLE", params).fit(table.X, table.Y)
    return {
        "factors": np.round(model.label_factors_, 4).tolist(),
        "groups": model.label_groups_.tolist(),
    }
