"""LLSF, CSSP, FaIE and LEML reach on real data what Kumar's thesis reports of them, by sign."""

from itertools import islice

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.model_selection import KFold

from marginmf.datasets import load_labels
from marginmf.labels import CSSP, LEML, LLSF, FaIE, Scaled
from marginmf.metrics import jaccard_accuracy


@pytest.mark.parametrize(
    ("name", "model", "n_folds", "thesis", "within"),
    [
        ("cal500", LLSF(), 5, 0.228, 0.008),
        ("emotions", LLSF(), 5, 0.511, 0.025),
        ("cal500", CSSP(0.8, random_state=0), 5, 0.224, 0.008),
        ("cal500", FaIE(0.1, 1000.0, 0.01), 5, 0.235, 0.005),
        ("corel5k", FaIE(0.4, 1000.0, 0.01), 1, 0.089, 0.003),
        ("cal500", LEML(random_state=0), 5, 0.222, 0.005),
        ("corel5k", LEML(random_state=0), 1, 0.053, 0.003),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else str(value),
)
def test_accuracy_is_that_of_the_thesis(
    name, model, n_folds, thesis, within, data_root, monkeypatch
) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    data = load_labels(name)
    model.set_params(decision="sign")
    if not issparse(data.X):
        model = Scaled(model)
    reached = []
    folds = KFold(5, shuffle=True, random_state=0).split(np.arange(data.X.shape[0]))
    for train, test in islice(folds, n_folds):
        model.fit(data.X[train], data.Y[train])
        reached.append(jaccard_accuracy(data.Y[test], model.predict(data.X[test])))
    assert abs(np.mean(reached) - thesis) < within
