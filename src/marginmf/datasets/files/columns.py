"""Which column is the user, the item, the rating and the time: the one rule, for all tables."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from marginmf._utils.types import Array
from marginmf.datasets.files.source import Row
from marginmf.datasets.table import Columns

# Names in the form of `plain_name`, in order of preference.
_NAMES = {
    "user": "user userid uid username reviewer reviewerid customer customerid rater",
    "item": "item itemid iid movie movieid film filmid book bookid isbn product productid asin "
    "song songid track trackid artist artistid anime animeid joke jokeid title movietitle",
    "rating": "rating ratings score star stars overall bookrating userrating value",
    "timestamp": "timestamp time unixtime unixtimestamp unixreviewtime ts datetime date ratingtime "
    "ratingdate ratedat daterated reviewtime reviewdate createdat",
}
COLUMN_NAMES = {role: names.split() for role, names in _NAMES.items()}
# Where columns are when nothing else says so.
DEFAULT_POSITIONS = {"user": 0, "item": 1, "rating": 2, "timestamp": 3}


def plain_name(name: str) -> str:
    """Strip case, punctuation and a type: ``User-ID`` and ``user_id:token`` are ``userid``."""
    return re.sub(r"[\W_]+", "", name.split(":")[0].lower())


def is_column_name(name: str, role: str) -> bool:
    """Tell whether a name is one that columns of users, of items and so on have."""
    return plain_name(name) in COLUMN_NAMES[role]


def find_id_column(names: Iterable[str], role: str) -> str | None:
    """Return the column of a table of features that holds the ids of users or items, if any.

    A title, which may be the id of an item in a file of ratings, is a feature here.
    """
    found = {plain_name(name): name for name in names}
    known = (role, f"{role}id", "id", *COLUMN_NAMES[role])
    return next((found[name] for name in known if name in found and "title" not in name), None)


def find_time_column(names: Iterable[str]) -> str | None:
    """Return the column of a table that holds times, if any has a name for that.

    >>> find_time_column(["user", "film", "Review-Date"])
    'Review-Date'
    """
    found = {plain_name(str(name)): name for name in names}
    return next((found[name] for name in COLUMN_NAMES["timestamp"] if name in found), None)


@dataclass(frozen=True)
class Wanted:
    """Which columns are wanted, and what the caller says about them: a name or a position.

    Times are read where there are any; `timed` says that each row must have one.
    """

    user: str | int | None = None
    item: str | int | None = None
    rating: str | int | None = None
    rated: bool = True
    timed: bool = False

    @property
    def roles(self) -> tuple[str, ...]:
        """The columns that a file must have."""
        return ("user", "item", "rating") if self.rated else ("user", "item")


@dataclass(frozen=True)
class ColumnLayout:
    """The position of each column; `header` says whether the first line holds names.

    Column ``maybe_timestamp`` is the time if all its cells are times.
    """

    positions: dict[str, int]
    header: bool = False
    named: bool = False

    @property
    def width(self) -> int:
        """How many columns a line must have."""
        return max(self.positions.values()) + 1

    def positions_within(self, width: int) -> dict[str, int]:
        """Return the positions; column ``maybe_time`` is the time if it holds whole numbers."""
        last = DEFAULT_POSITIONS["timestamp"]
        taken = self.named or "rating" not in self.positions or last in self.positions.values()
        return self.positions if taken or last >= width else {**self.positions, "maybe_time": last}


def find_layout(first: Row, where: str, wanted: Wanted) -> ColumnLayout:
    """Find the columns by what the caller says, by the names in the first line, or by position.

    The first line is a header if it has all the names, or no number at all. For pairs, which may
    have no number themselves, the latter needs a known name.

    >>> find_layout(["rating:float", "userId", "item_id:token"], "a file", Wanted())
    ColumnLayout(positions={'user': 1, 'item': 2, 'rating': 0}, header=True, named=True)
    """
    names = [plain_name(cell) for cell in first]
    chosen = {
        role: _chosen_position(getattr(wanted, role), role, first, names, where)
        for role in wanted.roles
        if getattr(wanted, role) is not None
    }
    for role, position in chosen.items():
        other = next(one for one in chosen if chosen[one] == position)
        if other != role:
            raise ValueError(
                f"{where}: column {position + 1} cannot be both the {other} and the {role}; "
                f"give another {role}=."
            )
    by_name = any(_as_position(getattr(wanted, role), first) is None for role in chosen)
    recognised = {
        role: names.index(name)
        for role, known in COLUMN_NAMES.items()
        if (name := next((one for one in known if one in names), None)) is not None
    }
    header, named = _header(first, wanted, set(recognised), by_name)
    free = {role: k for role, k in recognised.items() if k not in chosen.values()}
    found = {**free, **chosen} if named else chosen
    missing = [role for role in wanted.roles if role not in found]
    if missing and any(DEFAULT_POSITIONS[role] != k for role, k in found.items()):
        options = " and ".join(f"{role}=" for role in missing)
        if not named:
            raise ValueError(
                f"{where}: the columns have no names; say with {options} which is which."
            )
        *most, last = map(repr, wanted.roles)
        raise ValueError(
            f"{where}: none of the columns {listed(first)} is known as the {' or '.join(missing)}; "
            f"name the columns {', '.join(most)} and {last}, or say which is which with {options}."
        )
    positions = {role: found.get(role, DEFAULT_POSITIONS[role]) for role in wanted.roles}
    if wanted.timed:
        positions["timestamp"] = _time_position(found, positions, first, where, wanted, named)
    elif wanted.rated and "timestamp" in found:
        positions["maybe_timestamp"] = found["timestamp"]
    return ColumnLayout(positions, header, named)


def _time_position(
    found: dict[str, int],
    taken: dict[str, int],
    first: Row,
    where: str,
    wanted: Wanted,
    named: bool,
) -> int:
    """Return the column of times by its name or, after ratings without names, its position."""
    last = found.get("timestamp", DEFAULT_POSITIONS["timestamp"])
    by_position = not named and wanted.rated and last < len(first) and last not in taken.values()
    if "timestamp" in found or by_position:
        return last
    raise ValueError(
        f"{where}: there is no column of times; the columns are {listed(first)}. Name the one that "
        "says when each row came about 'timestamp' or 'date'."
    )


def find_positions(names: Row, where: str, wanted: Wanted) -> dict[str, int]:
    """Return the positions in a file whose columns all have names, or raise ValueError."""
    layout = find_layout(names, where, wanted)
    if layout.width > len(names):
        raise ValueError(
            f"{where}: {len(names)} column(s) found where {layout.width} are needed "
            f"({', '.join(layout.positions)}): {listed(names) or 'none'}."
        )
    return layout.positions_within(len(names))


def name_columns(columns: Iterable[tuple[str, Array]], where: str) -> Columns:
    """Return columns by their names, without those that have none."""
    named: Columns = {}
    for name, column in columns:
        if name in named:
            raise ValueError(f"{where}: two columns are called {name!r}; rename one of them.")
        if name:
            named[name] = column
    return named


def listed(names: Row) -> str:
    """Return columns as messages list them."""
    return ", ".join(repr(name.strip()) for name in names)


def _header(first: Row, wanted: Wanted, recognised: set[str], by_name: bool) -> tuple[bool, bool]:
    """Tell whether the first line is a header, and whether its names say which column is which."""
    if by_name or recognised.issuperset(wanted.roles):
        return True, True
    if any(is_number(cell) for cell in first):
        return False, False
    if recognised.intersection(COLUMN_NAMES if wanted.rated else wanted.roles):
        return True, True
    # Names that say nothing (u,i,r) are a header; a line with a hole in it is a bad rating.
    return wanted.rated and all(cell.strip() for cell in first), False


def _as_position(column: Any, first: Row) -> int | None:
    """Return a position if one is given: a number, or digits that are no name."""
    if isinstance(column, str):
        by_digits = column.isdecimal() and column not in map(str.strip, first)
        return int(column) if by_digits else None
    return int(column)


def _chosen_position(column: Any, role: str, first: Row, names: Row, where: str) -> int:
    if isinstance(column, bool) or not isinstance(column, str | int):
        raise ValueError(f"{role}= takes a column's name or its position from 1, not {column!r}.")
    position = _as_position(column, first)
    if position is not None:
        if position < 1:
            raise ValueError(f"Columns are counted from 1, so {role}={column} is none of them.")
        if position > len(first):
            raise ValueError(
                f"{where}: there is no column {position} for the {role}; there are {len(first)}: "
                f"{listed(first)}."
            )
        return position - 1
    plain = plain_name(str(column))
    exact = [k for k, cell in enumerate(first) if cell.strip() == column]
    found = exact or [k for k, name in enumerate(names) if name and name == plain]
    if not found:
        raise ValueError(
            f"{where}: there is no column {column!r} for the {role}; the columns are "
            f"{listed(first)}. Give one of these names, or a position from 1."
        )
    if len(found) > 1:
        raise ValueError(
            f"{where}: {len(found)} columns are called {column!r}; give the position of the "
            f"{role}'s, one of {', '.join(str(k + 1) for k in found)}."
        )
    return found[0]


def is_number(cell: str, parse: Callable[[str], float] = float) -> bool:
    """Tell whether a cell can be parsed as a number."""
    try:
        parse(cell)
    except ValueError:
        return False
    return True
