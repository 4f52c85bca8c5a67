"""A small file of songs with tags, for the tests of the commands for labels."""

import numpy as np

from marginmf.datasets import LabelsTable, make_labels

FEATURES = ("tempo", "loudness", "brightness", "beat", "length")
TAGS = ("tag_calm", "tag_sad", "tag_loud")


def songs(n_rows: int = 80) -> LabelsTable:
    made = make_labels(n_rows, 5, 3, n_factors=2, noise=0.1, random_state=0)
    scale = np.array([100.0, 1.0, 0.01, 1.0, 10.0])
    return LabelsTable("songs", made.X * scale, made.Y, feature_names=FEATURES, label_names=TAGS)


def as_csv(table: LabelsTable, labels: bool = True, order: tuple[int, ...] = ()) -> str:
    features = list(order or range(table.n_features))
    names = [table.feature_names[k] for k in features]
    rows = table.X[:, features]
    lines = []
    for row, tags in zip(rows.tolist(), table.Y.toarray().tolist(), strict=True):
        lines.append(",".join(map(repr, [*row, *(tags if labels else [])])))
    return "\n".join([",".join([*names, *(TAGS if labels else ())]), *lines]) + "\n"


def as_svmlight(table: LabelsTable) -> str:
    lines = []
    for row, tags in zip(table.X.tolist(), table.Y.toarray(), strict=True):
        pairs = " ".join(f"{place}:{value!r}" for place, value in enumerate(row, 1))
        lines.append(f"{','.join(map(str, np.flatnonzero(tags) + 1))} {pairs}")
    return "\n".join(lines) + "\n"
