"""The archives as their owners publish them give the same tables as the arrays beside them."""

from pathlib import Path

import numpy as np
import pytest
from label_files import dense

from marginmf.datasets import read_labels

NAMES = ["emotions", "scene", "yeast", "medical", "genbase", "enron", "bibtex", "cal500", "corel5k"]
UNDIVIDED = {"cal500"}


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_is_read_as_the_arrays_of_the_same_name(name: str, data_root: Path) -> None:
    archive = read_labels(data_root / "original" / f"{name}.zip")
    arrays = read_labels(data_root / "labels" / f"{name}.npz")
    assert archive.name == arrays.name == name
    assert archive.label_names == arrays.label_names
    assert archive.feature_names == arrays.feature_names
    np.testing.assert_array_equal(dense(archive.X).astype(np.float32), dense(arrays.X))
    assert type(archive.X) is type(arrays.X)
    np.testing.assert_array_equal(dense(archive.Y), dense(arrays.Y))
    if name in UNDIVIDED:
        assert archive.train_idx is None
    else:
        np.testing.assert_array_equal(archive.train_idx, arrays.train_idx)
        np.testing.assert_array_equal(archive.test_idx, arrays.test_idx)


def test_the_column_that_names_the_rows_is_left_out_and_said(data_root: Path) -> None:
    table = read_labels(data_root / "original" / "genbase.zip")
    assert table.source.endswith("genbase.zip without 'protein'")
    assert table.n_features == 1185


def test_an_unpacked_file_finds_the_xml_beside_it(data_root: Path, tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(data_root / "original" / "yeast.zip") as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / "yeast"
    whole, part = read_labels(folder / "yeast.arff"), read_labels(folder / "yeast-test.arff")
    assert (whole.n_samples, part.n_samples) == (2417, 917)
    # The XML has another order; that of the ARFF file is kept.
    assert whole.label_names == tuple(f"Class{k}" for k in range(1, 15))
    assert whole.cardinality == pytest.approx(4.237, abs=5e-4)


def test_the_parts_of_an_archive_are_its_whole(data_root: Path, tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(data_root / "original" / "emotions.zip") as archive:
        archive.extractall(tmp_path)
    whole = read_labels(tmp_path / "emotions" / "emotions.arff")
    parts = read_labels(data_root / "original" / "emotions.zip")
    rows = [sorted(np.hstack([t.X, dense(t.Y)]).tolist()) for t in (whole, parts)]
    assert rows[0] == rows[1]
