"""The baselines reach on real data what the thesis reports of them: five folds, by sign."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from marginmf.datasets import load_labels
from marginmf.labels import CPLST, PLST, BinaryRelevance, RidgeEmbedding
from marginmf.metrics import jaccard_accuracy


@pytest.mark.parametrize(
    ("name", "method", "thesis", "within"),
    [
        ("medical", BinaryRelevance, 0.753, 0.01),
        ("medical", PLST, 0.762, 0.01),
        ("corel5k", PLST, 0.054, 0.004),
        ("corel5k", CPLST, 0.054, 0.004),
        ("corel5k", RidgeEmbedding, 0.054, 0.004),
    ],
)
def test_accuracy_is_that_of_the_thesis(
    name, method, thesis, within, data_root, monkeypatch
) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    data = load_labels(name)
    reached = []
    for train, test in KFold(5, shuffle=True, random_state=0).split(np.arange(data.X.shape[0])):
        model = method(decision="sign").fit(data.X[train], data.Y[train])
        reached.append(jaccard_accuracy(data.Y[test], model.predict(data.X[test])))
    assert abs(np.mean(reached) - thesis) < within
