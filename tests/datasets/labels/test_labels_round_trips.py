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

from marginmf.datasets import LabelsTable, read_labels

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
