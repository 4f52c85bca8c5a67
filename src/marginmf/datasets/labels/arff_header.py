"""The header of an ARFF file, and the columns of features and labels that its attributes become.

What they become depends on the header alone, never on the rows, so that two files with one header
have the same columns.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from marginmf._utils.types import BoolArray, Float64Array, IntArray
from marginmf.datasets.files.convert import parse_number
from marginmf.datasets.labels.columns import NO_FEATURES, refuse_duplicates

QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
VALUE = re.compile(rf"""\s*({QUOTED}|[^\s,'"{{}}][^\s,{{}}]*)\s*(,?)""")
ATTRIBUTE = re.compile(rf"\s*({QUOTED}|[^\s{{}}'\"][^\s{{}}]*)\s*(.*)", re.DOTALL)
ESCAPE = re.compile(r"\\(.)")
ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
NUMERIC = ("numeric", "real", "integer")
OTHER_KINDS = ("string", "date")
# Where MEKA says how many attributes are labels: the first n, or the last where it is negative.
MEKA_COUNT = re.compile(r"(?:^|\s)-[Cc]\s+(-?\d+)\b")
# Filters that take attributes out or move them, after which the count says nothing any more.
MOVED = re.compile(r"weka\.filters\.\w+\.attribute\.(?:Remove|Reorder|Add|Copy)")
#: A nominal attribute of more values than this names the rows and is no feature of them.
MOST_VALUES = 100
YES_AND_NO = (("yes", "no"), ("y", "n"), ("true", "false"), ("t", "f"), ("on", "off"))
SHOWN = 60


@dataclass(frozen=True)
class Attribute:
    """A column of the file; `values` are those of a nominal one, `kind` is its type."""

    name: str
    kind: str
    values: tuple[str, ...]
    line: int

    @cached_property
    def numbers(self) -> Float64Array | None:
        """The values of a nominal attribute, if all are numbers."""
        try:
            return np.array([parse_number(value) for value in self.values])
        except ValueError:
            return None


@dataclass(frozen=True)
class ArffHeader:
    """What an ARFF file says of itself, and in how many lines."""

    relation: str
    attributes: tuple[Attribute, ...]
    n_lines: int

    @property
    def names(self) -> list[str]:
        """Names of the attributes."""
        return [attribute.name for attribute in self.attributes]

    @property
    def meka_count(self) -> int | None:
        """The ``-C n`` of MEKA, if the relation has it."""
        match = MEKA_COUNT.search(self.relation)
        return None if match is None else int(match[1])

    @property
    def moved(self) -> bool:
        """Whether attributes may stand elsewhere than when the relation got its name."""
        return MOVED.search(self.relation) is not None


def read_header(lines: Iterable[str], where: str) -> ArffHeader:
    """Read lines up to ``@data``, or raise an error that names the line at fault."""
    relation = ""
    attributes: list[Attribute] = []
    number = 0
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        keyword = line.split(maxsplit=1)[0].lower()
        rest = line[len(keyword) :].strip()
        try:
            if keyword == "@relation":
                relation = unquote(rest)
            elif keyword == "@attribute":
                attributes.append(_parse_attribute(rest, number))
            elif keyword != "@data":
                raise ValueError(
                    f"{line[:SHOWN]!r} is not a line of an ARFF header; it needs @relation, "
                    f"@attribute or @data, and comments begin with %"
                )
            elif attributes:
                return ArffHeader(relation, tuple(attributes), number)
            else:
                raise ValueError("@data comes before any @attribute; declare some")
        except ValueError as error:
            raise ValueError(f"{where}, line {number}: {error}.") from None
    if not number:
        raise ValueError(f"{where} is empty; an ARFF file has a header and rows.")
    raise ValueError(
        f"{where}, line {number}: the file ends in its header, before @data; it is cut short, so "
        f"fetch or write it again."
    )


def _parse_attribute(text: str, line: int) -> Attribute:
    match = ATTRIBUTE.fullmatch(text)
    if match is None or not match[2]:
        example = "write @attribute name numeric, or @attribute name {0,1}"
        raise ValueError(f"{text[:SHOWN]!r} is not a name and a type; {example}")
    name, kind = unquote(match[1]), match[2].strip()
    if kind.startswith("{"):
        if not kind.endswith("}"):
            raise ValueError(f"the values of {name!r} have no closing brace; complete the line")
        try:
            values = split_values(kind[1:-1])
        except ValueError as error:
            raise ValueError(f"in the values of {name!r}, {error}") from None
        if not values:
            raise ValueError(f"the attribute {name!r} has no values; name some")
        return Attribute(name, "nominal", tuple(values), line)
    word = kind.split()[0].lower()
    if word not in NUMERIC + OTHER_KINDS:
        raise ValueError(
            f"the attribute {name!r} has the type {kind[:SHOWN]!r}, which is none that can be "
            f"read; make it numeric or {{0,1}}"
        )
    return Attribute(name, "numeric" if word in NUMERIC else word, (), line)


def split_values(text: str) -> list[str]:
    r"""Return the values of a list, without their quotes, or raise ValueError with the problem.

    They are separated by commas or blanks, and quoted where they hold any.

    >>> split_values(r"1, 'rock \'n\' roll',?")
    ['1', "rock 'n' roll", '?']
    """
    values: list[str] = []
    position, more = 0, False
    end = len(text.rstrip())
    while position < end:
        match = VALUE.match(text, position, end)
        if match is None:
            rest = text[position:end].strip()
            if rest[0] in "'\"":
                raise ValueError("a quote is not closed; close it")
            if rest[0] == ",":
                raise ValueError("a value between two commas is missing; fill it in")
            raise ValueError(f"{rest[:20]!r} does not begin a value; quote it")
        values.append(unquote(match[1]))
        more = bool(match[2])
        position = match.end()
    if more:
        raise ValueError("the line ends with a comma; complete or remove the line")
    return values


def unquote(value: str) -> str:
    """Return what a value stands for: without its quotes and escapes."""
    if len(value) < 2 or value[0] not in "'\"" or value[-1] != value[0]:
        return value
    return ESCAPE.sub(lambda match: ESCAPED.get(match[1], match[1]), value[1:-1])


@dataclass(frozen=True)
class ArffColumn:
    """An attribute and the columns that it becomes: `width` of them, from `start` on.

    Its values are numbers that are taken as they are; or, where it `is_coded`, the index of each
    in the declaration, whose row of `codes` has the numbers of the columns.
    """

    attribute: Attribute
    index: int
    is_label: bool
    start: int
    codes: Float64Array

    @property
    def is_coded(self) -> bool:
        """Whether values are read as indices in the declaration."""
        return len(self.codes) > 0

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.codes.shape[1])

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        name = self.attribute.name
        return [name] if self.width == 1 else [f"{name}={one}" for one in self.attribute.values]

    def find_numbers(self, numbers: Float64Array) -> IntArray | None:
        """Return the index of each number in the declaration, or None if one is not declared."""
        if self.attribute.numbers is None:
            return None
        equal = numbers[:, None] == self.attribute.numbers
        return equal.argmax(axis=1) if equal.any(axis=1).all() else None


class ArffColumns:
    """The columns that are read, of `features` and of `labels`; other attributes are left out.

    `binary` tells of each attribute whether it must be the number 0 or 1.
    """

    def __init__(
        self,
        attributes: Sequence[Attribute],
        labels: Collection[int],
        ignored: Collection[int],
        where: str,
    ) -> None:
        self.attributes = attributes
        self.by_index: dict[int, ArffColumn] = {}
        self.binary: BoolArray = np.zeros(len(attributes), dtype=bool)
        labels, ignored, widths = set(labels), set(ignored), [0, 0]
        for index, attribute in enumerate(attributes):
            is_label = index in labels
            if not is_label and (index in ignored or len(attribute.values) > MOST_VALUES):
                continue
            codes = _make_codes(attribute, is_label, where)
            column = ArffColumn(attribute, index, is_label, widths[is_label], codes)
            widths[is_label] += column.width
            self.by_index[index] = column
            nominal = is_label or attribute.kind == "nominal"
            self.binary[index] = nominal and not column.is_coded
        columns = list(self.by_index.values())
        self.features = [column for column in columns if not column.is_label]
        self.labels = [column for column in columns if column.is_label]
        self.coded = [column for column in columns if column.is_coded]
        self.left_out = [one.name for k, one in enumerate(attributes) if k not in self.by_index]
        if not self.features:
            raise ValueError(f"{where} {NO_FEATURES}")
        named = ((column.attribute.line, name) for column in columns for name in column.names)
        refuse_duplicates(named, where, "columns of the lines")


def _make_codes(attribute: Attribute, is_label: bool, where: str) -> Float64Array:
    """Return the numbers that each declared value becomes; none where they are their own."""
    numbers = None if attribute.numbers is None else attribute.numbers.tolist()
    if attribute.kind == "numeric" or numbers in ([0.0], [0.0, 1.0]):
        return np.empty((0, 1))
    if numbers in ([1.0], [1.0, 0.0]):  # the first is what a sparse row leaves out
        return np.array(numbers)[:, None]
    words = tuple(value.lower() for value in attribute.values)
    for yes, no in YES_AND_NO:
        if words in ((yes, no), (no, yes)):
            return np.array([[float(word == yes)] for word in words])
    here = f"{where}, line {attribute.line}"
    if is_label:
        declared = ", ".join(attribute.values[:4]) or attribute.kind
        raise ValueError(
            f"{here}: {attribute.name!r} is a label but takes the values {declared}; labels take 0 "
            f"and 1."
        )
    if attribute.kind != "nominal":
        raise ValueError(
            f"{here}: the attribute {attribute.name!r} is of type {attribute.kind}, which is no "
            f"number; turn it into numbers, or leave it out with ignore=[{attribute.name!r}]."
        )
    return np.eye(len(attribute.values))
