"""Find which columns of a file hold the user, the item, the rating and the time."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from marginmf.datasets.files.delimited import Row

# Names as they are after `plain`, the plainest first: the first that occurs is taken.
NAMES: dict[str, str] = {
    "user": "user userid uid username reviewer reviewerid customer customerid rater",
    "item": "item itemid iid movie movieid film filmid book bookid isbn product productid asin "
    "song songid track trackid artist artistid anime animeid joke jokeid title movietitle",
    "rating": "rating ratings score star stars overall bookrating userrating value",
    "timestamp": "timestamp time unixtime unixtimestamp unixreviewtime ts",
}
# Where columns stand when nothing else says where.
PLACES = {"user": 0, "item": 1, "rating": 2, "timestamp": 3}


@dataclass(frozen=True)
class Wanted:
    """Which columns are wanted, and what the caller says about them: a name or a position."""

    user: str | int | None = None
    item: str | int | None = None
    rating: str | int | None = None
    rated: bool = True

    @property
    def roles(self) -> tuple[str, ...]:
        """The columns that a file must have."""
        return ("user", "item", "rating") if self.rated else ("user", "item")


@dataclass(frozen=True)
class Layout:
    """The place of each column; `header` says whether the first line holds names."""

    user: int = 0
    item: int = 1
    rating: int | None = 2
    timestamp: int | None = None
    header: bool = False
    named: bool = False

    @property
    def places(self) -> dict[str, int]:
        """The place of every column that is needed."""
        places = {
            "user": self.user,
            "item": self.item,
            "rating": self.rating,
            "timestamp": self.timestamp,
        }
        return {role: place for role, place in places.items() if place is not None}

    @property
    def perhaps_time(self) -> int | None:
        """The place of a column that is the time if it holds only whole numbers."""
        place = PLACES["timestamp"]
        if self.named or self.rating is None or place in self.places.values():
            return None
        return place

    @property
    def width(self) -> int:
        """How many columns a line must have."""
        return max(self.places.values()) + 1


def find_layout(first: Row, where: str, wanted: Wanted | None = None) -> Layout:
    """Find the columns by what the caller says, by the names in the first line, or by place.

    The first line is a header if it has all the names, or no number at all. For pairs, which may
    have no number themselves, the latter needs a name that is known.

    Examples
    --------
    >>> find_layout(["rating:float", "userId", "item_id:token"], "a file")
    Layout(user=1, item=2, rating=0, timestamp=None, header=True, named=True)
    >>> find_layout(["1", "50", "5", "881250949"], "a file")
    Layout(user=0, item=1, rating=2, timestamp=None, header=False, named=False)
    >>> find_layout(["who", "film", "stars"], "a file", Wanted(user="who"))
    Layout(user=0, item=1, rating=2, timestamp=None, header=True, named=True)
    """
    wanted = wanted or Wanted()
    names = [plain(cell) for cell in first]
    found = {
        role: _chosen(getattr(wanted, role), role, first, names, where)
        for role in wanted.roles
        if getattr(wanted, role) is not None
    }
    _refuse_twice(found, where)
    by_name = any(_position(getattr(wanted, role), first) is None for role in found)
    recognised = {role: names.index(name) for role, name in _recognised(names)}
    header, named = _header(first, wanted, set(recognised), by_name)
    if named:
        taken = set(found.values())
        found = {r: place for r, place in recognised.items() if place not in taken} | found
    missing = [role for role in wanted.roles if role not in found]
    if missing and any(PLACES[role] != place for role, place in found.items()):
        _refuse_unknown(first, missing, wanted.roles, named, where)
    return Layout(
        found.get("user", PLACES["user"]),
        found.get("item", PLACES["item"]),
        found.get("rating", PLACES["rating"]) if wanted.rated else None,
        found.get("timestamp") if wanted.rated else None,
        header=header,
        named=named,
    )


def refuse_narrow(layout: Layout, names: Row, where: str) -> None:
    """Raise ValueError if there are fewer columns than needed."""
    if layout.width > len(names):
        needed = ", ".join(layout.places)
        raise ValueError(
            f"{where}: {len(names)} column(s) found where {layout.width} are needed ({needed}): "
            f"{listed(names) or 'none'}."
        )


def listed(names: Row) -> str:
    """Return columns as messages list them."""
    return ", ".join(repr(name.strip()) for name in names)


def _header(first: Row, wanted: Wanted, recognised: set[str], by_name: bool) -> tuple[bool, bool]:
    """Tell whether the first line is a header, and whether its names say which column is which."""
    if by_name or recognised.issuperset(wanted.roles):
        return True, True
    if any(_is_number(cell) for cell in first):
        return False, False
    if recognised.intersection(NAMES if wanted.rated else wanted.roles):
        return True, True
    # Names that say nothing (u,i,r) are a header; a line with a hole in it is a bad rating.
    return wanted.rated and all(cell.strip() for cell in first), False


def _position(column: Any, first: Row) -> int | None:
    """Return a column's position if it is given by that: a number, or digits that are no name."""
    if isinstance(column, str):
        by_digits = column.isdecimal() and column not in map(str.strip, first)
        return int(column) if by_digits else None
    return int(column)


def _chosen(column: Any, role: str, first: Row, names: Row, where: str) -> int:
    if isinstance(column, bool) or not isinstance(column, str | int):
        raise ValueError(f"{role}= takes a column's name or its position from 1, not {column!r}.")
    position = _position(column, first)
    if position is not None:
        if position < 1:
            raise ValueError(f"Columns are counted from 1, so {role}={column} is none of them.")
        if position > len(first):
            raise ValueError(
                f"{where}: there is no column {position} for the {role}; there are {len(first)}: "
                f"{listed(first)}."
            )
        return position - 1
    exact = [place for place, cell in enumerate(first) if cell.strip() == column]
    alike = [place for place, name in enumerate(names) if name and name == plain(str(column))]
    places = exact or alike
    if not places:
        raise ValueError(
            f"{where}: there is no column {column!r} for the {role}; the columns are "
            f"{listed(first)}. Give one of these names, or a position from 1."
        )
    if len(places) > 1:
        raise ValueError(
            f"{where}: {len(places)} columns are called {column!r}; give the position of the "
            f"{role}'s, one of {', '.join(str(place + 1) for place in places)}."
        )
    return places[0]


def _refuse_twice(chosen: dict[str, int], where: str) -> None:
    for role, place in chosen.items():
        other = next(one for one in chosen if chosen[one] == place)
        if other != role:
            raise ValueError(
                f"{where}: column {place + 1} cannot be both the {other} and the {role}; "
                f"give another {role}=."
            )


def _refuse_unknown(
    first: Row, missing: list[str], roles: tuple[str, ...], named: bool, where: str
) -> NoReturn:
    also = " and ".join(f"{role}=" for role in missing)
    if not named:
        raise ValueError(f"{where}: the columns have no names; say with {also} which is which.")
    *most, last = map(repr, roles)
    raise ValueError(
        f"{where}: none of the columns {listed(first)} is known as the {' or '.join(missing)}; "
        f"name the columns {', '.join(most)} and {last}, or say which is which with {also}."
    )


def plain(cell: str) -> str:
    """Strip case, punctuation and a type: ``User-ID`` and ``user_id:token`` are ``userid``."""
    return re.sub(r"[\W_]+", "", cell.split(":")[0].lower())


def _recognised(names: list[str]) -> Iterator[tuple[str, str]]:
    for role, known in NAMES.items():
        name = next((name for name in known.split() if name in names), None)
        if name is not None:
            yield role, name


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
