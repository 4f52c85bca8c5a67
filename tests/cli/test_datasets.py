"""``marginmf datasets``: list, get, info and path."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from marginmf.datasets import RatingsFacts, RatingsTable, dataset_names, load_labels, registry
from marginmf.datasets import table as tables
from marginmf.datasets.labels.arrays import write_labels_npz

VOTES = "1\t10\t0.2\t1\t\n1\t11\t1\t1\t\n7\t10\t0\t1\t\n"


@pytest.fixture(autouse=True)
def nothing_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a data folder nor a cache nor a way out."""
    monkeypatch.delenv("MARGINMF_DATA", raising=False)
    monkeypatch.setenv("MARGINMF_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))


@pytest.fixture
def small_eachmovie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Expect of EachMovie what a file of three votes has."""
    facts = RatingsFacts(3, 2, 2, (1.0, 2.0, 6.0))
    entry = replace(registry.entries()["eachmovie"], facts=facts)
    monkeypatch.setitem(registry.entries(), "eachmovie", entry)
    path = tmp_path / "Vote.txt"
    path.write_text(VOTES)
    return path


def test_the_list_is_of_all_datasets_and_where_they_are(run) -> None:
    outcome = run("datasets", "list")
    assert outcome.code == 0
    rows = {line.split()[0]: line for line in outcome.out.splitlines() if line.split()}
    assert set(dataset_names()) < rows.keys()
    assert "1,000,209 ratings, 6,040 users, 3,706 items" in rows["ml-1m"]
    assert rows["ml-1m"].split()[-4:] == ["5.9", "MB", "to", "download"]
    assert rows["eachmovie"].split()[-2:] == ["by", "hand"]
    assert all(len(line) <= 100 for line in outcome.out.splitlines())


def test_the_list_of_one_kind_for_programs(run, data_root: Path, monkeypatch) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    found = json.loads(run("datasets", "list", "--kind", "labels", "--json").out)["datasets"]
    assert [one["name"] for one in found] == dataset_names("labels")
    yeast = found[-1]
    assert (yeast["where"], yeast["path"]) == ("data folder", f"{data_root}/labels/yeast.npz")
    assert yeast["expected"]["n_labels"] == 14


def test_a_copy_of_ones_own_is_kept_and_found(run, small_eachmovie: Path) -> None:
    assert run("datasets", "path", "eachmovie").code == 2
    outcome = run("datasets", "get", "eachmovie", "--from", small_eachmovie)
    assert outcome.code == 0, outcome.err
    assert "EachMovie: 3 ratings, 2 users, 2 items, 3 levels from 1 to 6; read from" in outcome.out
    assert "Kept as " in outcome.err
    path = run("datasets", "path", "eachmovie").out.strip()
    assert path.endswith("marginmf/ratings/eachmovie.npz")
    assert json.loads(run("datasets", "path", "eachmovie", "--json").out)["path"] == path
    assert Path(path).is_file()
    again = json.loads(run("datasets", "get", "eachmovie", "--offline", "--json").out)
    assert again["datasets"][0]["where"] == "cache"
    assert json.loads(run("info", "eachmovie", "--json").out)["n_ratings"] == 3


def test_everything_that_is_known_is_shown(run) -> None:
    outcome = run("datasets", "info", "ml-100k")
    assert outcome.code == 0
    text = " ".join(outcome.out.split())
    for words in (
        "MovieLens 100K",
        "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
        "4.9 MB (4,924,029 bytes)",
        "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
        "100,000 ratings, 943 users, 1,682 items, 5 levels from 1 to 5",
        "the copy inside the wheel recbole==1.2.1",
        "terms For research; not to be redistributed",
        "Harper and Joseph A. Konstan",
        "where to download",
    ):
        assert words in text
    assert "found" not in text


@pytest.mark.parametrize(
    ("ratings", "verdict"),
    [
        (None, "as expected; the same to the last value"),
        ([1, 2, 3], "not as expected. It has 3 ratings where MovieLens 100K has 100,000."),
        ("other", "as expected; not all values are those of the copy known to marginmf"),
        (b"junk", "not as expected. "),
    ],
)
def test_what_is_here_is_held_against_what_is_expected(
    run, data_root: Path, tmp_path: Path, monkeypatch, ratings, verdict: str
) -> None:
    folder = data_root if ratings is None else tmp_path / "data"
    monkeypatch.setenv("MARGINMF_DATA", str(folder))
    arrays = folder / "ratings" / "ml-100k.npz"
    if ratings == "other":
        table = tables.read_npz(data_root / "ratings" / "ml-100k.npz", "ml-100k")
        changed = np.roll(table.ratings, 1)
        tables.write_npz(RatingsTable("t", table.users, table.items, changed), arrays)
    elif isinstance(ratings, list):
        tables.write_npz(RatingsTable("t", [1, 1, 2], [7, 8, 9], ratings), arrays)
    elif ratings is not None:
        arrays.parent.mkdir(parents=True)
        arrays.write_bytes(ratings)
    outcome = run("datasets", "info", "ml-100k")
    assert outcome.code == 0
    assert verdict in " ".join(outcome.out.split())
    assert json.loads(run("datasets", "info", "ml-100k", "--json").out)["found"]["path"]


def test_an_entry_without_a_fingerprint_is_judged_by_its_counts(run, small_eachmovie: Path) -> None:
    run("datasets", "get", "eachmovie", "--from", small_eachmovie)
    text = " ".join(run("datasets", "info", "eachmovie").out.split())
    assert "found 3 ratings, 2 users, 2 items, 3 levels from 1 to 6; as expected" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("path ml-25m", "MovieLens 25M is not on this machine. Get it with: marginmf datasets get"),
        ("path eachmovie", "EachMovie is not on this machine. Its owner withdrew it"),
        ("path films", "There is no dataset 'films'"),
        ("info ml-10", "did you mean 'ml-10m', 'ml-100k' or 'ml-1m'? The names of all"),
        ("get", "Missing argument 'NAME...'. See marginmf datasets get --help."),
        ("get ml-1m --offline", "not asked, because --offline. Connect to the network"),
        ("get jester", "not asked, because MARGINMF_OFFLINE is set."),
        ("get book-crossing", "With a copy of BX-CSV-Dump.zip"),
        ("get ml-100k ml-1m --from here", "--from is a copy of one dataset"),
        ("get ml-100k --from absent.zip", "There is no file absent.zip"),
        ("get eachmovie --from text.txt", "text.txt is not EachMovie: text.txt, line 2: "),
        ("get yeast --from text.txt", "text.txt is not Yeast: "),
        ("list --kind films", "--kind: 'films' is not one of"),
        ("nonsense", "No such command 'nonsense'. See marginmf datasets --help."),
    ],
)
def test_what_goes_wrong_is_one_line_and_2(run, arguments: str, message: str) -> None:
    Path("text.txt").write_text("1\t2\t1\t1\t\nhello world\n")
    outcome = run("datasets", *arguments.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("marginmf: ")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.filterwarnings("default::UserWarning")
def test_what_is_not_verified_is_told_once_on_standard_error(run, data_root, monkeypatch) -> None:
    table = load_labels("emotions", data_dir=data_root, offline=True)
    write_labels_npz(replace(table, X=table.X.round(3)), Path("data/labels/emotions.npz"))
    monkeypatch.setenv("MARGINMF_DATA", "data")
    for command in ("datasets get emotions --no-verify --json", "labels info emotions --json"):
        outcome = run(*command.split())
        assert outcome.code == 0
        assert json.loads(outcome.out)
        assert outcome.err.count("marginmf: Emotions is not verified: this copy, ") == 1


def test_without_a_command_the_help_is_shown(run) -> None:
    outcome = run("datasets")
    assert outcome.code == 0
    assert all(word in outcome.out for word in ("list", "get", "info", "path"))


def test_commands_for_ratings_and_labels_find_datasets_of_their_kind(
    run, data_root: Path, monkeypatch
) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    found = json.loads(run("info", "ml-latest-small", "--json").out)
    assert found["n_ratings"] == 100_836
    outcome = run("labels", "evaluate", "ml-100k")
    assert "'ml-100k': it has ratings; load it with load_ratings." in outcome.err
