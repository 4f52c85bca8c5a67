"""The rows of an svmlight file as growing columns, and the matrices that they become."""

import re
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from marginmf._typing import IntArray
from marginmf.datasets.files.blocks import Column
from marginmf.datasets.labels.choice import IfThere, LabelsChoice
from marginmf.datasets.labels.numbers import parse_numbers

LABELS = re.compile(r"(?:\d{1,9}(?:,\d{1,9})*+)?").fullmatch
FEATURE = re.compile(r"\d{1,9}:[^\s:,]+").fullmatch
FEATURES = re.compile(r"\s*(?:\d{1,9}:[^\s:,]+(?:\s+|\Z))*+").fullmatch


class Sizes(NamedTuple):
    """What the header of extreme classification says."""

    n_samples: int
    n_features: int
    n_labels: int


class SvmlightRows:
    """Labels and features of the rows read so far; `where` is the file, for messages."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._lines = Column(np.int64)
        self._label_counts, self._label_ids = Column(np.int64), Column(np.int32)
        self._counts, self._places = Column(np.int64), Column(np.int32)
        self._values = Column(np.float64)

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, numbers: list[int], lines: list[str]) -> None:
        """Add some lines, whose numbers in the file are for messages."""
        labels: list[str] = []
        features: list[str] = []
        for number, line in zip(numbers, lines, strict=True):
            head, _, rest = line.replace("\t", " ").partition(" ")
            if ":" in head:
                head, rest = "", line
            if not LABELS(head) or not FEATURES(rest):
                raise self._unreadable(number, head, rest)
            labels.append(head)
            features.append(rest)
        counts = [rest.count(":") for rest in features]
        pairs = parse_numbers(" ".join(features).replace(":", " "), " ", 2 * sum(counts))
        if pairs is None:
            self._refuse_value(numbers, features)
            raise AssertionError("a value that is no number was not found again")
        ids = ",".join(filter(None, labels))
        label_counts = [label.count(",") + bool(label) for label in labels]
        self._lines.add(np.array(numbers))
        self._counts.add(np.array(counts))
        self._places.add(pairs[::2])
        self._values.add(pairs[1::2])
        self._label_counts.add(np.array(label_counts))
        self._label_ids.add(np.array(ids.split(",") if ids else [], dtype=np.int32))

    def features(self, n_features: int | None, from_zero: bool) -> Any:
        """Return the features; places count from 1, or from 0 if one of them is 0."""
        places, values = self._places.finish(), self._values.finish()
        indptr = _pointers(self._counts.finish())
        if not from_zero and places.min(initial=1) > 0:
            places -= 1
            base = 1
        else:
            base = 0
        width = int(places.max(initial=-1)) + 1
        if n_features is not None and width > n_features:
            row = _row(indptr, int(np.argmax(places >= n_features)))
            raise ValueError(
                f"{self._at(row)}: the feature {int(places[places >= n_features][0]) + base} is "
                f"beyond the {n_features:,} features, which are counted from {base}; correct it, "
                f"or give the right n_features=."
            )
        X = sparse.csr_array((values, places, indptr), shape=(len(self), n_features or width))
        self._refuse_twice(X, base, "feature")
        X.eliminate_zeros()
        return X

    def labels(
        self, sizes: Sizes | None, labels: LabelsChoice | None
    ) -> tuple[Any, tuple[str, ...]]:
        """Return the labels and their names, which are their numbers unless they are given."""
        ids = self._label_ids.finish()
        indptr = _pointers(self._label_counts.finish())
        names = _label_names(ids, sizes, labels, self.where)
        if names is None:  # those that occur
            known, places = np.unique(ids, return_inverse=True)
            names = tuple(map(str, known.tolist()))
            base = 0
        else:
            base = 0 if sizes is not None or ids.min(initial=1) == 0 else 1
            places = ids - base
        beyond = places >= len(names)
        if beyond.any():
            first = int(np.argmax(beyond))
            raise ValueError(
                f"{self._at(_row(indptr, first))}: the label {int(ids[first])} is beyond the "
                f"{len(names):,} labels, which are counted from {base}; correct it, or give the "
                f"right labels=."
            )
        ones = np.ones(len(ids), dtype=np.int64)
        Y = sparse.csr_array((ones, places, indptr), shape=(len(self), len(names)))
        self._refuse_twice(Y, 0, "label", names)
        return Y, names

    def _at(self, row: int) -> str:
        return f"{self.where}, line {int(self._lines[row])}"

    def _refuse_twice(
        self, matrix: Any, base: int, what: str, names: tuple[str, ...] | None = None
    ) -> None:
        matrix.sort_indices()
        again = np.flatnonzero(np.diff(matrix.indices) == 0)
        rows = _row(matrix.indptr, again)
        same = rows == _row(matrix.indptr, again + 1)
        if same.any():
            place = int(matrix.indices[again[same][0]])
            name = str(place + base) if names is None else names[place]
            raise ValueError(
                f"{self._at(int(rows[same][0]))}: the {what} {name} is named twice; remove one of "
                f"them."
            )

    def _unreadable(self, number: int, head: str, rest: str) -> ValueError:
        here = f"{self.where}, line {number}"
        if not LABELS(head):
            return ValueError(
                f"{here}: {head[:30]!r} are not labels, which are whole numbers from 0 with commas "
                f"between them, such as 1,3; correct it."
            )
        wrong = next(one for one in rest.split() if not FEATURE(one))
        return ValueError(
            f"{here}: {wrong[:30]!r} is not a feature and its value, such as 4:0.2; correct it."
        )

    def _refuse_value(self, numbers: list[int], features: list[str]) -> None:
        for number, rest in zip(numbers, features, strict=True):
            for pair in rest.split():
                if parse_numbers(pair.partition(":")[2], " ", 1) is None:
                    raise ValueError(
                        f"{self.where}, line {number}: the value of {pair[:30]!r} is not a finite "
                        f"number; correct it."
                    )


def _label_names(
    ids: IntArray, sizes: Sizes | None, labels: LabelsChoice | None, where: str
) -> tuple[str, ...] | None:
    """Return the names of all labels, or None where there are as many as occur."""
    if isinstance(labels, IfThere):
        labels = None
    if labels is None:
        return None if sizes is None else tuple(map(str, range(sizes.n_labels)))
    if isinstance(labels, str) or (isinstance(labels, int) and labels < 1):
        raise ValueError(
            f"{where}: the labels of an svmlight file are numbers; give labels= as how many there "
            f"are, or as a list of their names, not {labels!r}."
        )
    if not isinstance(labels, int):
        return tuple(labels)
    from_zero = sizes is not None or ids.min(initial=1) == 0
    return tuple(map(str, range(labels) if from_zero else range(1, labels + 1)))


def _pointers(counts: IntArray) -> IntArray:
    pointers: IntArray = np.concatenate([[0], np.cumsum(counts)])
    return pointers


def _row(indptr: IntArray, entries: Any) -> Any:
    """Return the row that an entry, or each of several, stands in."""
    return np.searchsorted(indptr, entries, side="right") - 1
