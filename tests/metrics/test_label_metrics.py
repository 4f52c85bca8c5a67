"""Metrics of label sets and of rankings of labels."""

import label_oracle as oracle
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import sparse
from sklearn import metrics as sk

from marginmf import metrics
from marginmf.metrics import labels

TABLES = array_shapes(min_dims=2, max_dims=2, max_side=5).flatmap(
    lambda shape: st.tuples(
        arrays(np.int8, shape, elements=st.integers(0, 1)),
        arrays(np.int8, shape, elements=st.integers(0, 1)),
        # Few different scores, so that there are ties.
        arrays(np.float64, shape, elements=st.sampled_from([-1.5, 0.0, 0.25, 3.0])),
    )
)
#: Four samples: half right, right, nothing to find and nothing found, all wrong.
TRUE = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0]])
FOUND = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0]])
SCORES = np.array(
    [[4.0, 1, 2, 3], [1.0, 2, 3, 3], [4.0, 3, 2, 1], [1.0, 4, 3, 2]]  # places 1 and 4; 1-2; -; 4
)


def random_case(n=60, n_labels=12, seed=0):
    rng = np.random.default_rng(seed)
    Y, P = (rng.random((2, n, n_labels)) < 0.25).astype(int)
    Y[3] = P[3] = 0
    Y[:, 5] = P[:, 5] = 0
    return Y, P, rng.integers(0, 8, Y.shape) / 4


def test_label_sets_by_hand():
    report = metrics.labels_report(TRUE, FOUND)
    assert report == pytest.approx(
        {
            "hamming": 3 / 16,
            "accuracy": (1 / 2 + 1) / 4,
            "subset_accuracy": 2 / 4,
            "example_f1": (2 / 3 + 1) / 4,
            "macro_f1": (2 / 3 + 0 + 2 / 3 + 0) / 4,
            "micro_f1": 2 * 2 / (4 + 3),
        }
    )


def test_rankings_by_hand():
    report = metrics.labels_report(TRUE, FOUND, SCORES, k=(1, 3, 10))
    ideal = 1 + 1 / np.log2(3)
    expected = {
        "precision_at_1": (1 + 1 / 2) / 4,
        "precision_at_3": (1 / 3 + 1 / 3) / 4,
        "precision_at_10": (2 / 10 + 1 / 10 + 1 / 10) / 4,
        "ndcg_at_1": (1 + 1 / 2) / 4,
        "ndcg_at_3": (1 / ideal + ideal / 2) / 4,
        "ndcg_at_10": ((1 + 1 / np.log2(5)) / ideal + ideal / 2 + 1 / np.log2(5)) / 4,
        "coverage": (4 + 2 + 0 + 4) / 4,
    }
    assert {name: report[name] for name in expected} == pytest.approx(expected)
    assert list(report) == [*metrics.LABEL_METRICS, *expected]


@given(TABLES)
def test_metrics_follow_their_definitions(tables):
    Y, P, scores = tables
    found = metrics.labels_report(Y, P, scores, k=(1, 2, 7))
    lists = Y.tolist(), P.tolist()
    expected = {name: getattr(oracle, name)(*lists) for name in metrics.LABEL_METRICS}
    for k in (1, 2, 7):
        expected[f"precision_at_{k}"] = oracle.precision_at(k, Y.tolist(), scores.tolist())
        expected[f"ndcg_at_{k}"] = oracle.ndcg_at(k, Y.tolist(), scores.tolist())
    expected["coverage"] = oracle.coverage(Y.tolist(), scores.tolist())
    assert found == pytest.approx(expected)


@given(TABLES)
def test_metrics_stay_in_their_range(tables):
    Y, P, scores = tables
    report = metrics.labels_report(Y, P, scores)
    assert all(0 <= value <= 1 + 1e-12 for name, value in report.items() if name != "coverage")
    assert Y.sum(axis=1).mean() <= report["coverage"] <= Y.shape[1]
    # Jaccard's J and F1 of one sample are tied by F1 = 2J / (1 + J).
    steps = [report["accuracy"], report["example_f1"], 2 * report["accuracy"]]
    assert np.diff(steps).min() >= -1e-12
    assert report["subset_accuracy"] <= 1 - report["hamming"] + 1e-12
    perfect = metrics.labels_report(Y, Y, Y.astype(float))
    assert perfect["hamming"] == 0
    assert perfect["subset_accuracy"] == 1
    assert perfect["accuracy"] == pytest.approx(Y.any(axis=1).mean())
    assert perfect["macro_f1"] == pytest.approx(Y.any(axis=0).mean())
    assert perfect["ndcg_at_3"] == pytest.approx(Y.any(axis=1).mean())
    assert perfect["coverage"] == pytest.approx(Y.sum(axis=1).mean())


@given(TABLES, st.randoms(use_true_random=False))
def test_order_of_samples_and_labels_does_not_matter(tables, random):
    rows, columns = (random.sample(range(n), n) for n in tables[0].shape)
    shuffled = [table[rows][:, columns] for table in tables]
    assert metrics.labels_report(*shuffled) == pytest.approx(metrics.labels_report(*tables))


@pytest.mark.parametrize("seed", range(3))
def test_metrics_agree_with_scikit_learn(seed):
    Y, P, scores = random_case(seed=seed)
    report = metrics.labels_report(Y, P, scores)
    assert report["hamming"] == pytest.approx(sk.hamming_loss(Y, P))
    assert report["subset_accuracy"] == pytest.approx(sk.accuracy_score(Y, P))
    jaccard = sk.jaccard_score(Y, P, average="samples", zero_division=0)
    assert report["accuracy"] == pytest.approx(jaccard)
    for name, average in [("example", "samples"), ("macro", "macro"), ("micro", "micro")]:
        expected = sk.f1_score(Y, P, average=average, zero_division=0)
        assert report[f"{name}_f1"] == pytest.approx(expected)
    assert report["coverage"] == pytest.approx(sk.coverage_error(Y, scores))
    for k in (1, 3, 5):
        assert report[f"ndcg_at_{k}"] == pytest.approx(sk.ndcg_score(Y, scores, k=k))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32, object])
@pytest.mark.parametrize(
    "form",
    [
        np.asfortranarray,
        np.ndarray.tolist,
        pd.DataFrame,
        *(lambda a, f=f: f(a.astype(float)) for f in (sparse.csr_array, sparse.lil_matrix)),
    ],
)
def test_every_form_and_type_gives_the_same(form, dtype):
    Y, P, scores = random_case(n_labels=150)  # more labels than int8 counts to
    expected = metrics.labels_report(Y, P, scores)
    assert metrics.labels_report(form(Y.astype(dtype)), P, scores) == expected
    assert metrics.labels_report(Y, form(P.astype(dtype)), scores) == expected


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dok", "bsr"])
def test_sparse_tables_of_every_type_give_the_same(form, dtype):
    Y, P, scores = random_case(n_labels=150)
    expected = metrics.labels_report(Y, P, scores)
    tables = (sparse.coo_array(table.astype(dtype)).asformat(form) for table in (Y, P))
    assert metrics.labels_report(*tables, scores) == expected


def test_polars_and_nullable_frames_are_tables():
    expected = metrics.labels_report(TRUE, FOUND)
    nullable = pd.DataFrame(TRUE).astype("Int64").astype({0: "boolean"})
    assert metrics.labels_report(nullable, pl.DataFrame(FOUND, orient="row")) == expected


def test_untidy_sparse_tables_are_read_right_and_left_as_they_were():
    def untidy():  # indices not in order, and a zero that is stored
        return sparse.csr_matrix(([1, 0, 1], [3, 1, 0], [0, 3]), shape=(1, 4))

    table, before = untidy(), untidy()
    assert metrics.jaccard_accuracy(table, [[1, 0, 0, 1]]) == 1
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(table, part), getattr(before, part))


def test_large_sparse_tables_never_become_dense():
    # 2^50 cells: dense, they would not fit into any memory.
    shape, rows = (2**20, 2**30), np.arange(1000)
    Y = sparse.csr_array((np.ones(1000), (rows, rows * 7)), shape=shape)
    P = sparse.csr_array((np.ones(1000), (rows, rows * 7 + rows % 2)), shape=shape)
    assert metrics.subset_accuracy(Y, P) == 1 - 500 / 2**20
    assert metrics.hamming_loss(Y, P) == 1000 / 2**50
    assert metrics.jaccard_accuracy(Y, P) == 500 / 2**20
    assert metrics.example_f1(Y, P) == 500 / 2**20


def test_rankings_do_not_depend_on_the_size_of_blocks(monkeypatch):
    Y, P, scores = random_case(n_labels=7)
    expected = metrics.labels_report(Y, P, scores)
    for block in (1, 7 * 8, 10**6):
        monkeypatch.setattr(labels, "BLOCK", block)
        assert metrics.labels_report(Y, P, scores) == expected


PROBABILITIES = array_shapes(min_dims=2, max_dims=2, max_side=6).flatmap(
    lambda shape: st.tuples(
        arrays(np.int8, shape, elements=st.integers(0, 1)),
        arrays(np.float64, shape, elements=st.floats(0, 1)),
    )
)


def random_probabilities(seed=0, shape=(60, 12)):
    rng = np.random.default_rng(seed)
    return (rng.random(shape) < 0.25).astype(int), rng.beta(0.5, 2.0, shape)


@given(PROBABILITIES, st.integers(1, 20))
def test_metrics_of_probabilities_follow_their_definitions(tables, n_bins):
    Y, P = tables
    report = metrics.labels_report(Y, P > 0.5, probabilities=P)
    assert report["log_loss"] == pytest.approx(oracle.log_loss(Y.tolist(), P.tolist()))
    found = metrics.calibration_error(Y, P, n_bins)
    assert found == pytest.approx(oracle.calibration_error(Y.tolist(), P.tolist(), n_bins))
    assert 0 <= report["calibration_error"] <= 1
    assert 0 <= report["log_loss"] <= -np.log(1e-15) * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_log_loss_of_the_ravelled_table_is_that_of_scikit_learn(seed):
    Y, P = random_probabilities(seed)
    expected = sk.log_loss(Y.ravel(), P.ravel())
    assert labels.log_loss(sparse.csr_array(Y), P) == pytest.approx(expected, rel=1e-12)


@given(PROBABILITIES)
def test_more_bins_see_more(tables):
    Y, P = tables
    # Bins that are divided: their gaps can only stop cancelling each other.
    one, two, eight = (metrics.calibration_error(Y, P, n) for n in (1, 2, 8))
    assert one == pytest.approx(abs(Y.mean() - P.mean()))
    assert one <= two + 1e-12
    assert two <= eight + 1e-12


def test_probabilities_that_are_frequencies_are_calibrated_but_lose():
    rng = np.random.default_rng(0)
    P = rng.random((4000, 50))
    Y = rng.random(P.shape) < P
    # The share of a bin's cells has at most this standard deviation.
    assert metrics.calibration_error(Y, P) < np.sqrt(0.25 / (P.size / 15))
    assert metrics.calibration_error(Y, P**2) > 0.1
    frequencies = np.full(P.shape, Y.mean())
    assert metrics.calibration_error(Y, frequencies) == pytest.approx(0, abs=1e-12)
    assert labels.log_loss(Y, frequencies) > labels.log_loss(Y, P) + 0.1
    assert labels.log_loss(Y, P) < labels.log_loss(Y, P**2)


def test_sure_and_wrong_is_bad_but_not_infinite():
    assert labels.log_loss([[1, 0]], [[1.0, 0.0]]) == pytest.approx(1e-15, rel=0.2)
    assert labels.log_loss([[1, 0]], [[0.0, 1.0]]) == pytest.approx(-np.log(1e-15), rel=1e-3)
    assert labels.log_loss([[1]], np.ones((1, 1), np.float32)) < 2e-15
    assert metrics.calibration_error([[1, 0]], [[0, 1]]) == 1


def test_probabilities_do_not_depend_on_the_form_or_the_size_of_blocks(monkeypatch):
    Y, P = random_probabilities(shape=(60, 7))
    expected = metrics.labels_report(Y, P > 0.5, probabilities=P)
    for block in (1, 7 * 8, 10**6):
        monkeypatch.setattr(labels, "BLOCK", block)
        for form in (sparse.csr_array, pd.DataFrame, np.asfortranarray):
            found = metrics.labels_report(form(Y), P > 0.5, probabilities=P)
            assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("metric", metrics.PROBABILITY_METRICS.values())
@pytest.mark.parametrize(
    ("Y", "P", "sentence"),
    [
        (TRUE, SCORES[:, :3], r"probabilities must have the shape of Y, \(4, 4\), but"),
        (TRUE, sparse.csr_array(TRUE), "probabilities are a sparse matrix"),
        ([[1, 0]], [[1.0, 1.5]], "probability in row 0, column 1 is 1.5, not a number from 0 to 1"),
        ([[1, 0], [1, 0]], [[1, 0], [-0.1, 0]], "probability in row 1, column 0 is -0.1"),
        ([[1, 0]], [[np.nan, 0.0]], "probability in row 0, column 0 is nan"),
        ([[1, 0]], [["a", "b"]], "probabilities must be numbers, but 'a' is the first"),
        ([[1, 3]], [[1.0, 0.0]], "Y has the value 3"),
    ],
)
def test_what_are_no_probabilities_gets_a_sentence(metric, Y, P, sentence):
    with pytest.raises(ValueError, match=sentence):
        metric(Y, P)


@pytest.mark.parametrize("n_bins", [0, 1.5, "3"])
def test_bins_are_a_whole_number(n_bins):
    with pytest.raises(ValueError, match=r"n_bins=.* must be a whole number >= 1"):
        metrics.calibration_error([[1]], [[0.5]], n_bins)


@pytest.mark.parametrize("metric", metrics.LABEL_METRICS.values())
@pytest.mark.parametrize(
    ("Y", "P", "sentence"),
    [
        (TRUE, FOUND[:3], r"one shape, but theirs are \(4, 4\) and \(3, 4\)"),
        ([[0, 2]], [[0, 1]], "^Y has the value 2 in row 0, column 1"),
        ([[0, 1]], [[0, np.nan]], "^The prediction has the value nan in row 0, column 1"),
        ([[0, 1], [-1, 1]], [[0, 1], [0, 1]], "value -1 in row 1, column 0"),
        (sparse.csr_array([[0, 1], [0, 0.5]]), TRUE, "value 0.5 in row 1, column 1"),
        (sparse.coo_array(([1, 1], ([1, 1], [2, 2])), (2, 3)), TRUE, "value 2 in row 1, column 2"),
        ([["0", "1"]], [[0, 1]], "value '0' in row 0, column 0"),
        (
            pd.DataFrame({"a": [1, None]}, dtype="Int64"),
            [[0], [1]],
            "value (nan|<NA>) in row 1, column 0",
        ),
        ([1, 0], [1, 0], "Y has 1 dimension, but label sets are a table.*MultiLabelBinarizer"),
        ([[[1]]], [[1]], "Y has 3 dimensions"),
        ([["a"], ["b", "c"]], [[1]], "Y has rows of different lengths.*MultiLabelBinarizer"),
        (np.empty((0, 3)), np.empty((0, 3)), r"Y has no rows: its shape is \(0, 3\)"),
        (sparse.csr_array((2, 0)), np.empty((2, 0)), "Y has no labels"),
    ],
)
def test_what_is_not_a_pair_of_label_sets_gets_a_sentence(metric, Y, P, sentence):
    with pytest.raises(ValueError, match=sentence):
        metric(Y, P)


def test_frames_with_labels_in_different_orders_are_refused():
    Y = pd.DataFrame(TRUE, columns=list("abcd"))
    with pytest.raises(ValueError, match="column 1 is 'b' in one and 'c' in the other"):
        metrics.micro_f1(Y, Y[list("acbd")])
    assert metrics.micro_f1(Y, pd.DataFrame(TRUE)) == 1  # nameless columns


@pytest.mark.parametrize("metric", metrics.RANKING_METRICS.values())
@pytest.mark.parametrize(
    ("Y", "scores", "sentence"),
    [
        (TRUE, SCORES[:, :3], r"shape of Y, \(4, 4\), but theirs is \(4, 3\)"),
        (TRUE, sparse.csr_array(SCORES), "scores are a sparse matrix"),
        ([[1, 0]], [[1.0, np.inf]], "score in row 0, column 1 is inf, not a finite number"),
        ([[1, 0]], [[np.nan, 0.0]], "score in row 0, column 0 is nan"),
        ([[1, 0]], [["a", "b"]], "must be numbers, but 'a' is the first"),
        ([[1, 3]], [[1.0, 2.0]], "Y has the value 3"),
    ],
)
def test_what_cannot_be_ranked_gets_a_sentence(metric, Y, scores, sentence):
    with pytest.raises(ValueError, match=sentence):
        metric(Y, scores)


@pytest.mark.parametrize("metric", [metrics.precision_at_k, metrics.ndcg_at_k])
@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
def test_k_is_a_number_of_labels(metric, k):
    with pytest.raises(ValueError, match="must be a whole number >= 1"):
        metric(TRUE, SCORES, k=k)
