import csv
import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginmf.datasets import read_ratings

THREE = ([1, 1, 2], [10, 20, 10], [5.0, 3.0, 1.0])


def columns(path: Path) -> tuple[list[object], list[object], list[float]]:
    table = read_ratings(path)
    return table.users.tolist(), table.items.tolist(), table.ratings.tolist()


def write(folder: Path, content: str | bytes, name: str = "ratings.txt") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("separator", [",", "\t", "::", ";", " ", "   ", ", "])
@pytest.mark.parametrize("header", ["", "user_id{0}movieId{0}Stars\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_separator_header_and_line_end(
    tmp_path: Path, separator: str, header: str, end: str
) -> None:
    lines = header.format(separator) + "1_10_5\n1_20_3\n\n2_10_1\n".replace("_", separator)
    assert columns(write(tmp_path, lines.replace("\n", end))) == THREE


@pytest.mark.parametrize(
    ("header", "order"),
    [
        ("user,item,rating", "uir"),
        ("USERID,MovieID,Rating", "uir"),
        ("user_id:token,item_id:token,rating:float", "uir"),
        ("User-ID;ISBN;Book-Rating", "uir"),
        ("rating,title,user", "riu"),
        (",user,item,score", "-uir"),
        ("user,item,rating,2019", "uir-"),
        ("timestamp,stars,film,user name", "triu"),
        ("movie_title,item_id,user,rating", "-iur"),
    ],
)
def test_columns_are_found_by_the_names_in_the_header(
    tmp_path: Path, header: str, order: str
) -> None:
    separator = ";" if ";" in header else ","
    values = {"u": ["1", "1", "2"], "i": ["10", "20", "10"], "r": ["5", "3", "1"]}
    values |= {"t": ["7", "8", "9"], "-": ["0", "1", "2"]}
    rows = zip(*(values[letter] for letter in order), strict=True)
    lines = [header, *(separator.join(row) for row in rows)]
    assert columns(write(tmp_path, "\n".join(lines))) == THREE


def test_a_header_that_hides_a_column_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "rating,user,thing\n5,1,10\n")
    with pytest.raises(ValueError, match=r"line 1: none of the columns 'rating', 'user', 'thing'"):
        read_ratings(path)


def test_timestamps_by_name_and_by_place(tmp_path: Path) -> None:
    for text in (
        "user,item,time,rating\n1,2,99,5\n",
        "user,item,time,rating\n1,2,99.0,5\n",
        "1::2::5::99\n",
    ):
        timestamps = read_ratings(write(tmp_path, text)).timestamps
        assert timestamps is not None
        assert (timestamps.dtype, timestamps.tolist()) == (np.int64, [99])
    dated = read_ratings(write(tmp_path, "user,item,rating,timestamp\n1,2,5,1970-01-02\n"))
    assert dated.timestamps is not None
    assert dated.timestamps.tolist() == [86400]


@pytest.mark.parametrize(
    "text",
    ["1,2,5\n", "1,2,5,Drama\n", "1,2,5,99\n1,3,5\n", "user,item,rating,year\n1,2,5,1999\n"],
)
def test_a_fourth_column_that_is_not_a_time_is_left_alone(tmp_path: Path, text: str) -> None:
    assert read_ratings(write(tmp_path, text)).timestamps is None


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["1", "2"], [1, 2]),
        (["-5", "0"], [-5, 0]),
        (["007", "7"], ["007", "7"]),
        (["1", "b"], ["1", "b"]),
        (["1.0", "2.0"], ["1.0", "2.0"]),
        (["+1", "-0"], ["+1", "-0"]),
        (["9" * 30, "1"], ["9" * 30, "1"]),
    ],
)
def test_ids_become_numbers_only_where_nothing_is_lost(
    tmp_path: Path, ids: list[str], expected: list[object]
) -> None:
    path = write(tmp_path, "".join(f"{one},film,3\n" for one in ids))
    assert read_ratings(path).users.tolist() == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path, "user,item,rating\nZoë,Amélie,5\n".encode(encoding))
    assert columns(path) == (["Zoë"], ["Amélie"], [5.0])


def test_gzip_is_known_by_its_content(tmp_path: Path) -> None:
    data = gzip.compress(b"1,10,5\n1,20,3\n2,10,1\n")
    assert columns(write(tmp_path, data, "ratings.csv.gz")) == THREE
    assert columns(write(tmp_path, data, "ratings.csv")) == THREE


def test_quoted_values_may_hold_separators_quotes_and_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path, 'user,item,rating\n1,"The ""Good"", the Bad\nand",5\n2,x,bad\n')
    with pytest.raises(ValueError, match="line 4: the rating 'bad' is not a number"):
        read_ratings(path)
    path = write(tmp_path, 'user,item,rating\n1,"The ""Good"", the Bad\nand",5\n')
    assert columns(path) == ([1], ['The "Good", the Bad\nand'], [5.0])


FAULTS = {
    "empty": (b"", "is empty; it needs lines with a user, an item and a rating"),
    "blank": (b" \n\n", "is empty; it needs"),
    "header only": (b"user,item,rating\n", "has no ratings after its header line; add"),
    "narrow": (b"1,2\n", r"line 1: 2 column\(s\) found where 3 are needed .*positive-only data"),
    "short line": (b"1,2,3\n\n1,2\n", r"line 3: 2 column\(s\) found where 3 are needed"),
    "word": (b"1,2,3\n1,3,good\n", "line 2: the rating 'good' is not a number, .*; correct"),
    "word after header": (b"user,item,rating\n1,2,3\n1,3,A\n", "line 3: the rating 'A' is not"),
    "word first": (b"1,2,abc\n", "line 1: the rating 'abc' is not a number"),
    "no rating": (b"1,2,3\n1,2,\n", "line 2: the rating '' is not a number"),
    "thousands": (b"1;2;3,500\n", "line 1: the rating '3,500' is not a number"),
    "underscore": (b"1,2,1_0\n", "line 1: the rating '1_0' is not a number"),
    "nan": (b"1,2,3\n1,3,NaN\n", "line 2: the rating 'NaN' is not a finite number"),
    "inf": (b"1,2,-inf\n", "line 1: the rating '-inf' is not a finite number"),
    "no user": (b"1,2,3\n ,2,3\n", "line 2: the user id is empty; fill it in or remove"),
    "no item": (b"1::2::3\n1::::3\n", "line 2: the item id is empty"),
    "quote": (b'1,"2,3\n1,2,3\n', "line 2: the quotes do not match .*close the quote"),
    "binary": (b"\x89PNG\x00\x00\x00", "is not a text file; export the ratings as CSV"),
    "gzip": (gzip.compress(b"1,2,3\n" * 99)[:-9], "is a damaged gzip file .*fetch or compress"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_one_sentence_that_names_the_file(tmp_path: Path, fault: str) -> None:
    content, message = FAULTS[fault]
    path = write(tmp_path, content)
    with pytest.raises(ValueError, match=message) as caught:
        read_ratings(path)
    text = str(caught.value)
    assert text.startswith(str(path))
    assert text.endswith(".")
    assert "\n" not in text


def test_the_first_faulty_line_is_named_in_a_long_file(tmp_path: Path) -> None:
    lines = [f"{k % 97},{k},4" for k in range(5000)]
    lines[3210] = "5,6,x"
    lines[4000] = "5,6,y"
    with pytest.raises(ValueError, match="line 3211: the rating 'x'"):
        read_ratings(write(tmp_path, "\n".join(lines)))
    lines[3210] = "5,6"
    with pytest.raises(ValueError, match="line 3211: 2 column"):
        read_ratings(write(tmp_path, "\n".join(lines)))


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no file .*nowhere\.csv; check the name"):
        read_ratings(tmp_path / "nowhere.csv")
    with pytest.raises(IsADirectoryError, match="is a folder; name the file"):
        read_ratings(tmp_path)


def test_titles_with_commas_do_not_mislead_in_a_tab_separated_file(tmp_path: Path) -> None:
    path = write(tmp_path, "1\tGood, the Bad, the Ugly\t5\n2\tOne, Two, Three\t4\n")
    assert columns(path)[1] == ["Good, the Bad, the Ugly", "One, Two, Three"]


def test_line_ends_inside_quotes_do_not_mislead_about_the_separator(tmp_path: Path) -> None:
    path = write(tmp_path, 'user\titem\trating\n1\t2\t3\na, b\t"c\nd"\t4\n')
    assert columns(path) == (["1", "a, b"], ["2", "c\nd"], [3.0, 4.0])


ids = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8)
rows = st.lists(st.tuples(ids, ids, st.floats(-1e30, 1e30)), min_size=1, max_size=20)


@settings(max_examples=40, deadline=None)
@given(rows=rows, separator=st.sampled_from(",;\t"))
def test_what_csv_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, float]], separator: str
) -> None:
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=separator, quoting=csv.QUOTE_ALL)
    writer.writerows([("user", "item", "rating"), *rows])
    path = write(tmp_path_factory.mktemp("csv"), buffer.getvalue())
    users, items, ratings = columns(path)
    assert list(map(str, users)) == [row[0] for row in rows]
    assert list(map(str, items)) == [row[1] for row in rows]
    assert ratings == [row[2] for row in rows]


def test_movielens_files_as_their_owner_writes_them(data_root: Path, tmp_path: Path) -> None:
    for name, member, size in (
        ("ml-100k", "ml-100k/u.data", 100_000),
        ("ml-1m", "ml-1m/ratings.dat", 1_000_209),
        ("ml-latest-small", "ml-latest-small/ratings.csv", 100_836),
    ):
        with zipfile.ZipFile(data_root / "original" / f"{name}.zip") as archive:
            path = Path(archive.extract(member, tmp_path))
        table = read_ratings(path)
        with np.load(data_root / "ratings" / f"{name}.npz", allow_pickle=False) as known:
            assert len(table) == size
            assert table.timestamps is not None
            np.testing.assert_array_equal(table.users, known["users"][known["user"]])
            np.testing.assert_array_equal(table.items, known["items"][known["item"]])
            np.testing.assert_array_equal(table.ratings, known["rating"])
            np.testing.assert_array_equal(table.timestamps, known["timestamp"])
