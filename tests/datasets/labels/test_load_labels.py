from pathlib import Path

import numpy as np
import pytest
from label_files import as_arff, as_npz, as_xml, as_zip
from made_files import write

from marginmf.datasets import DatasetUnavailable, LabelsTable, load_labels

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
    with pytest.raises(ValueError, match=r"no label dataset 'films' in .*; .* are 'made', 'old'\."):
        load_labels("films", data_dir=folder)


@pytest.mark.parametrize("name", ["../made", "labels/made", ""])
def test_a_name_is_no_path(folder: Path, name: str) -> None:
    with pytest.raises(ValueError, match="There is no label dataset"):
        load_labels(name, data_dir=folder)


def test_without_a_folder_the_error_says_how_to_name_one(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("MARGINMF_DATA", raising=False)
    with pytest.raises(DatasetUnavailable, match="set MARGINMF_DATA to a folder that has labels/x"):
        load_labels("x")
    with pytest.raises(DatasetUnavailable, match=r"There is no folder .*nowhere to load 'x' from"):
        load_labels("x", data_dir=tmp_path / "nowhere")


def test_every_dataset_of_the_data_folder_loads(data_root: Path) -> None:
    names = sorted(path.stem for path in (data_root / "labels").glob("*.npz"))
    small = [name for name in names if not name.startswith("rcv1")]
    assert len(small) > 10
    for name in small:
        table = load_labels(name, data_dir=data_root)
        assert table.n_samples > 400
        assert 1 < table.cardinality < table.n_labels
