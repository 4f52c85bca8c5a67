"""A table that is written out in any form reads back as the same table."""

import string
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from label_files import NAMED, as_arff, as_extreme, as_npz, as_svmlight, as_xml, as_zip, dense
from made_files import write
from scipy import sparse
from scipy.io import savemat

from marginmf.datasets import LabelsTable, read_labels
from marginmf.datasets.labels.arrays import write_labels_npz

# Blanks around names are dropped in delimited text, and "?" is a missing value in ARFF.
NAMES = st.text(string.ascii_letters + string.digits + "._-:= '\"\\%{},é*[", min_size=1).map(
    lambda name: f"a{name}z"
)
NUMBERS = st.one_of(
    st.just(0.0), st.integers(-9, 9).map(float), st.floats(-1e6, 1e6, allow_subnormal=False)
)


@st.composite
def tables(draw, names: bool = True) -> LabelsTable:
    n_samples, n_features, n_labels = (draw(st.integers(1, 4)) for _ in range(3))
    values = draw(
        st.lists(
            st.lists(NUMBERS, min_size=n_features, max_size=n_features),
            min_size=n_samples,
            max_size=n_samples,
        )
    )
    labels = draw(
        st.lists(
            st.lists(st.integers(0, 1), min_size=n_labels, max_size=n_labels),
            min_size=n_samples,
            max_size=n_samples,
        )
    )
    all_names = draw(
        st.lists(NAMES, min_size=n_features + n_labels, max_size=n_features + n_labels, unique=True)
    )
    return LabelsTable(
        "made",
        np.array(values, dtype=float) + 0.0,  # no negative zero
        np.array(labels),
        feature_names=tuple(all_names[:n_features]) if names else None,
        label_names=tuple(all_names[n_features:]) if names else (),
    )


def assert_same(table: LabelsTable, again: LabelsTable, names: bool = True) -> None:
    np.testing.assert_array_equal(dense(again.X), dense(table.X))
    np.testing.assert_array_equal(dense(again.Y), dense(table.Y))
    if names:
        assert again.label_names == table.label_names
        assert again.feature_names == table.feature_names


quick = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("kind", NAMED)
@given(table=tables())
@quick
def test_a_form_with_names_reads_back_whole(kind: str, table: LabelsTable) -> None:
    with TemporaryDirectory() as folder:
        path = write(Path(folder), NAMED[kind](table), f"made.{kind}")
        assert_same(table, read_labels(path, labels=table.label_names))
        assert_same(table, read_labels(path, labels=table.n_labels))


@given(table=tables())
@quick
def test_an_archive_reads_back_whole(table: LabelsTable) -> None:
    files = {
        "made/made-train.arff": as_arff(table),
        "made/made-test.arff": as_arff(table.subset([0])),
        "made/made.xml": as_xml(table.label_names),
    }
    with TemporaryDirectory() as folder:
        again = read_labels(write(Path(folder), as_zip(files), "made.zip"))
    assert_same(table, again.subset(again.train_idx))
    assert_same(table.subset([0]), again.subset(again.test_idx))


@given(table=tables(), form=st.sampled_from([np.asarray, sparse.csr_array]))
@quick
def test_arrays_read_back_whole(table: LabelsTable, form) -> None:
    table = LabelsTable(
        "made",
        form(table.X),
        table.Y,
        feature_names=table.feature_names,
        label_names=table.label_names,
        train_idx=[0],
    )
    with TemporaryDirectory() as folder:
        again = read_labels(write(Path(folder), as_npz(table, Path(folder)), "again.npz"))
    assert_same(table, again)
    assert type(again.X) is type(table.X)
    assert again.train_idx.tolist() == [0]
    assert again.test_idx is None


@given(table=tables(names=False))
@quick
def test_svmlight_reads_back_whole(table: LabelsTable) -> None:
    X, Y = dense(table.X), dense(table.Y)
    assume(X[-1].any() or Y[-1].any())  # a blank line at the end is no sample
    assume(X.any())
    with TemporaryDirectory() as folder:
        path = write(Path(folder), as_svmlight(table), "made.svm")
        again = read_labels(path, labels=table.n_labels, n_features=table.n_features)
        assert_same(table, again, names=False)
        assert again.label_names == tuple(str(k + 1) for k in range(table.n_labels))
        occurring = read_labels(path)
        kept = Y[:, Y.any(axis=0)]
        np.testing.assert_array_equal(dense(occurring.Y), kept)
        path = write(Path(folder), as_extreme(table), "made.txt")
        assert_same(table, read_labels(path), names=False)


@pytest.mark.parametrize("by_column", [False, True])
def test_features_of_a_mat_file_are_turned_the_same_way_without_labels(
    by_column: bool, tmp_path: Path
) -> None:
    X, Y = np.arange(40.0 * 3).reshape(40, 3), np.arange(80).reshape(40, 2) % 2
    arrays = {"data": X.T, "target": Y.T} if by_column else {"data": X, "target": Y}
    savemat(tmp_path / "m.mat", arrays)
    for table in (read_labels(tmp_path / "m.mat"), read_labels(tmp_path / "m.mat", labels=[])):
        np.testing.assert_array_equal(table.X, X)
    assert table.n_labels == 0


def test_an_npz_file_remembers_where_the_table_is_from(tmp_path: Path) -> None:
    table = LabelsTable("t", np.ones((2, 1)), np.eye(2, dtype=int), source="downloaded from X")
    write_labels_npz(table, tmp_path / "t.npz")
    assert read_labels(tmp_path / "t.npz").source == "downloaded from X"


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("0.5,1,0\n0.25,0,1\n")
    assert read_labels(tmp_path / "a.csv", labels=np.int64(2)).n_labels == 2
    (tmp_path / "a.svm").write_text("0,1 1:0.5\n1 2:1.5\n")
    assert read_labels(tmp_path / "a.svm", n_features=np.int64(9)).n_features == 9


def test_a_label_that_is_stored_twice_is_refused() -> None:
    Y = sparse.csr_array((np.array([1, 1]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    with pytest.raises(ValueError, match="are 0 or 1, but one of them is 2"):
        LabelsTable("t", np.ones((1, 1)), Y)
