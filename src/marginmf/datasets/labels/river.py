"""The copy of yeast that the wheel of river carries."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from marginmf.datasets.labels.reading import read_labels
from marginmf.datasets.labels.table import LabelsTable

N_TRAIN, N_LABELS = 1500, 14


def read_yeast(members: Mapping[str, bytes]) -> LabelsTable:
    """Read the copy, whose test rows come first, into the order of its owner's file."""
    (content,) = members.values()
    with TemporaryDirectory(prefix="marginmf-") as folder:
        path = Path(folder, "yeast.csv.gz")
        path.write_bytes(content)
        table = read_labels(path, labels=N_LABELS)
    order = np.roll(np.arange(table.n_samples), N_TRAIN)
    return LabelsTable(
        "yeast",
        table.X[order].astype(np.float32),
        table.Y[order],
        feature_names=table.feature_names,
        label_names=table.label_names,
        train_idx=np.arange(min(N_TRAIN, table.n_samples)),
        test_idx=np.arange(min(N_TRAIN, table.n_samples), table.n_samples),
    )
