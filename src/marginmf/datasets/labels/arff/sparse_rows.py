"""Rows that name only the values that are not 0: ``{3 1, 17 0.5}``."""

import re
from typing import NamedTuple

import numpy as np

from marginmf._utils.types import Float64Array, IntArray
from marginmf.datasets.labels.arff.blocks import RowFault
from marginmf.datasets.labels.arff.columns import Columns
from marginmf.datasets.labels.arff.values import QUOTED, unquote
from marginmf.datasets.labels.arff.words import read_value
from marginmf.datasets.labels.numbers import parse_numbers

PLAIN_PAIR = r"\s*\d+\s+[^\s,{}'\"]+\s*"
# Possessive, because there is only one way to match a row, and rows are long.
PLAIN_ROW = re.compile(rf"\s*\{{(?:{PLAIN_PAIR}(?:,{PLAIN_PAIR})*+|\s*)\}}\s*")
PAIR = re.compile(rf"\s*(\d{{1,18}})\s+({QUOTED}|[^\s,{{}}'\"]+)\s*(,|$)")
PUNCTUATION = str.maketrans("{},", "   ")
SHOWN = 30


class Entries(NamedTuple):
    """The values that rows name: row, place of the attribute, raw value."""

    rows: IntArray
    places: IntArray
    raw: Float64Array


def raw_entries(lines: list[str], columns: Columns) -> Entries:
    """Return the values that each line names."""
    entries = _as_numbers(lines, columns)
    if entries is None:
        return _one_by_one(lines, columns)
    _check_places(entries, len(columns.attributes))
    return entries


def _as_numbers(lines: list[str], columns: Columns) -> Entries | None:
    """Return entries that are all numbers, or None."""
    if not all(map(PLAIN_ROW.fullmatch, lines)):
        return None
    counts = np.array([line.count(",") + (not _empty(line)) for line in lines])
    numbers = parse_numbers("\n".join(lines).translate(PUNCTUATION), " ", 2 * int(counts.sum()))
    if numbers is None or numbers[::2].max(initial=0) >= 2**53:
        return None
    entries = Entries(
        np.repeat(np.arange(len(lines)), counts), numbers[::2].astype(np.int64), numbers[1::2]
    )
    for place, column in columns.coded.items():
        mine = entries.places == place
        if not mine.any():
            continue
        if column.numbers is None:
            return None
        equal = entries.raw[mine, None] == column.numbers
        if not equal.any(axis=1).all():
            return None
        entries.raw[mine] = equal.argmax(axis=1)
    return entries


def _empty(line: str) -> bool:
    return not line.strip(" \t{}")


def _one_by_one(lines: list[str], columns: Columns) -> Entries:
    rows: list[int] = []
    places: list[int] = []
    raw: list[float] = []
    width = len(columns.attributes)
    for row, line in enumerate(lines):
        seen: set[int] = set()
        for place, value in _pairs(row, line.strip()):
            if place >= width:
                raise _beyond(row, place, width)
            if place in seen:
                raise _twice(row, place)
            seen.add(place)
            column = columns.by_place.get(place)
            if column is not None:
                rows.append(row)
                places.append(place)
                raw.append(read_value(value, row, column))
    return Entries(
        np.array(rows, dtype=np.int64), np.array(places, dtype=np.int64), np.array(raw, dtype=float)
    )


def _pairs(row: int, line: str) -> list[tuple[int, str]]:
    if not line.endswith("}"):
        raise RowFault(
            row, "the sparse row does not end with its brace; complete or remove this line"
        )
    inner = line[1:-1].strip()
    pairs: list[tuple[int, str]] = []
    place, more = 0, False
    while place < len(inner):
        match = PAIR.match(inner, place)
        if match is None:
            raise RowFault(
                row,
                f"{inner[place : place + SHOWN].strip()!r} does not begin with a place and a "
                f"value, such as 3 1; correct it",
            )
        pairs.append((int(match[1]), unquote(match[2])))
        more = match[3] == ","
        place = match.end()
    if more:
        raise RowFault(row, "the sparse row ends with a comma; complete or remove this line")
    return pairs


def _check_places(entries: Entries, width: int) -> None:
    beyond = entries.places >= width
    if beyond.any():
        first = int(np.argmax(beyond))
        raise _beyond(int(entries.rows[first]), int(entries.places[first]), width)
    keys = np.sort(entries.rows * width + entries.places)
    again = np.flatnonzero(keys[1:] == keys[:-1])
    if len(again):
        raise _twice(*map(int, divmod(keys[again[0]], width)))


def _beyond(row: int, place: int, width: int) -> RowFault:
    return RowFault(
        row,
        f"the place {place} is beyond the header's {width:,} attributes, which are counted from 0; "
        f"correct it",
    )


def _twice(row: int, place: int) -> RowFault:
    return RowFault(row, f"the place {place} is named twice; remove one of them")
