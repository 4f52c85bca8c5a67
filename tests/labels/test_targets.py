"""Targets: every form that users have, and sentences for those that cannot be used."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, csc_matrix, csr_array, csr_matrix

from marginmf.labels.order import Varying
from marginmf.labels.targets import as_features, check_none_missing, label_names, read_targets

Y = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 0]])


@pytest.mark.parametrize("form", [np.asarray, csr_matrix, csc_matrix, csr_array, coo_array])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float32])
def test_indicators_of_any_kind_are_read_and_given_back_alike(form, dtype) -> None:
    given = form(Y.astype(dtype))
    indicator, targets = read_targets(given)
    assert (indicator.toarray() == Y).all()
    assert indicator.dtype == np.float64
    answer = targets.sets([Y[:1] > 0, Y[1:] > 0])
    if form is not np.asarray:
        assert isinstance(answer, csr_array)
        answer = answer.toarray()
    assert answer.dtype == dtype
    assert (answer == Y).all()


def test_stored_zeros_are_not_labels_and_stay_where_they_were() -> None:
    given = csr_array((np.array([1, 0, 1]), np.array([2, 0, 1]), np.array([0, 2, 3])), (2, 3))
    indicator, _ = read_targets(given)
    assert indicator.nnz == 2
    assert given.data.tolist() == [1, 0, 1]
    assert given.indices.tolist() == [2, 0, 1]


def test_two_classes_become_one_column() -> None:
    indicator, targets = read_targets(np.array(["no", "yes", "no"]))
    assert indicator.toarray().tolist() == [[0], [1], [0]]
    assert targets.class_of(np.array([[0.1], [0.0]])).tolist() == ["yes", "no"]
    assert targets.scores(np.array([[0.1], [0.0]])).shape == (2,)


def test_more_classes_become_a_column_each() -> None:
    indicator, targets = read_targets(np.array([3, 1, 2]))
    assert indicator.toarray().tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert targets.class_of(np.array([[0.1, 0.3, 0.2]])).tolist() == [2]


def test_a_single_class_is_always_the_answer() -> None:
    _, targets = read_targets(np.array([7, 7]))
    assert targets.class_of(np.array([[-1.0], [4.0]])).tolist() == [7, 7]


def test_a_column_of_classes_is_a_vector_but_a_column_of_bits_is_a_label() -> None:
    assert read_targets(np.array([[0], [1], [2]]))[1].vector
    assert not read_targets(np.array([[0], [1], [1]]))[1].vector


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (np.array([[0, 1], [2, 1]]), "value 2 in row 1, column 0"),
        (np.array([[0, 1], [0, -1]]), "value -1 in row 1, column 1"),
        (csr_array(np.array([[0, 1], [0, 3]])), "value 3 in row 1, column 1"),
        (np.array([["a", "b"], ["c", "d"]]), "value 'a' in row 0, column 0"),
        (np.array([[0, 1], [0, "x"]], object), "value 'x' in row 1, column 1"),
        (np.array([[0.5, 1.5], [0.2, 1.0]]), "value 0.5 in row 0, column 0"),
        (np.array([0.5, 1.5, 0.2]), "Unknown label type"),
        (np.zeros((2, 2, 2)), "3 dimensions"),
    ],
)
def test_what_is_not_binary_is_refused_with_its_place(wrong, said) -> None:
    with pytest.raises(ValueError, match=said):
        read_targets(wrong)


def test_entries_stored_twice_are_added_up_and_then_refused() -> None:
    twice = csr_array((np.array([1, 1]), np.array([0, 0]), np.array([0, 2])), (1, 2))
    with pytest.raises(ValueError, match="value 2 in row 0, column 0"):
        read_targets(twice)


def test_names_come_from_data_frames_alone() -> None:
    assert label_names(pd.DataFrame(Y, columns=["a", "b", "c"])) == ["a", "b", "c"]
    assert label_names(pd.DataFrame(Y)) is None
    assert label_names(Y) is None


class Model:
    feature_names_in_ = np.array(["age", "height"])


@pytest.mark.parametrize("form", [np.array, csr_array])
@pytest.mark.parametrize(("value", "said"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_features_that_are_not_finite_are_refused_with_their_place(form, value, said) -> None:
    X = form(np.array([[1.0, 2.0], [3.0, value]]))
    with pytest.raises(ValueError, match=f"X has {said} in row 1, column 'height'; Model needs"):
        as_features(X, Model())


def test_values_whose_squares_overflow_are_refused() -> None:
    X = np.full((2, 2), 1e90)
    assert as_features(X, Model()) is X
    with pytest.raises(ValueError, match="values as large as 1e\\+200"):
        as_features(-1e110 * X, Model())


def test_sparse_features_get_small_indices_where_these_are_enough() -> None:
    X = csr_array(np.eye(3))
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert as_features(X, Model()).indices.dtype == np.int32
    assert X.indices.dtype == np.int64


@pytest.mark.parametrize(
    "y",
    [
        np.array(["a", None, "b"], object),
        ["a", float("nan"), "b"],
        pd.Series(["a", pd.NA, "b"], dtype="string"),
        np.array([1, None, 2], object),
    ],
    ids=["none", "nan", "na", "number"],
)
def test_a_missing_class_is_refused_with_its_row(y) -> None:
    if isinstance(y, list):
        y = np.array(y, object)
    with pytest.raises(ValueError, match="y has no value in row 1"):
        check_none_missing(y)


def test_classes_of_several_kinds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"cannot be compared \(int, str\)"):
        read_targets(np.array(["a", 1, "b"], object))


def test_features_stored_twice_are_added_up_in_a_copy() -> None:
    X = csr_matrix((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), (1, 2))
    assert as_features(X, Model()).toarray().tolist() == [[0, 3]]
    assert X.nnz == 2


def test_labels_that_do_not_vary_get_constant_scores() -> None:
    Y = csr_array(np.array([[1.0, 1, 0, 0], [1, 0, 0, 1]]))
    labels = Varying.of(Y)
    assert labels.varying.tolist() == [False, True, False, True]
    scores = labels.fill(np.array([[0.3, -0.2]]))
    assert scores.tolist() == [[1.0, 0.3, -1.0, -0.2]]
