import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from marginmf.datasets import read_features
from marginmf.ratings.features import FeatureTable

TEXT = 'movieId,title,genres,year\n7,"Crime, again",Crime|Drama,1995\n9,Café,Drama,\n'
LISTS = {
    "movieId": [7, 9],
    "title": ["Crime, again", "Café"],
    "genres": [["Crime", "Drama"], ["Drama"]],
    "year": [1995.0, None],
}
JSON = (
    '{"movieId": 7, "title": "Crime, again", "genres": ["Crime", "Drama"], "year": 1995}\n'
    '{"movieId": 9, "title": "Café", "genres": ["Drama"]}\n'
)


def files(folder: Path) -> list[Path]:
    """The same films in every kind of file."""
    table = pa.table(LISTS)
    contents = {
        "films.csv": TEXT.encode(),
        "latin.csv": TEXT.encode("latin-1"),
        "wide.csv": TEXT.encode("utf-16"),
        "films.csv.gz": gzip.compress(TEXT.encode()),
        "films.tsv": TEXT.replace(",", "\t").replace("\t again", ", again").encode(),
        "films.jsonl": JSON.encode(),
        "numbered.csv": "".join(
            f"{'' if k == 0 else k},{line}" for k, line in enumerate(TEXT.splitlines(True))
        ).encode(),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    parquet.write_table(table, folder / "films.parquet")
    feather.write_feather(table, folder / "films.feather")
    return sorted(folder.iterdir())


def test_all_kinds_of_files_say_the_same(tmp_path: Path) -> None:
    found = files(tmp_path)
    assert len(found) == 9
    for path in found:
        columns = read_features(path)
        assert list(columns) == list(LISTS), path
        assert columns["title"].tolist() == LISTS["title"]
        with pytest.warns(UserWarning, match=r"cells that are missing, and say nothing: 'year'"):
            table = FeatureTable.of(columns)
        assert table.ids.tolist() == [7, 9]
        assert table.ids.dtype == np.int64
        np.testing.assert_array_equal(table.columns["year"], [1995, np.nan])
        with pytest.warns(UserWarning, match="Left out"):
            assert table.encoder().names == ("genres=Drama", "any")


@pytest.mark.filterwarnings("ignore:Left out")
def test_names_that_look_like_numbers_stay_names(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("user;zip;age;code\n1;01234;30;7\n2;98765;;x\n")
    columns = read_features(path)
    assert columns["zip"].tolist() == ["01234", "98765"]
    assert columns["code"].tolist() == ["7", "x"]
    np.testing.assert_array_equal(columns["age"], [30, np.nan])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty; it needs a line of names"),
        ("item,year\n", "has no features after its line of names"),
        ("1,Drama,1995\n2,Crime,1996\n", "the first line, '1', 'Drama', '1995', holds no names"),
        ("item,year\n1,2\n3\n", r"line 3: 1 column\(s\) found where there are 2 names"),
        ("item,title\n1,Crime, again\n", r"line 2: 3 column\(s\) found .* into quotes"),
        ("item,year,year\n1,2,3\n", "two columns are called 'year'; rename one"),
        ('item,title\n1,"Crime\n', "line 2: the quotes do not match"),
    ],
)
def test_faulty_files_are_refused_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "films.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_features(path)


def test_a_columnar_file_without_rows_is_refused(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"item": pa.array([], pa.int64())}), tmp_path / "f.parquet")
    with pytest.raises(ValueError, match="has no rows; add some"):
        read_features(tmp_path / "f.parquet")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_features(tmp_path / "absent.csv")
