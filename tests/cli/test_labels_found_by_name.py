"""What is learned from one file and asked of another meets by name, or is refused."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from labels_inputs import FEATURES, TAGS, songs

import marginmf
from marginmf.labels import PLST

TABLE = songs()
X, Y = TABLE.X, TABLE.Y.toarray()


def svmlight(rows: np.ndarray, labels: np.ndarray | None, base: int) -> str:
    lines = []
    for place, row in enumerate(rows.tolist()):
        names = "" if labels is None else ",".join(map(str, np.flatnonzero(labels[place]) + base))
        pairs = " ".join(f"{k}:{value!r}" for k, value in enumerate(row, base) if value)
        lines.append(f"{names} {pairs}".rstrip())
    return "\n".join(lines) + "\n"


def fitted(run, file: str, *options: str):
    outcome = run("labels", "fit", file, "--model", "plst", "--out", "m.marginmf", *options)
    assert outcome.code == 0, outcome.err
    model = marginmf.load("m.marginmf")
    del model.feature_names_in_
    return model


def predicted(run, file: str, *options: str) -> np.ndarray:
    outcome = run("labels", "predict", "m.marginmf", file, "--as", "table", *options)
    assert outcome.code == 0, outcome.err
    return np.array([row[1:] for row in list(csv.reader(outcome.out.splitlines()))[1:]], dtype=int)


def dense(labels) -> np.ndarray:
    return labels.toarray() if hasattr(labels, "toarray") else labels


@pytest.mark.parametrize("base", [0, 1])
def test_svmlight_rows_that_do_not_name_the_first_feature_are_not_moved(run, base: int) -> None:
    Path("train.svm").write_text(svmlight(X, Y, base))
    model = fitted(run, "train.svm")
    rows = X.copy()
    rows[:, [0, 4]] = 0  # neither the first nor the last feature is named
    Path("test.svm").write_text(svmlight(rows, None, base))
    np.testing.assert_array_equal(predicted(run, "test.svm"), dense(model.predict(rows)))
    sized = svmlight(rows, None, 0)
    if base == 0:
        Path("test.svm").write_text(f"{len(rows)} 4 3\n{sized}")
        np.testing.assert_array_equal(predicted(run, "test.svm"), dense(model.predict(rows)))


def test_svmlight_features_of_another_file_are_refused_and_can_be_left_out(run) -> None:
    Path("train.svm").write_text(svmlight(X, Y, 0))
    model = fitted(run, "train.svm")
    Path("test.svm").write_text(svmlight(np.hstack([X, X[:, :1]]), None, 0))
    outcome = run("labels", "predict", "m.marginmf", "test.svm")
    assert outcome.code == 2
    assert "test.svm, line 1: the feature 5 is none of the 5 features 0 to 4" in outcome.err
    found = predicted(run, "test.svm", "--ignore", "5")
    np.testing.assert_array_equal(found, dense(model.predict(X)))


def test_svmlight_features_that_the_fit_left_out_stay_out(run) -> None:
    Path("train.svm").write_text(svmlight(X, Y, 1))
    model = fitted(run, "train.svm", "--ignore", "2")
    expected = dense(model.predict(X[:, [0, 2, 3, 4]]))
    np.testing.assert_array_equal(predicted(run, "train.svm"), expected)


def test_blank_lines_of_svmlight_have_their_rows(run) -> None:
    Path("train.svm").write_text(svmlight(X, Y, 1))
    model = fitted(run, "train.svm")
    rows = X[:6].copy()
    rows[[0, 3]] = 0
    Path("test.svm").write_text(svmlight(rows, None, 1))
    assert Path("test.svm").read_text().startswith("\n")
    np.testing.assert_array_equal(predicted(run, "test.svm"), dense(model.predict(rows)))


def test_a_model_of_svmlight_reads_columns_that_are_called_by_the_numbers(run) -> None:
    Path("train.svm").write_text(svmlight(X, Y, 1))
    model = fitted(run, "train.svm")
    pd.DataFrame(X, columns=range(1, 6)).to_csv("test.csv", index=False)
    np.testing.assert_array_equal(predicted(run, "test.csv"), dense(model.predict(X)))


def test_arrays_that_pandas_wrote_are_read_with_and_without_their_index(run) -> None:
    frame = pd.DataFrame(np.hstack([X, Y]))
    frame.to_csv("train.csv", index=False)
    frame.to_csv("index.csv")
    frame.set_index(pd.RangeIndex(5, 85)).rename(columns=str).to_parquet("rows.parquet", index=True)
    model = fitted(run, "train.csv", "--labels", "3")
    assert model.classes_.tolist() == ["5", "6", "7"]
    for name in ("train.csv", "index.csv", "rows.parquet"):
        np.testing.assert_array_equal(predicted(run, name), dense(model.predict(X)))
        assert len(fitted(run, name, "--labels", "3", "--force").classes_) == 3
        assert json.loads(run("info", "m.marginmf", "--json").out)["counts"]["features"] == 5


def test_equal_names_are_never_taken_for_one_another(run) -> None:
    names = ["tempo", "tempo", *FEATURES[2:]]
    text = pd.DataFrame(X, columns=names).to_csv(index=False)
    Path("test.csv").write_text(text)
    frame = pd.DataFrame(np.hstack([X, Y]), columns=[*FEATURES, *TAGS])
    frame.to_csv("train.csv", index=False)
    fitted(run, "train.csv", "--labels", "tag_*")
    outcome = run("labels", "predict", "m.marginmf", "test.csv")
    assert outcome.code == 2
    assert "the columns 1 and 2 are both called 'tempo'" in outcome.err
    # A model that was fitted elsewhere may have such names, but no file can.
    model = PLST(decision="sign").fit(X, Y)
    model.feature_names_in_ = np.array(names, dtype=object)
    model.save("m.marginmf")
    outcome = run("labels", "predict", "m.marginmf", "train.csv")
    assert outcome.code == 2
    assert "learned from several features called 'tempo'" in outcome.err
    Path("bare.csv").write_text(text.partition("\n")[2])
    del model.feature_names_in_
    np.testing.assert_array_equal(predicted(run, "bare.csv"), dense(model.predict(X)))


def test_a_year_may_be_a_label(run) -> None:
    frame = pd.DataFrame(np.hstack([X, Y]), columns=[*FEATURES, "2010", "2011", "a, b"])
    frame.to_csv("train.csv", index=False)
    assert fitted(run, "train.csv", "--labels", "2011").classes_.tolist() == ["2011"]
    model = fitted(run, "train.csv", "--labels", '2010, "a, b"', "--force")
    assert model.classes_.tolist() == ["2010", "a, b"]
