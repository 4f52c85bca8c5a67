"""What the attributes of an ARFF file become: columns of features and of labels.

What they become depends on the header alone, never on the rows, so that two files with one header
have the same columns.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from marginmf._utils.types import BoolArray, Float64Array, IntArray
from marginmf.datasets.files.convert import parse_number
from marginmf.datasets.labels.arff.header import Attribute
from marginmf.datasets.labels.names import refuse_alike

#: A nominal attribute of more values than this names the rows and is no feature of them.
MOST_VALUES = 100
YES_AND_NO = (("yes", "no"), ("y", "n"), ("true", "false"), ("t", "f"), ("on", "off"))


@dataclass(frozen=True)
class Column:
    """An attribute and the columns that it becomes: `width` of them, from `start` on.

    Its values are numbers that are taken as they are; or, where there is a `meaning`, the place of
    each in the declaration, whose row of `meaning` has the numbers of the columns.
    """

    attribute: Attribute
    label: bool
    start: int
    meaning: Float64Array | None = None

    @property
    def width(self) -> int:
        """Number of columns."""
        return 1 if self.meaning is None else self.meaning.shape[1]

    @property
    def two_valued(self) -> bool:
        """Whether the values must be the numbers 0 and 1."""
        return self.meaning is None and (self.label or self.attribute.kind == "nominal")

    @cached_property
    def codes(self) -> dict[str, int]:
        """Place of each value in the declaration."""
        return {value: place for place, value in enumerate(self.attribute.values)}

    @cached_property
    def numbers(self) -> Float64Array | None:
        """The values of a nominal attribute, if all are numbers."""
        return as_numbers(self.attribute.values)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        name = self.attribute.name
        return [name] if self.width == 1 else [f"{name}={one}" for one in self.attribute.values]


class Columns:
    """The columns that are read, by the place of their attribute; others are left out.

    Parameters
    ----------
    attributes : sequence of Attribute
        Those of the header.
    labels, ignored : collection of int
        Places of the labels, and of what is neither label nor feature.
    where : str
        The file, for messages.
    """

    def __init__(
        self,
        attributes: Sequence[Attribute],
        labels: Collection[int],
        ignored: Collection[int],
        where: str,
    ) -> None:
        self.attributes = attributes
        self.by_place: dict[int, Column] = {}
        chosen, counts = set(labels), [0, 0]
        for place, attribute in enumerate(attributes):
            label = place in chosen
            if not label and (place in ignored or len(attribute.values) > MOST_VALUES):
                continue
            meaning = (_label if label else _feature)(attribute, where)
            column = Column(attribute, label, counts[label], meaning)
            counts[label] += column.width
            self.by_place[place] = column
        self.n_features, self.n_labels = counts
        if not self.n_features:
            raise ValueError(f"{where} has labels but no features; it needs both.")
        made = ((one.attribute.line, name) for one in self.by_place.values() for name in one.names)
        refuse_alike(made, where, "columns of the lines")

    @property
    def label_names(self) -> list[str]:
        """Names of the labels, in the order of the file."""
        return [column.attribute.name for column in self.by_place.values() if column.label]

    @property
    def feature_names(self) -> list[str]:
        """Names of the features."""
        columns = (column for column in self.by_place.values() if not column.label)
        return [name for column in columns for name in column.names]

    @property
    def left_out(self) -> list[str]:
        """Names of the attributes that are not read."""
        return [
            attribute.name
            for place, attribute in enumerate(self.attributes)
            if place not in self.by_place
        ]

    @cached_property
    def coded(self) -> dict[int, Column]:
        """The columns that are read as places in a declaration."""
        return {
            place: column for place, column in self.by_place.items() if column.meaning is not None
        }

    @cached_property
    def two_valued(self) -> BoolArray:
        """For each attribute, whether it must be 0 or 1."""
        return self._marked([p for p, column in self.by_place.items() if column.two_valued])

    @cached_property
    def outputs(self) -> tuple[IntArray, BoolArray, BoolArray]:
        """For each attribute its column, and whether it is a plain feature, or a plain label."""
        starts = np.zeros(len(self.attributes), dtype=np.int64)
        plain = {p: one for p, one in self.by_place.items() if one.meaning is None}
        for place, column in plain.items():
            starts[place] = column.start
        features = self._marked([place for place, one in plain.items() if not one.label])
        labels = self._marked([place for place, one in plain.items() if one.label])
        return starts, features, labels

    def _marked(self, places: list[int]) -> BoolArray:
        marks = np.zeros(len(self.attributes), dtype=bool)
        marks[places] = True
        return marks


def as_numbers(values: Sequence[str]) -> Float64Array | None:
    """Return values as numbers, if all are."""
    try:
        return np.array([parse_number(value) for value in values])
    except ValueError:
        return None


def _label(attribute: Attribute, where: str) -> Float64Array | None:
    if attribute.kind == "numeric" or _begins_with_zero(attribute):
        return None
    meaning = _as_zero_and_one(attribute)
    if meaning is None:
        declared = ", ".join(attribute.values[:4]) or attribute.kind
        raise ValueError(
            f"{where}, line {attribute.line}: {attribute.name!r} is a label but takes the values "
            f"{declared}; labels take 0 and 1."
        )
    return meaning


def _feature(attribute: Attribute, where: str) -> Float64Array | None:
    if attribute.kind == "numeric" or _begins_with_zero(attribute):
        return None
    if attribute.kind != "nominal":
        raise ValueError(
            f"{where}, line {attribute.line}: the attribute {attribute.name!r} is of type "
            f"{attribute.kind}, which is no number; turn it into numbers, or leave it out with "
            f"ignore=[{attribute.name!r}]."
        )
    meaning = _as_zero_and_one(attribute)
    return np.eye(len(attribute.values)) if meaning is None else meaning


def _begins_with_zero(attribute: Attribute) -> bool:
    """Tell whether values are their own numbers, and what a sparse row leaves out is 0."""
    numbers = as_numbers(attribute.values)
    return numbers is not None and numbers.tolist() in ([0.0], [0.0, 1.0])


def _as_zero_and_one(attribute: Attribute) -> Float64Array | None:
    """Return the number of each of two values that are 1 and 0, or yes and no in some words."""
    numbers = as_numbers(attribute.values)
    if numbers is not None:
        right = numbers.tolist() in ([1.0], [1.0, 0.0])
        return numbers.reshape(-1, 1) if right else None
    words = tuple(value.lower() for value in attribute.values)
    for pair in YES_AND_NO:
        if words in (pair, pair[::-1]):
            return np.array([[float(word == pair[0])] for word in words])
    return None
