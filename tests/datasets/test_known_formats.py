"""Files in the forms in which their owners published them, written here."""

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest

from marginmf.datasets import RatingsFacts, dataset_info, keep_copy, load_ratings, registry
from marginmf.datasets.files import source
from marginmf.datasets.known_formats import (
    read_bookcrossing,
    read_eachmovie,
    read_jester,
    read_movielens_100k,
)

VOTES = "1\t10\t0.2\t1\t2/25/97 1:00:00\n1\t11\t1\t1\t2/25/97 1:00:01\n7\t10\t0\t.5\t\n"


def zipped(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), text)
    return path


def vote_files(folder: Path) -> list[Path]:
    """The same votes, in every form that a user may have them in."""
    plain, packed = folder / "Vote.txt", folder / "vote.txt.gz"
    plain.write_text(VOTES)
    packed.write_bytes(gzip.compress(VOTES.encode()))
    return [plain, packed, folder, zipped(folder / "each.zip", EachMovie__VOTE_dot_TXT=VOTES)]


def test_votes_become_six_levels(tmp_path: Path) -> None:
    for path in vote_files(tmp_path):
        table = read_eachmovie(path)
        assert table.users.tolist() == [1, 1, 7]
        assert table.items.tolist() == [10, 11, 10]
        assert table.ratings.tolist() == [2, 6, 1]


@pytest.mark.parametrize("score", [0, 0.2, 0.4, 0.6000000001, 0.8, 1])
def test_each_score_has_its_level(tmp_path: Path, score: float) -> None:
    path = tmp_path / "Vote.txt"
    path.write_text(f"person,movie,score,weight,date\n3,4,{score!r},1,1997\n")
    assert read_eachmovie(path).ratings.tolist() == [round(score * 5) + 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1\t2\t0.3\t1\t\n", "the score 0.3 of vote 1 is none of 0, 0.2, ... 1"),
        ("1\t2\t1.2\t1\t\n", "the score 1.2 of vote 1 is none"),
        ("1\t2\t1\t1\t\n1\t2\n", "line 2: .* is not a vote"),
        ("1\t2\t1\t1\t\nann\t2\t1\t1\t\n", "line 2: .* is not a vote"),
    ],
)
def test_what_is_no_vote_is_told(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "Vote.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_eachmovie(path)


def test_a_copy_of_ones_own_is_taken_in_and_found_by_name(tmp_path: Path, change_info) -> None:
    facts = RatingsFacts(3, 2, 2, (1.0, 2.0, 6.0))
    change_info("eachmovie", facts=facts)
    for number, path in enumerate(vote_files(tmp_path)):
        cache = tmp_path / f"cache{number}"
        kept = keep_copy("eachmovie", path, cache_dir=cache)
        assert kept == cache / "ratings" / "eachmovie.npz"
        table = load_ratings("eachmovie", cache_dir=cache, data_dir=tmp_path)
        assert RatingsFacts.of(table).difference(facts, "") is None


def test_a_copy_that_is_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "Vote.txt"
    path.write_text(VOTES)
    with pytest.raises(ValueError, match="is not EachMovie: It has 3 ratings where EachMovie has"):
        keep_copy("eachmovie", path, cache_dir=tmp_path)
    with pytest.raises(ValueError, match="is not Jester, dataset 2: It has 3 ratings where"):
        keep_copy("jester", path, cache_dir=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"There is no file .*absent"):
        keep_copy("eachmovie", tmp_path / "absent", cache_dir=tmp_path)
    other = zipped(tmp_path / "other.zip", readme="hello")
    with pytest.raises(ValueError, match=r"has no file Vote\.txt in it"):
        keep_copy("eachmovie", other, cache_dir=tmp_path)


def test_what_can_only_be_had_by_hand_says_how(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"withdrew it in 2004\. .* get eachmovie --from Vote\.txt"):
        load_ratings("eachmovie", cache_dir=tmp_path, data_dir=tmp_path)


def test_jokes_have_any_ratings_between_the_bounds(tmp_path: Path) -> None:
    text = "1\t\t5\t\t0.219\n1\t\t7\t\t-9.281\n2 5 10\n"
    table = read_jester(zipped(tmp_path / "j.zip", jester_ratings_dot_dat=text))
    assert table.pairs.tolist() == [[1, 5], [1, 7], [2, 5]]
    assert table.ratings.tolist() == [0.219, -9.281, 10]
    expected = RatingsFacts(bounds=(-10.0, 10.0))
    assert expected.difference(RatingsFacts.of(table), "Jester") is None
    wrong = RatingsFacts(3, 2, 2, (-5.0, 99.0), (-5.0, 99.0))
    assert "the rating 99 where those of Jester are" in str(expected.difference(wrong, "Jester"))


def test_books_keep_their_isbns(tmp_path: Path) -> None:
    text = (
        '"User-ID";"ISBN";"Book-Rating"\r\n"276725";"034545104X";"0"\r\n'
        '"276726";"0 15\xe9;5";"5"\r\n"2";"\\"7\\"";"10"\r\n'
    )
    plain = tmp_path / "BX-Book-Ratings.csv"
    plain.write_bytes(text.encode("latin-1"))
    packed = tmp_path / "BX-CSV-Dump.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(plain, "BX-Book-Ratings.csv")
        archive.writestr("BX-Books.csv", "")
    for path in (plain, packed):
        table = read_bookcrossing(path)
        assert table.users.tolist() == [276725, 276726, 2]
        assert table.items.tolist() == ["034545104X", "0 15é;5", '"7"']
        assert table.ratings.tolist() == [0, 5, 10]
    plain.write_text('"User-ID";"ISBN";"Book-Rating"\n"1";"2"\n')
    with pytest.raises(ValueError, match=r"line 2: \['1', '2'\] is not a user, an ISBN"):
        read_bookcrossing(plain)


def test_the_archive_of_ten_million_has_halves_of_stars(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "ml-10m.zip",
        **{
            "ml-10M100K__ratings_dot_dat": "1::122::5::838985046\n2::7::3.5::838985047\n",
            "ml-10M100K__movies_dot_dat": "7::Café: Sabrina (1995)::A|B\n122::Boomerang::Drama\n",
        },
    )
    table = dataset_info("ml-10m").read(path)
    assert (table.pairs.tolist(), table.ratings.tolist()) == ([[1, 122], [2, 7]], [5, 3.5])
    assert table.timestamps is not None
    assert table.timestamps.tolist() == [838985046, 838985047]
    assert table.titles == {7: "Café: Sabrina (1995)", 122: "Boomerang"}
    assert table.user_features is None
    assert table.item_features is not None
    assert table.item_features["genres"].tolist() == ["A|B", "Drama"]
    np.testing.assert_array_equal(table.item_features["year"], [1995, np.nan])


def test_an_archive_without_a_file_of_users_has_none_of_their_features(tmp_path: Path) -> None:
    marks = "|".join("0" * 5 + "1" + "0" * 13)
    table = read_movielens_100k(
        zipped(
            tmp_path / "ml-100k.zip",
            u_dot_data="1\t9\t5\t881250949\n",
            u_dot_item=f"9|Babe|14-Jul-1995|||{marks}\n",
        )
    )
    assert table.user_features is None
    assert table.item_features is not None
    assert {name: cells.tolist() for name, cells in table.item_features.items()} == {
        "item": [9],
        "genres": ["Comedy"],
        "year": [1995],
    }


def test_the_archives_since_2015_are_read_from_the_file_alone_too(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("userId,movieId,rating,timestamp\r\n1,296,5.0,1147880044\r\n1,306,3.5,5\r\n")
    table = dataset_info("ml-25m").read(path)
    assert (table.pairs.tolist(), table.titles) == ([[1, 296], [1, 306]], None)
    assert dataset_info("ml-25m").read is dataset_info("ml-32m").read


def test_large_files_are_read_in_chunks(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(source, "CHUNK_BYTES", 10)
    path = tmp_path / "ratings.dat"
    path.write_text("".join(f"{k}::{k % 7}::{k % 5 / 2}::{k * 10}\n" for k in range(100)))
    table = dataset_info("ml-10m").read(path)
    assert table.users.tolist() == list(range(100))
    assert table.ratings.tolist() == [k % 5 / 2 for k in range(100)]
    assert table.timestamps is not None
    assert table.timestamps.tolist() == [k * 10 for k in range(100)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1::2::3::4\n1::2::3\n", r"line 2: 3 column\(s\) found where 4 are needed"),
        ("1::2::x::4\n", "line 1: the rating 'x' is not a number"),
        ("ann::2::3::4\n", "does not hold ratings with whole numbers for ids"),
        ("", "does not hold ratings"),
    ],
)
def test_what_is_no_rating_is_told(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "ratings.dat"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        dataset_info("ml-10m").read(path)


def test_no_package_index_is_named_anywhere() -> None:
    source = Path(registry.__file__).parents[2]
    text = "".join(path.read_text() for path in source.rglob("*.py"))
    assert not any(host in text for host in ("py" + "pi.org", "python" + "hosted.org"))
