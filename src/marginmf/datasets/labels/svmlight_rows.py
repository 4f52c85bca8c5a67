"""The rows of an svmlight file as growing columns of labels and of features."""

import re
from typing import NamedTuple

import numpy as np

from marginmf._utils.types import Float64Array, IntArray
from marginmf.datasets.files.reader import GrowingColumn
from marginmf.datasets.labels.numbers import parse_numbers

# Blanks and digits are those of ASCII, which are the ones that numbers are read with.
BLANKS = " \t\n\r\f\v"
LABELS = re.compile(r"(?:\d{1,9}(?:,\d{1,9})*+)?", re.ASCII).fullmatch
FEATURE = re.compile(r"\d{1,9}:[^\s:,]+", re.ASCII).fullmatch
FEATURES = re.compile(r"\s*(?:\d{1,9}:[^\s:,]+(?:\s+|\Z))*+", re.ASCII).fullmatch
WORDS = re.compile(r"\S+", re.ASCII).findall


class Entries(NamedTuple):
    """What rows name: numbers, one row after the other, and where each row begins in them."""

    numbers: IntArray
    indptr: IntArray
    values: Float64Array


class SvmlightRows:
    """Labels and features of the rows read so far; `where` is the file, for messages."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.n_blank = 0
        self._lines = GrowingColumn(np.int64)
        self._label_counts, self._label_ids = GrowingColumn(np.int64), GrowingColumn(np.int32)
        self._counts, self._places = GrowingColumn(np.int64), GrowingColumn(np.int32)
        self._values = GrowingColumn(np.float64)

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
            raise self._unreadable_value(numbers, features)
        ids = ",".join(filter(None, labels))
        label_counts = [label.count(",") + bool(label) for label in labels]
        self.n_blank += lines.count("")
        self._lines.add(np.array(numbers))
        self._counts.add(np.array(counts))
        self._places.add(pairs[::2])
        self._values.add(pairs[1::2])
        self._label_counts.add(np.array(label_counts))
        self._label_ids.add(np.array(ids.split(",") if ids else [], dtype=np.int32))

    def remove_blank(self) -> None:
        """Remove the rows that have neither labels nor features."""
        columns = [self._lines, self._counts, self._label_counts]
        lines, counts, label_counts = (column.finish() for column in columns)
        kept = (counts > 0) | (label_counts > 0)
        self._lines, self._counts, self._label_counts = (GrowingColumn(np.int64) for _ in columns)
        self._lines.add(lines[kept])
        self._counts.add(counts[kept])
        self._label_counts.add(label_counts[kept])
        self.n_blank = 0

    def finish_features(self) -> Entries:
        """Return the numbers and values of the features, and let go of them."""
        indptr = _pointers(self._counts.finish())
        return Entries(self._places.finish(), indptr, self._values.finish())

    def finish_labels(self) -> Entries:
        """Return the numbers of the labels, and let go of them."""
        ids, indptr = self._label_ids.finish(), _pointers(self._label_counts.finish())
        return Entries(ids, indptr, np.ones(len(ids)))

    def at(self, row: int) -> str:
        """Return where a row stands."""
        return f"{self.where}, line {int(self._lines[row])}"

    def _unreadable(self, number: int, head: str, rest: str) -> ValueError:
        here = f"{self.where}, line {number}"
        if not LABELS(head):
            return ValueError(
                f"{here}: {head[:30]!r} are not labels, which are whole numbers from 0 with commas "
                f"between them, such as 1,3; correct it."
            )
        wrong = next((one for one in WORDS(rest) if not FEATURE(one)), rest)
        return ValueError(
            f"{here}: {wrong[:30]!r} is not a feature and its value, such as 4:0.2; correct it."
        )

    def _unreadable_value(self, numbers: list[int], features: list[str]) -> ValueError:
        for number, rest in zip(numbers, features, strict=True):
            for pair in WORDS(rest):
                if parse_numbers(pair.partition(":")[2], " ", 1) is None:
                    return ValueError(
                        f"{self.where}, line {number}: the value of {pair[:30]!r} is not a finite "
                        f"number; correct it."
                    )
        return ValueError(
            f"{self.where}, lines {numbers[0]} to {numbers[-1]}: a value is not a finite number; "
            f"correct it."
        )


def _pointers(counts: IntArray) -> IntArray:
    pointers: IntArray = np.concatenate([[0], np.cumsum(counts)])
    return pointers
