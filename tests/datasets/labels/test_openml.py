"""OpenML's copies: a description in JSON, and an ARFF file whose labels are TRUE and FALSE."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from label_files import dense

from marginmf.datasets import DatasetUnavailable, dataset_info, load_labels, read_labels
from marginmf.datasets.labels import archives
from marginmf.datasets.registry import OpenMLCopy

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


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"data_set_description": {}}'])
def test_what_describes_nothing_is_told(served: Any, tmp_path: Path, body: bytes) -> None:
    served.serve("/data/40589", body)
    with pytest.raises(DatasetUnavailable, match="does not describe a dataset"):
        load_labels("emotions", cache_dir=tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
