"""Which column is the user, the item, the rating and the time: the one rule, for all tables.

A column is what the caller says, or else what its name says.  Position counts only where a file has
no line of names.  What neither says is asked for, never guessed.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from marginmf._utils.ids import shown
from marginmf._utils.types import Array
from marginmf.datasets.files.convert import WORDS, is_decimal_comma, number_words, words_of
from marginmf.datasets.files.source import Row
from marginmf.datasets.table import Columns

# Names in the form of `plain_name`, in order of preference.
_NAMES = {
    "user": "user userid uid username reviewer reviewerid customer customerid rater raterid "
    "member memberid visitor visitorid account accountid",
    "item": "item itemid iid movie movieid film filmid book bookid isbn product productid asin "
    "parentasin song songid track trackid artist artistid anime animeid game gameid joke jokeid "
    "recipe recipeid beer beerid business businessid place placeid article articleid course "
    "courseid title movietitle",
    "rating": "rating ratings score star stars overall bookrating userrating starrating "
    "userscore like liked value",
    "timestamp": "timestamp time unixtime unixtimestamp unixreviewtime ts datetime date ratingtime "
    "ratingdate ratedat daterated reviewtime reviewdate createdat",
}
COLUMN_NAMES = {role: names.split() for role, names in _NAMES.items()}
#: Columns that count how often, which is not how much somebody likes something.
COUNTS = ("plays", "playcount", "listens", "count", "counts", "clicks", "views", "quantity")
# Where columns are in a file without names.
DEFAULT_POSITIONS = {"user": 0, "item": 1, "rating": 2, "timestamp": 3}
#: Tables of more columns are another thing, such as a column for each item.
MOST_COLUMNS = 100_000
#: Messages list at most this many columns.
MOST_LISTED = 12
LONGEST_LISTED = 40
#: A table with so many columns that are neither users, items nor ratings has one for each item.
PIVOTED = 5
FOR_PAIRS = (
    "If there are no ratings, these are positive-only data (who has what): use a method for them, "
    "such as EASE (--positive-only on the command line)."
)


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

    `header` says whether the first line holds names, where the caller knows; `names` are those
    that columns had before, which are known too; `levels` are ratings in words, in rising order.
    Times are read where there are any; `timed` says that each row must have one.
    """

    user: str | int | None = None
    item: str | int | None = None
    rating: str | int | None = None
    rated: bool = True
    header: bool | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    levels: Sequence[str] | None = None
    timed: bool = False

    @property
    def roles(self) -> tuple[str, ...]:
        """The columns that a file must have."""
        return ("user", "item", "rating") if self.rated else ("user", "item")

    @property
    def words(self) -> dict[str, float]:
        """What words mean as ratings."""
        words = None if self.levels is None else words_of(self.levels)
        return WORDS if words is None else number_words(words)


@dataclass(frozen=True)
class ColumnLayout:
    """The position of each column, what it is called, and whether the first line holds names.

    Column ``maybe_timestamp`` is the time if all its cells are times.
    """

    positions: dict[str, int]
    header: bool = False
    names: dict[str, str] = field(default_factory=dict)
    words: Mapping[str, float] = field(default_factory=lambda: WORDS)

    @property
    def width(self) -> int:
        """How many columns a line must have."""
        needed = (k for role, k in self.positions.items() if not role.startswith("maybe_"))
        return max(needed) + 1

    def positions_within(self, width: int) -> dict[str, int]:
        """Return the positions; column ``maybe_time`` is the time if it holds whole numbers."""
        there = {role: k for role, k in self.positions.items() if k < width}
        usual = [DEFAULT_POSITIONS[role] for role in ("user", "item", "rating")]
        if self.header or width != len(DEFAULT_POSITIONS) or sorted(there.values()) != usual:
            return there
        return {**there, "maybe_time": DEFAULT_POSITIONS["timestamp"]}


def find_layout(first: Row, where: str, wanted: Wanted, below: Sequence[Row] = ()) -> ColumnLayout:
    """Find the columns by what the caller says, by the names in the first line, or by position.

    `below` are some lines after the first, which help to tell whether that holds names.

    >>> find_layout(["rating:float", "userId", "item_id:token"], "a file", Wanted()).positions
    {'user': 1, 'item': 2, 'rating': 0}
    """
    check_width(len(first), where)
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
    recognised = recognise_names(first, wanted)
    by_name = any(_as_position(getattr(wanted, role), first) is None for role in chosen)
    header = wanted.header
    if header is None:
        header = by_name or _is_header(first, below, where, wanted, recognised)
    free = {role: k for role, k in recognised.items() if k not in chosen.values()}
    found = {**free, **chosen} if header else chosen
    missing = [role for role in wanted.roles if role not in found]
    if missing and header:
        raise _unnamed(first, below, where, wanted, missing)
    if missing and (
        any(DEFAULT_POSITIONS[role] != k for role, k in found.items())
        or len(first) > len(DEFAULT_POSITIONS)
    ):
        options = _join([f"{role}=" for role in missing], "and")
        raise ValueError(
            f"{where}: the {len(first)} columns have no names ({listed(first)}); say with "
            f"{options} which is which, as positions from 1."
        )
    if missing and wanted.rated and len(first) == 2:
        raise ValueError(
            f"{where}: 2 column(s) found where 3 are needed (user, item, rating). {FOR_PAIRS}"
        )
    positions = {role: found.get(role, DEFAULT_POSITIONS[role]) for role in wanted.roles}
    if wanted.timed:
        positions["timestamp"] = _time_position(found, positions, first, where, wanted, header)
    elif wanted.rated and "timestamp" in found:
        positions["maybe_timestamp"] = found["timestamp"]
    roles = {role.removeprefix("maybe_"): k for role, k in positions.items()}
    called = {role: first[k].strip() for role, k in roles.items()} if header else {}
    return ColumnLayout(positions, header, called, wanted.words)


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


def check_width(n_columns: int, where: str) -> None:
    """Raise ValueError if a file has more columns than a table of ratings or features."""
    if n_columns > MOST_COLUMNS:
        raise ValueError(
            f"{where}: there are {n_columns:,} columns, and at most {MOST_COLUMNS:,} are read; "
            "write a line for each rating, or for each user or item."
        )


def find_named(names: Row, where: str, wanted: Wanted) -> ColumnLayout:
    """Return the layout of a table whose columns all have names, or raise ValueError."""
    return find_layout(names, where, replace(wanted, header=True))


def name_columns(columns: Iterable[tuple[str, Array]], where: str) -> Columns:
    """Return columns by their names, without those that have none."""
    named: Columns = {}
    for name, column in columns:
        if name in named:
            raise ValueError(f"{where}: two columns are called {shown(name)}; rename one of them.")
        if name:
            named[name] = column
    return named


def listed(names: Iterable[Any]) -> str:
    """Return columns as messages list them.

    >>> listed(["a", 1]), listed([])
    ("'a', 1", 'none')
    """
    names = [name.strip() if isinstance(name, str) else name for name in names]
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return (", ".join(shown(name, LONGEST_LISTED) for name in names[:MOST_LISTED]) or "none") + more


def recognise_names(first: Row, wanted: Wanted) -> dict[str, int]:
    """Return the columns whose names say what they are: those that they had before go first."""
    names, found = [plain_name(cell) for cell in first], dict[str, int]()
    for role, known in COLUMN_NAMES.items():
        before = wanted.names.get(role)
        exact = [k for k, cell in enumerate(first) if cell.strip() == before]
        by_table = (names.index(name) for name in known if name in names)
        position = exact[0] if exact else next(by_table, None)
        if position is not None:
            found[role] = position
    return found


def _is_header(
    first: Row, below: Sequence[Row], where: str, wanted: Wanted, recognised: Mapping[str, int]
) -> bool:
    """Tell whether the first line holds names; ValueError if that cannot be told."""
    known = set(recognised).intersection(wanted.roles)
    if len(known) > 1:
        return True
    if any(is_number(cell) for cell in first):
        return False
    if known == {"rating"}:  # the word "like" is a name of columns, and a rating
        k = recognised["rating"]
        ratings = [row[k].strip().lower() for row in (first, *below) if k < len(row)]
        if below and all(rating in wanted.words for rating in ratings):
            return False
    if known or (wanted.rated and recognised):
        return True
    for k, cell in enumerate(first):
        column = [row[k] for row in below if k < len(row)]
        if cell.strip() and column and all(map(is_number, column)):
            return True  # a word above numbers
        words = {one.strip().lower() for one in column}
        if words and words <= wanted.words.keys() and cell.strip().lower() not in wanted.words:
            return True  # another word above ratings in words
    if not wanted.rated and len(first) > 1:
        raise ValueError(
            f"{where}: {listed(first)} may be the names of the columns or the first pair; say "
            "which with header=True or header=False, or name the columns with user= and item=."
        )
    # A line with a hole in it is a bad rating, and so is a word above other words.
    return not below and all(cell.strip() for cell in first)


def _unnamed(
    first: Row, below: Sequence[Row], where: str, wanted: Wanted, missing: Sequence[str]
) -> ValueError:
    """Return the error for columns whose names do not say which is which, with the remedy."""
    plain = [plain_name(cell) for cell in first]
    counted = [cell.strip() for cell, name in zip(first, plain, strict=True) if name in COUNTS]
    if list(missing) == ["rating"] and counted:
        count = shown(counted[0])
        return ValueError(
            f"{where}: the column {count} holds counts, which are no ratings. Use a method "
            "for who has what, such as EASE (--positive-only on the command line), or read the "
            f"counts as ratings with rating={count}."
        )
    if list(missing) == ["rating"]:
        return ValueError(
            f"{where}: none of the columns {listed(first)} is known as the rating; say which is "
            f"with rating=. {FOR_PAIRS}"
        )
    known = {name for names in COLUMN_NAMES.values() for name in names}
    others = [k for k, name in enumerate(plain) if name not in known]
    cells = [row[k].strip() for row in below for k in others[1:] if k < len(row)]
    numbers = [is_number(cell) for cell in cells if cell]
    if len(others) > PIVOTED and {"item", "rating"} <= set(missing) and all(numbers):
        return ValueError(
            f"{where}: the columns {listed(first)} look like one for each item. Turn them into "
            "rows first, with pandas: frame.melt(id_vars=..., var_name='item', "
            "value_name='rating').dropna()."
        )
    return ValueError(
        f"{where}: none of the columns {listed(first)} is known as the {_join(missing, 'or')}; "
        f"name the columns {_join(list(map(repr, wanted.roles)), 'and')}, or say which is which "
        f"with {_join([f'{role}=' for role in missing], 'and')}."
    )


def _join(words: Sequence[str], last: str) -> str:
    """Return words as a sentence lists them.

    >>> _join(["a", "b", "c"], "or"), _join(["a"], "or")
    ('a, b or c', 'a')
    """
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


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


def _parse_cell(cell: str) -> float:
    """Read a number, also one that is not finite: a bad rating is no name."""
    return float(cell.replace(",", ".") if is_decimal_comma(cell.strip()) else cell)


def is_number(cell: str, parse: Callable[[str], float] = _parse_cell) -> bool:
    """Tell whether a cell can be parsed as a number."""
    try:
        parse(cell)
    except ValueError:
        return False
    return True
