"""Times in files: which columns they are in, how they are written, and what is not a time."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from made_files import COLUMNAR, as_json
from made_files import write as write_bytes

from marginmf.datasets import read_ratings
from marginmf.datasets.files.convert import as_times
from marginmf.datasets.files.reader import read_unrated

NOON = 1_614_945_600 + 1800  # 2021-03-05 12:30:00 UTC
WRITTEN = {
    "1614947400": NOON,
    "1614947400.9": NOON,
    "2021-03-05": NOON - 45_000,
    "2021-03-05 12:30:00": NOON,
    "2021-03-05 12:30": NOON,
    "2021-03-05T12:30:00": NOON,
    "2021-03-05T12:30:00Z": NOON,
    "2021-03-05T12:30:00.250Z": NOON,
    "2021-03-05T14:30:00+02:00": NOON,
}
#: Columns of times that are none, and what is wrong with them.
FAULTS = {
    "word": ("noon", "line 3: the timestamp 'noon' is neither a number nor a date such as 1998-04"),
    "late": ("1e300", "line 3: the timestamp '1e300' is too large"),
    "empty": ("", "line 3: the timestamp '' is neither"),
    "other order": ("22/04/1998", "line 3: the timestamp '22/04/1998' is neither a number nor a"),
}


def write(folder: Path, content: str | bytes, name: str = "ratings.csv") -> Path:
    return write_bytes(folder, content if isinstance(content, bytes) else content.encode(), name)


def times(path: Path, **chosen: Any) -> Any:
    found = read_ratings(path, **chosen).timestamps
    return None if found is None else found.tolist()


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("name", ["date", "timestamp", "Review-Date", "rated_at", "datetime:token"])
def test_times_are_numbers_or_dates_in_columns_of_several_names(
    tmp_path: Path, name: str, written: str
) -> None:
    text = f"{name},user,item,rating\n{written},1,2,5\n"
    for content in (text, text.replace(written, f'"{written}"')):
        path = write(tmp_path, content)
        assert times(path) == times(path, timed=True) == [WRITTEN[written]]
    rows = {"user": [1], "item": [2], "rating": [5], name: [written]}
    assert times(write(tmp_path, as_json(rows), "ratings.jsonl")) == [WRITTEN[written]]
    assert times(write(tmp_path, COLUMNAR["parquet"](rows), "r.parquet")) == [WRITTEN[written]]
    assert as_times([written, written]).tolist() == [WRITTEN[written]] * 2


def test_of_several_columns_the_one_with_the_surer_name_is_read(tmp_path: Path) -> None:
    text = 'user,item,rating,reviewTime,unixReviewTime\n1,2,5,"09 13, 2009",1252800000\n'
    assert times(write(tmp_path, text)) == [1_252_800_000]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ["timestamp", "date"])
def test_what_is_no_time_is_left_out_unless_times_are_needed(
    tmp_path: Path, name: str, fault: str
) -> None:
    written, message = FAULTS[fault]
    text = f"user,item,rating,{name}\n1,2,5,1998-04-22\n1,3,5,{written}\n"
    for content in (text, text.replace("1998-04-22", '"1998-04-22"')):
        found = read_ratings(write(tmp_path, content))
        assert (found.timestamps, found.ratings.tolist()) == (None, [5.0, 5.0])
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=message) as caught:
        read_ratings(path, timed=True)
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).endswith("; correct or remove this line.")


@pytest.mark.parametrize("kind", COLUMNAR)
@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            pa.array([1, 2], pa.time32("s")),
            r"row 1: the timestamp datetime.time\(0, 0, 1\) is neither a number nor a date",
        ),
        (pa.array([datetime(2000, 1, 1), None]), "row 2: the timestamp is missing"),
        (pa.array([True, False]), "row 1: the timestamp True is neither a number nor a date"),
        (pa.array([[1], [2]]), "the column 'date', which is the timestamp, is nested"),
    ],
)
def test_columns_with_types(tmp_path: Path, kind: str, column: Any, message: str) -> None:
    rows = {"user": [1, 2], "item": [1, 2], "rating": [1, 2], "date": column}
    path = write(tmp_path, COLUMNAR[kind](rows), f"ratings.{kind}")
    assert times(path) is None
    with pytest.raises(ValueError, match=message):
        read_ratings(path, timed=True)


def test_a_fourth_column_without_a_name_is_the_time_where_times_are_needed(tmp_path: Path) -> None:
    path = write(tmp_path, "ann,Alien,5,1970-01-02\nbob,Alien,4,1970-01-01\n")
    assert times(path) is None
    assert times(path, timed=True) == [86_400, 0]
    with pytest.raises(ValueError, match="line 1: the timestamp 'Drama' is neither"):
        read_ratings(write(tmp_path, "1,2,5,Drama\n"), timed=True)


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ("user,item,rating\n1,2,5\n", "'user', 'item', 'rating'"),
        ("user,item,rating,year\n1,2,5,1999\n", "'user', 'item', 'rating', 'year'"),
        ("1,2,5\n", "'1', '2', '5'"),
    ],
)
def test_a_file_without_times_names_its_columns(tmp_path: Path, text: str, listed: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=f"there is no column of times; the columns are {listed}."):
        read_ratings(path, timed=True)


def test_pairs_with_times(tmp_path: Path) -> None:
    path = write(tmp_path, "date,user,item\n1970-01-02,ann,Alien\n1970-01-01,bob,Brazil\n")
    table = read_unrated(path, timed=True)
    pairs, moments = table.pairs, table.timestamps
    assert pairs.tolist() == [["ann", "Alien"], ["bob", "Brazil"]]
    assert moments.tolist() == [86_400, 0]
    with pytest.raises(ValueError, match="there is no column of times; the columns are 'ann', 'Al"):
        read_unrated(write(tmp_path, "ann,Alien\nbob,Brazil\n"), timed=True, header=False)
