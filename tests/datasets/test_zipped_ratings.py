"""Zip archives by path: those of MovieLens with features, others with one table in them."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from marginmf.datasets import read_pairs, read_ratings
from marginmf.datasets.files.source import Source

LATIN = "1|Caf\xe9 (1995)|01-Jan-1995|||" + "|".join(["0", "1", *"0" * 17]) + "\n"
OLD = {
    "ml-100k/u.data": "1\t1\t3\t881250949\n2\t1\t4\t881250950\n",
    "ml-100k/u.item": LATIN,
    "ml-100k/u.user": "1|24|M|writer|85711\n2|53|F|other|94043\n",
    "ml-100k/README": "Thanks.",
}
MILLION = {
    "ml-1m/ratings.dat": "1::1::3::978300760\n2::1::4::978300761\n",
    "ml-1m/movies.dat": "1::Toy Story (1995)::Animation|Comedy\n",
    "ml-1m/users.dat": "1::F::1::10::48067\n2::M::56::16::70072\n",
}
LATEST = {
    "ml-latest-small/ratings.csv": "userId,movieId,rating,timestamp\n1,1,3.0,9\n2,1,4.0,8\n",
    "ml-latest-small/movies.csv": 'movieId,title,genres\n1,"Toy Story, The (1995)",Comedy\n',
    "ml-latest-small/tags.csv": "userId,movieId,tag,timestamp\n1,1,fun,7\n",
}


def pack(path: Path, members: Mapping[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text.encode("latin-1"))
    return path


@pytest.mark.parametrize("members", [OLD, MILLION, LATEST], ids=["100k", "1m", "latest"])
def test_archives_of_movielens_have_titles_and_features(
    tmp_path: Path, members: dict[str, str]
) -> None:
    path = pack(tmp_path / "ml.zip", members)
    table = read_ratings(path)
    assert (table.users.tolist(), table.items.tolist()) == ([1, 2], [1, 1])
    assert table.ratings.tolist() == [3.0, 4.0]
    assert (table.name, table.source) == ("ml.zip", f"read from {path}")
    assert table.titles is not None
    assert table.titles[1].endswith("(1995)")
    assert table.item_features is not None
    assert table.item_features["year"].tolist() == [1995.0]
    assert (table.user_features is None) == (members is LATEST)
    assert read_pairs(path).tolist() == [[1, 1], [2, 1]]


def test_files_that_are_only_called_like_those_of_movielens(tmp_path: Path) -> None:
    members = {"ratings.csv": "user,item,rating\nann,x,3\nbob,x,4\n", "movies.csv": "x\n"}
    table = read_ratings(pack(tmp_path / "own.zip", members))
    assert table.users.tolist() == ["ann", "bob"]
    assert table.item_features is None


def test_columns_may_be_chosen(tmp_path: Path) -> None:
    table = read_ratings(pack(tmp_path / "ml.zip", LATEST), user="movieId", item="userId")
    assert (table.users.tolist(), table.items.tolist()) == ([1, 1], [1, 2])


@pytest.mark.parametrize("beside", [{}, {"README.md": "Hello", "__MACOSX/._a.tsv": "x"}])
def test_one_table_is_read(tmp_path: Path, beside: dict[str, str]) -> None:
    members = {"data/mine.tsv": "user\titem\trating\na\tx\t1\nb\tx\t2\n", **beside}
    assert read_ratings(pack(tmp_path / "a.zip", members)).ratings.tolist() == [1.0, 2.0]


def test_a_faulty_line_is_named_with_its_file(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.zip", {"mine.csv": "user,item,rating\na,x,1\nb,x,good\n"})
    with pytest.raises(ValueError, match=r"a\.zip/mine\.csv, line 3: the rating 'good'"):
        read_ratings(path)


def test_several_tables_are_listed(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.zip", {"one.csv": "a,b,1\n", "two.csv": "a,b,1\n"})
    with pytest.raises(ValueError, match=r"a\.zip holds 2 files: 'one\.csv', 'two\.csv'; unpack"):
        read_ratings(path)


def test_archives_without_a_table_or_damaged(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="without a table in it"):
        read_ratings(pack(tmp_path / "a.zip", {"README": "Hello", "folder/": ""}))
    path = pack(tmp_path / "b.zip", OLD)
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(ValueError, match=r"b\.zip is a damaged zip file \(.*\); fetch it again"):
        read_ratings(path)


def test_archives_of_labels_are_left_to_their_reader(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.zip", {"one.csv": "a,b,1\n"})
    assert Source(path, "labels").archive is None
