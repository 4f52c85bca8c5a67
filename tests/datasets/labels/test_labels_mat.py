"""MATLAB files, in the forms in which label sets circulate, and in forms that do harm."""

import io
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from label_files import check, dense
from made_files import write
from scipy import sparse
from scipy.io import savemat

from marginmf.datasets import read_labels
from marginmf.datasets.labels import mat_process, matlab

X = np.array([[0.5, 1, 2], [3, 4, 5], [6, 7, 8], [9, 1, 2], [1, 2, 3]])


Y = np.array([[1, 0], [0, 1], [1, 1], [0, 0], [1, 0]])


SIGNS = 2 * Y - 1


def written(folder: Path, name: str = "songs.mat", **variables: Any) -> Path:
    savemat(folder / name, variables)
    return folder / name


@pytest.mark.parametrize(
    "variables",
    [
        {"data": X, "target": Y},
        {"data": X, "target": SIGNS.T},
        {"X": X, "Y": Y.astype(np.uint8), "note": "hello"},
        {"X": X.T, "Y": SIGNS.T},
        {"X": X.T, "Y": Y},
        {"features": sparse.csc_matrix(X), "labels": sparse.csc_matrix(Y.T.astype(float))},
        {"Data": X.astype(np.float32), "Targets": Y.astype(bool)},
    ],
    ids=lambda variables: " ".join(variables),
)
def test_every_form_is_the_same_table(tmp_path: Path, variables: dict[str, Any]) -> None:
    table = read_labels(written(tmp_path, **variables))
    np.testing.assert_array_equal(dense(table.X), X)
    np.testing.assert_array_equal(dense(table.Y), Y)
    assert (table.name, table.label_names) == ("songs", ("label1", "label2"))
    assert table.train_idx is None
    assert table.source.endswith("songs.mat")


def test_parts_are_joined_and_known(tmp_path: Path) -> None:
    parts = {
        "train_data": X[:3],
        "train_target": SIGNS[:3].T,
        "test_data": X[3:],
        "test_target": SIGNS[3:].T,
    }
    table = read_labels(written(tmp_path, **parts))
    np.testing.assert_array_equal(dense(table.X), X)
    np.testing.assert_array_equal(dense(table.Y), Y)
    assert table.train_idx is not None
    assert table.test_idx is not None
    assert (table.train_idx.tolist(), table.test_idx.tolist()) == ([0, 1, 2], [3, 4])


def test_the_content_tells_whatever_the_name(tmp_path: Path) -> None:
    path = written(tmp_path, X=X, Y=Y).rename(tmp_path / "songs.data")
    assert read_labels(path).n_labels == 2


def test_features_alone_are_read_to_predict(tmp_path: Path) -> None:
    table = read_labels(written(tmp_path, X=X), labels=[])
    assert (table.n_samples, table.n_labels) == (5, 0)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"X": X}, "no matrix of labels: none of its matrices, 'x', is called 'target'"),
        ({"Y": Y}, "no matrix of features: none of its matrices, 'y', is called 'data'"),
        ({"X": X, "Y": Y * 2}, r"the labels have the values 0.0, 2.0; labels are 0 and 1"),
        ({"X": X, "Y": Y[:4]}, "5 by 3 and the labels 4 by 2, which have no number of rows"),
        ({"X": np.where(X == 9, np.nan, X), "Y": Y}, "not all finite numbers"),
        ({"X": X, "Y": np.array([["a"], ["b"]], dtype=object)}, "the labels are no numbers"),
        ({"train_data": X, "test_data": X}, "is called 'train_target'"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, variables: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_labels(written(tmp_path, **variables))


@pytest.mark.parametrize("mark", [b"MATLAB 7.3 MAT-file, Platform: GLNXA64", b"\x89HDF\r\n\x1a\n"])
def test_version_7_3_says_how_to_save_it_again(tmp_path: Path, mark: bytes) -> None:
    path = tmp_path / "new.mat"
    path.write_bytes(mark.ljust(600, b"\0"))
    with pytest.raises(ValueError, match=r"version 7\.3, which is not read; .* '-v7'"):
        read_labels(path)


@pytest.mark.parametrize("content", [b"hello", b"MATLAB 5.0 MAT-file".ljust(200), b"\0" * 50])
def test_damaged_files_are_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.mat"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"bad\.mat (is not a MATLAB file|has no matrix)"):
        read_labels(path)


def test_arguments_of_other_kinds_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, X=X, Y=Y)
    for arguments in ({"labels": 2}, {"xml": path}, {"zero_based": True}, {"ignore": ["a"]}):
        with pytest.raises(ValueError, match=r"leave .*= out"):
            read_labels(path, **arguments)


SPARSE = {"X": sparse.csc_matrix(X), "Y": sparse.csc_matrix(Y.astype(float))}


def as_mat(variables: dict[str, Any], compressed: bool = False) -> bytes:
    buffer = io.BytesIO()
    savemat(buffer, variables, do_compression=compressed)
    return buffer.getvalue()


def replaced(numbers: list[int], position: int, number: int) -> bytes:
    """Return a file with sparse features in which one of those indices is another."""
    others = numbers.copy()
    others[position] = number
    old, new = (np.array(one, np.int32).tobytes() for one in (numbers, others))
    whole = as_mat(SPARSE)
    assert whole.count(old) == 1
    return whole.replace(old, new)


ROWS, COLUMN_ENDS = [0, 1, 2, 3, 4] * 3, [0, 5, 10, 15]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (replaced(ROWS, 2, 10**8), "X is a damaged csc matrix: its index 100000000 is outside"),
        (replaced(ROWS, 2, 5), "its index 5 is outside its 5 rows"),
        (replaced(ROWS, 2, -1), "its index -1 is outside its 5 rows"),
        (replaced(COLUMN_ENDS, 1, 10**8), "does not rise from 0 to its 15 entries"),
        (replaced(COLUMN_ENDS, 1, -3), "does not rise from 0 to its 15 entries"),
        (replaced(COLUMN_ENDS, 3, 10**8), r"is not a MATLAB file, or is damaged|crashes on it"),
    ],
)
def test_sparse_matrices_with_entries_outside_are_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    check(write(tmp_path, content, "songs.mat"), message)


def test_shapes_are_in_proportion_to_the_entries(tmp_path: Path) -> None:
    far = sparse.csc_matrix(([1.0], ([0], [0])), shape=(10**9, 3))
    content = as_mat({"X": far, "Y": Y})
    assert len(content) < 1000
    check(write(tmp_path, content, "songs.mat"), "there are 1,000,000,000 rows of X and 1 entries")


def test_one_changed_byte_never_harms_the_process_that_reads(tmp_path: Path) -> None:
    rng, said = np.random.default_rng(0), []
    files = [as_mat(SPARSE | {"c": np.array([["a", 1]], object)}, pack) for pack in (False, True)]
    for _ in range(3):
        changed = bytearray(files[rng.integers(2)])
        changed[rng.integers(128, len(changed))] = rng.integers(256)
        try:
            read_labels(write(tmp_path, bytes(changed), "again.mat"))
        except ValueError as error:
            said.append(str(error))
    assert all("\n" not in one and one.startswith(str(tmp_path)) for one in said)


SCRIPTS = {
    "crash": ("import os; os.kill(os.getpid(), 9)", r"is damaged: SciPy crashes on it \(exit"),
    "words": ("raise SystemExit('free(): invalid')", r"crashes on it \(free\(\): invalid\)"),
    "hang": ("import time; time.sleep(60)", "takes longer than 1 s to load"),
    "memory": (f"raise SystemExit({mat_process.TOO_LARGE})", "takes more memory than 1,024 MiB"),
}


@pytest.mark.parametrize("harm", SCRIPTS)
def test_whatever_becomes_of_the_process_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    script, message = SCRIPTS[harm]
    path = write(tmp_path, script.encode(), "script.py")
    monkeypatch.setattr(mat_process, "__file__", str(path))
    monkeypatch.setattr(matlab, "SECONDS", 1 if harm == "hang" else 60)
    before = time.monotonic()
    check(written(tmp_path, X=X, Y=Y), f"{message}.*numpy.savez")
    assert time.monotonic() - before < 30


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits memory")
def test_what_unpacks_out_of_proportion_stops_at_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matlab, "MOST_BYTES", 2**24)
    content = as_mat({"X": np.zeros((1000, 3000), np.int8), "Y": np.zeros((1000, 2))}, True)
    assert read_labels(write(tmp_path, content, "songs.mat")).n_samples == 1000
    bomb = as_mat({"X": np.zeros((1 << 12, 1 << 13), np.int8)}, True)
    assert len(bomb) < 2**16
    check(write(tmp_path, bomb, "bomb.mat"), "takes more memory than 16 MiB")


@pytest.mark.parametrize("executable", ["", "/no/such/python"])
def test_without_a_python_to_start_the_remedy_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executable: str
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    check(written(tmp_path, X=X, Y=Y), "a Python process of their own, which cannot start")


def test_the_file_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module beside the file, or in the folder of the caller, is not imported by the process."""
    write(tmp_path, b"open('ran', 'w')", "scipy.py")
    write(tmp_path, b"open('ran', 'w')", "sitecustomize.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert read_labels(written(tmp_path, X=X, Y=Y)).n_samples == 5
    assert not (tmp_path / "ran").exists()


def test_a_name_with_control_characters_is_shown_as_text(tmp_path: Path) -> None:
    matrix = sparse.csc_matrix(np.arange(12.0).reshape(4, 3))
    path = written(tmp_path, data=matrix, target=np.eye(4)[:, :2])
    rows = matrix.indices.astype(np.int32)
    changed = path.read_bytes().replace(rows.tobytes(), (rows + 7).tobytes())
    path.write_bytes(changed.replace(b"data", b"\x1b\0ta"))
    with pytest.raises(ValueError, match=r"\\x1b\\x00ta is a damaged csc matrix"):
        read_labels(path)
