import dataclasses

import numpy as np
import pytest
from scipy import sparse

from marginmf.datasets import LabelsTable

X = np.array([[0.5, 0.0], [2.0, 1.0], [0.0, 0.0]])
Y = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize("make_x", [np.asarray, sparse.csr_array, sparse.coo_matrix])
@pytest.mark.parametrize("make_y", [np.asarray, sparse.csr_array, sparse.coo_matrix])
def test_features_and_labels_are_kept_in_one_form(make_x, make_y) -> None:
    table = LabelsTable("t", make_x(X), make_y(Y))
    assert isinstance(table.Y, sparse.csr_array)
    assert table.Y.dtype == np.int64
    assert table.Y.has_sorted_indices
    np.testing.assert_array_equal(table.Y.toarray(), Y)
    assert isinstance(table.X, np.ndarray if make_x is np.asarray else sparse.csr_array)
    np.testing.assert_array_equal(table.X @ np.eye(2), X)


def test_stored_zeros_are_no_labels() -> None:
    stored = sparse.csr_array((np.array([1, 0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 3))
    table = LabelsTable("t", [[1.0]], stored)
    assert (table.Y.nnz, table.cardinality) == (1, 1.0)


def test_single_precision_stays_and_the_rest_becomes_double() -> None:
    assert LabelsTable("t", X.astype(np.float32), Y).X.dtype == np.float32
    assert LabelsTable("t", sparse.csr_array(X.astype(np.float32)), Y).X.dtype == np.float32
    assert LabelsTable("t", X.astype(np.int8), Y).X.dtype == np.float64


def test_sizes_are_those_of_the_matrices() -> None:
    table = LabelsTable("t", X, Y)
    assert (table.n_samples, table.n_features, table.n_labels, len(table)) == (3, 2, 3, 3)
    assert table.cardinality == pytest.approx(1.0)
    assert table.density == pytest.approx(1 / 3)
    assert table.label_names == ("label1", "label2", "label3")
    assert table.feature_names is None


def test_repr_says_size_form_and_source_in_one_line() -> None:
    table = LabelsTable("t", sparse.csr_array(X), Y, source="made up")
    assert repr(table) == (
        "LabelsTable('t': 3 samples, 2 features (sparse), 3 labels, 1 a sample; made up)"
    )
    assert "1 feature (dense), 1 label," in repr(LabelsTable("t", [[1.0]], [[1]]))


def test_a_subset_keeps_rows_in_the_order_asked_for() -> None:
    table = LabelsTable("t", X, Y, train_idx=[0, 1], test_idx=[2])
    part = table.subset([2, 0])
    np.testing.assert_array_equal(part.X, X[[2, 0]])
    np.testing.assert_array_equal(part.Y.toarray(), Y[[2, 0]])
    assert part.train_idx is None
    assert part.test_idx is None
    np.testing.assert_array_equal(table.subset(table.test_idx).X, X[[2]])
    np.testing.assert_array_equal(table.subset(np.array([True, False, True])).X, X[[0, 2]])


def test_a_table_is_frozen_but_can_be_replaced() -> None:
    table = LabelsTable("t", X, Y)
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.name = "other"  # type: ignore[misc]
    assert dataclasses.replace(table, source="here").source == "here"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Y": Y[:2]}, r"a row for each sample, but their shapes are \(3, 2\) and \(2, 3\)"),
        ({"Y": 2 * Y}, "labels of a LabelsTable are 0 or 1, but one of them is 2"),
        ({"Y": Y * np.nan}, "one of them is nan"),
        ({"label_names": ["a"]}, "There are 1 label names for 3 labels"),
        ({"feature_names": ["a"]}, "There are 1 feature names for 2 features"),
        ({"train_idx": [3]}, "train_idx names row 3, but the rows are 0 to 2"),
        ({"test_idx": [-1]}, "test_idx names row -1; rows are counted from 0"),
        ({"test_idx": [0.5]}, "test_idx must be a list of whole numbers"),
    ],
)
def test_what_does_not_fit_together_is_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        LabelsTable("t", **({"X": X, "Y": Y} | arguments))
