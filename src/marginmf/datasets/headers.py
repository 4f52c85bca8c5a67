"""Find which columns of a file hold the user, the item, the rating and the time."""

import re
from dataclasses import dataclass

from marginmf.datasets.delimited import Row

# Names as they are after `_plain`, the plainest first: the first that occurs is taken.
NAMES: dict[str, str] = {
    "user": "user userid uid username reviewer reviewerid customer customerid rater",
    "item": "item itemid iid movie movieid film filmid book bookid isbn product productid asin "
    "song songid track trackid artist artistid anime animeid joke jokeid title movietitle",
    "rating": "rating ratings score star stars overall bookrating userrating value",
    "timestamp": "timestamp time unixtime unixtimestamp unixreviewtime ts",
}


@dataclass(frozen=True)
class Layout:
    """The place of each column; `header` says whether the first line holds names."""

    user: int = 0
    item: int = 1
    rating: int = 2
    timestamp: int | None = None
    header: bool = False
    named: bool = False

    @property
    def width(self) -> int:
        """How many columns a line must have."""
        return max(self.user, self.item, self.rating, self.timestamp or 0) + 1


def find_layout(first: Row, where: str) -> Layout:
    """Read the header, if the first line is one: all three names, or no number at all.

    Examples
    --------
    >>> find_layout(["rating:float", "userId", "item_id:token"], "a file")
    Layout(user=1, item=2, rating=0, timestamp=None, header=True, named=True)
    >>> find_layout(["1", "50", "5", "881250949"], "a file")
    Layout(user=0, item=1, rating=2, timestamp=None, header=False, named=False)
    """
    names = [_plain(cell) for cell in first]
    found = {column: _place(names, known) for column, known in NAMES.items()}
    user, item, rating = found["user"], found["item"], found["rating"]
    if user is not None and item is not None and rating is not None:
        return Layout(user, item, rating, found["timestamp"], header=True, named=True)
    if any(_is_number(cell) for cell in first):
        return Layout()
    recognised = {column: place for column, place in found.items() if place is not None}
    if not recognised:
        # Names that say nothing (u,i,r) are a header; a line with a hole in it is a bad rating.
        return Layout(header=all(cell.strip() for cell in first))
    in_order = {"user": 0, "item": 1, "rating": 2, "timestamp": 3}
    if all(in_order[column] == place for column, place in recognised.items()):
        return Layout(timestamp=found["timestamp"], header=True, named=True)
    missing = " or ".join(c for c in ("user", "item", "rating") if found[c] is None)
    listed = ", ".join(repr(cell.strip()) for cell in first)
    raise ValueError(
        f"{where}, line 1: none of the columns {listed} is known as the {missing}; "
        f"name the columns 'user', 'item' and 'rating'."
    )


def _plain(cell: str) -> str:
    """Strip case, punctuation and a type: ``User-ID`` and ``user_id:token`` are ``userid``."""
    return re.sub(r"[\W_]+", "", cell.split(":")[0].lower())


def _place(names: list[str], known: str) -> int | None:
    return next((names.index(name) for name in known.split() if name in names), None)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
