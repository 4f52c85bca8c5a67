"""What ratings and label sets do differently when they are read, kept and checked."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marginmf.datasets.entry import Kind
from marginmf.datasets.facts import LabelsFacts, RatingsFacts
from marginmf.datasets.fingerprints import labels_fingerprint, ratings_fingerprint
from marginmf.datasets.npz import read_npz, write_npz


@dataclass(frozen=True)
class Form:
    """How a kind of dataset is kept as arrays, and how it is known again.

    `archive_first` says what a data folder that has both is read from: the archives of ratings
    have titles, which arrays of other people have not; arrays of labels are read more quickly.
    """

    read_arrays: Callable[[Path, str], Any]
    write_arrays: Callable[[Any, Path], None]
    fingerprint: Callable[[Any], str]
    facts: Callable[[Any], Any]
    archive_first: bool


def _read_labels(path: Path, name: str) -> Any:
    from marginmf.datasets.labels.npz import read_labels_npz

    with open(path, "rb") as file:
        return read_labels_npz(file, str(path), name)


def _write_labels(table: Any, path: Path) -> None:
    from marginmf.datasets.labels.npz import write_labels_npz

    write_labels_npz(table, path)


FORMS: dict[Kind, Form] = {
    "ratings": Form(
        lambda path, name: read_npz(path, name, f"read from {path}"),
        write_npz,
        ratings_fingerprint,
        RatingsFacts.of,
        archive_first=True,
    ),
    # Functions of their own, because labels need SciPy, which is not imported before it is used.
    "labels": Form(
        _read_labels, _write_labels, labels_fingerprint, LabelsFacts.of, archive_first=False
    ),
}
