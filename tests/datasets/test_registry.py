import re
import subprocess
import sys
from pathlib import Path

import pytest

from marginmf.datasets import (
    LabelsFacts,
    RatingsTable,
    dataset_info,
    dataset_names,
    dataset_path,
    load_labels,
    load_ratings,
    npz,
)
from marginmf.datasets.fingerprints import labels_fingerprint, ratings_fingerprint
from marginmf.datasets.places import own_datasets
from marginmf.datasets.verification import DIFFERS

CHAPTER_5 = (
    "cal500 emotions genbase plant978 medical langlog human3106 yahoo-education yahoo-science"
)
CHAPTER_5 += " rcv1subset2-944 rcv1subset5 ohsumed"
CHAPTER_6 = (
    "corel5k rcv1subset1-944 rcv1subset3-944 bibtex corel16k001 delicious mediamill bookmarks"
)


@pytest.mark.parametrize("name", dataset_names())
def test_every_entry_says_what_one_has_to_know(name: str) -> None:
    info = dataset_info(name)
    assert info.name == name
    assert info.terms.endswith(".")
    assert re.search(r"\b(19|20)\d\d\b", info.citation)
    assert info.facts.words()
    assert info.address is None or re.match(r"https?://\S+\.zip$", info.address)
    assert bool(info.by_hand) == (not info.can_be_downloaded)
    assert info.sha256 is None or re.fullmatch("[0-9a-f]{64}", info.sha256)
    assert (info.sha256 is None) == (info.size is None)
    assert isinstance(info.facts, LabelsFacts) == (info.kind == "labels")


def test_the_sets_of_the_thesis_are_all_there() -> None:
    labels = set(dataset_names("labels"))
    assert {*CHAPTER_5.split(), *CHAPTER_6.split()} < labels
    ratings = set(dataset_names("ratings"))
    assert {"ml-100k", "ml-1m", "eachmovie", "jester", "book-crossing"} < ratings
    assert sorted(labels | ratings) == dataset_names()


def test_what_a_data_folder_has_is_what_the_entries_say(data_root: Path) -> None:
    files = {name: dataset_path(name, data_dir=data_root) for name in dataset_names()}
    there = {name: path for name, path in files.items() if path is not None}
    assert {"ml-100k", "eachmovie-sample", "yeast", "rcv1subset5", "bibtex"} < there.keys()
    for name, path in there.items():
        info = dataset_info(name)
        load = load_ratings if info.kind == "ratings" else load_labels
        table = load(name, data_dir=data_root, offline=True)
        assert table.name == name
        assert str(path) in table.source
        assert DIFFERS not in table.source
        digest = (ratings_fingerprint if info.kind == "ratings" else labels_fingerprint)(table)
        assert info.fingerprint == (None if name == "ml-latest-small" else digest), name


def test_a_data_folder_has_nothing_that_no_entry_describes(data_root: Path) -> None:
    for kind in ("ratings", "labels"):
        assert set(own_datasets(kind, data_root)) <= set(dataset_names(kind))


def test_the_sample_of_eachmovie_is_divided(data_root: Path) -> None:
    table = load_ratings("eachmovie-sample", data_dir=data_root)
    assert table.train_idx is not None
    assert table.test_idx is not None
    assert sorted([*table.train_idx, *table.test_idx]) == list(range(len(table)))


def test_books_have_numbers_that_are_texts(data_root: Path) -> None:
    table = load_ratings("book-crossing", data_dir=data_root)
    assert all(isinstance(item, str) for item in table.items[:1000])


def test_text_ids_survive_the_npz_form(tmp_path: Path) -> None:
    table = RatingsTable("t", ["ann", "bob"], [7, 8], [1, 2.5], titles={7: "Ä", 8: "B"})
    npz.write_npz(table, tmp_path / "t.npz")
    again = npz.read_npz(tmp_path / "t.npz", "t")
    assert again.pairs.tolist() == [["ann", 7], ["bob", 8]]
    assert (again.titles, again.timestamps, again.ratings.tolist()) == (
        {7: "Ä", 8: "B"},
        None,
        [1, 2.5],
    )


def test_importing_the_package_is_light() -> None:
    code = (
        "import sys, marginmf.datasets; "
        "print([m for m in ('numba', 'rich', 'sklearn', 'scipy', 'pandas') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
