"""The entries say what one has to know, data folders agree with them, and so does the page."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from marginmf.cli.output import format_size
from marginmf.datasets import (
    LabelsFacts,
    dataset_info,
    dataset_names,
    dataset_path,
    load_labels,
    load_ratings,
    registry,
)
from marginmf.datasets.cache import DIFFERS, own_datasets

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


def test_every_address_is_safe() -> None:
    text = (Path(registry.__file__).with_suffix(".toml")).read_text(encoding="utf-8")
    document = tomllib.loads(text)["datasets"]
    addresses = [entry["address"] for entry in document.values() if "address" in entry]
    assert len(addresses) > 20
    assert all(address.startswith("https://") for address in addresses)


def test_what_is_checked_by_its_counts_alone_is_what_nobody_here_has() -> None:
    counted = {name for name in dataset_names() if dataset_info(name).checked_by == "counts"}
    assert counted == {"bookmarks", "eachmovie", "jester", "mediamill", "ml-32m"}


def test_the_sets_of_the_thesis_are_all_there() -> None:
    labels = set(dataset_names("labels"))
    assert {*CHAPTER_5.split(), *CHAPTER_6.split()} < labels
    ratings = set(dataset_names("ratings"))
    assert {"ml-100k", "ml-1m", "eachmovie", "jester", "book-crossing"} < ratings
    assert sorted(labels | ratings) == dataset_names()


def test_the_mean_number_of_labels_is_checked() -> None:
    expected = LabelsFacts(593, 72, 6, 1.869)
    assert expected.difference(LabelsFacts(593, 72, 6, 1.8686), "Songs") is None
    problem = "It has 1.500 labels a row where Songs has 1.869."
    assert expected.difference(LabelsFacts(593, 72, 6, 1.5), "Songs") == problem


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
        assert DIFFERS not in table.source  # so it has the fingerprint of the entry
        assert info.fingerprint is not None
        if name == "eachmovie-sample":  # it is divided
            rows = np.sort(np.concatenate([table.train_idx, table.test_idx]))
            np.testing.assert_array_equal(rows, np.arange(len(table)))
        if name == "book-crossing":  # its numbers are texts
            assert all(isinstance(item, str) for item in table.items[:1000])


def test_a_data_folder_has_nothing_that_no_entry_describes(data_root: Path) -> None:
    for kind in ("ratings", "labels"):
        assert set(own_datasets(kind, data_root)) <= set(dataset_names(kind))


def test_importing_the_package_is_light() -> None:
    code = (
        "import sys, marginmf.datasets; "
        "print([m for m in ('numba', 'rich', 'sklearn', 'scipy', 'pandas') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_the_page_lists_every_entry_as_it_is() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "datasets.md").read_text()
    rows = re.findall(r"^\| `.*$", page, re.MULTILINE)
    expected = []
    for name in [*dataset_names("ratings"), *dataset_names("labels")]:
        info = dataset_info(name)
        source = "download" if info.can_be_downloaded else "by hand"
        source += f", {format_size(info.size)}" if info.size is not None else ""
        cells = (f"`{name}`", info.title, info.facts.words(), source, info.checked_by)
        expected.append(f"| {' | '.join(cells)} |")
    assert rows == expected
