"""Read the header of an ARFF file: the relation and its attributes, up to ``@data``."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from marginmf.datasets.labels.arff.values import QUOTED, ValuesFault, cut, unquote

ATTRIBUTE = re.compile(rf"\s*({QUOTED}|[^\s{{}}'\"][^\s{{}}]*)\s*(.*)", re.DOTALL)
NUMBERS = ("numeric", "real", "integer")
# Where MEKA says how many attributes are labels: the first n, or the last where it is negative.
MEKA_COUNT = re.compile(r"(?:^|\s)-[Cc]\s+(-?\d+)\b")
# Filters that take attributes out or move them, after which the count says nothing any more.
MOVED = re.compile(r"weka\.filters\.\w+\.attribute\.(?:Remove|Reorder|Add|Copy)")
SHOWN = 60


@dataclass(frozen=True)
class Attribute:
    """A column of the file; `values` are those of a nominal one, `kind` is its type."""

    name: str
    kind: str
    values: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Header:
    """What an ARFF file says of itself, and in how many lines."""

    relation: str
    attributes: tuple[Attribute, ...]
    lines: int

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


def read_header(lines: Iterable[str], where: str) -> Header:
    """Read lines up to ``@data``, or say what is wrong with one of them."""
    relation = ""
    attributes: list[Attribute] = []
    number = 0
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        here = f"{where}, line {number}"
        keyword = line.split(maxsplit=1)[0].lower()
        rest = line[len(keyword) :].strip()
        if keyword == "@data":
            if not attributes:
                raise ValueError(f"{here}: @data comes before any @attribute; declare some.")
            return Header(relation, tuple(attributes), number)
        if keyword == "@relation":
            relation = unquote(rest)
        elif keyword == "@attribute":
            attributes.append(_attribute(rest, number, here))
        else:
            raise ValueError(
                f"{here}: {line[:SHOWN]!r} is not a line of an ARFF header; it needs @relation, "
                f"@attribute or @data, and comments begin with %."
            )
    if not number:
        raise ValueError(f"{where} is empty; an ARFF file has a header and rows.")
    raise ValueError(
        f"{where}, line {number}: the file ends in its header, before @data; it is cut short, so "
        f"fetch or write it again."
    )


def _attribute(text: str, number: int, here: str) -> Attribute:
    match = ATTRIBUTE.fullmatch(text)
    if match is None or not match[2]:
        raise ValueError(
            f"{here}: {text[:SHOWN]!r} is not a name and a type; write @attribute name numeric, "
            f"or @attribute name {{0,1}}."
        )
    name, kind = unquote(match[1]), match[2].strip()
    if kind.startswith("{"):
        if not kind.endswith("}"):
            raise ValueError(
                f"{here}: the values of {name!r} have no closing brace; complete the line."
            )
        try:
            values = cut(kind[1:-1])
        except ValuesFault as fault:
            raise ValueError(f"{here}: in the values of {name!r}, {fault}.") from None
        if not values:
            raise ValueError(f"{here}: the attribute {name!r} has no values; name some.")
        return Attribute(name, "nominal", tuple(values), number)
    word = kind.split()[0].lower()
    if word in NUMBERS:
        return Attribute(name, "numeric", (), number)
    if word in ("string", "date"):
        return Attribute(name, word, (), number)
    raise ValueError(
        f"{here}: the attribute {name!r} has the type {kind[:SHOWN]!r}, which is none that can be "
        f"read; make it numeric or {{0,1}}."
    )
