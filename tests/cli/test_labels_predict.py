import csv
import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from labels_inputs import FEATURES, TAGS, as_csv, as_svmlight, songs

import marginmf
from marginmf.cli.estimators import set_names
from marginmf.labels import PLST, Scaled

TABLE = songs()


@pytest.fixture(scope="module")
def model_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    model = Scaled(PLST(n_factors=2)).fit(TABLE.X, TABLE.Y)
    set_names(model, TABLE)
    path = tmp_path_factory.mktemp("labels") / "m.marginmf"
    model.save(path)
    return path.read_bytes()


@pytest.fixture(autouse=True)
def files(tmp_path: Path, model_bytes: bytes) -> None:
    (tmp_path / "m.marginmf").write_bytes(model_bytes)
    (tmp_path / "songs.csv").write_text(as_csv(TABLE))


@pytest.fixture
def expected(model_bytes: bytes, tmp_path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The labels and scores that the library gives."""
    model = marginmf.load(tmp_path / "m.marginmf")
    del model.feature_names_in_
    return model.predict(TABLE.X).toarray(), model.decision_function(TABLE.X)


def named(sets: np.ndarray) -> list[str]:
    return [";".join(TAGS[k] for k in np.flatnonzero(row)) for row in sets]


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_the_names_of_the_labels_of_every_row(run, expected) -> None:
    outcome = run("labels", "predict", "m.marginmf", "songs.csv")
    assert (outcome.code, outcome.err) == (0, "")
    rows = rows_of(outcome.out)
    assert [row["row"] for row in rows] == [str(k) for k in range(1, 81)]
    assert [row["labels"] for row in rows] == named(expected[0])


def test_a_table_with_a_column_a_label_and_scores(run, expected) -> None:
    rows = rows_of(run("labels", "predict", "m.marginmf", "songs.csv", "--as", "table").out)
    assert [[int(row[tag]) for tag in TAGS] for row in rows] == expected[0].tolist()
    outcome = run("labels", "predict", "m.marginmf", "songs.csv", "--scores")
    found = [[float(row[f"score:{tag}"]) for tag in TAGS] for row in rows_of(outcome.out)]
    np.testing.assert_array_equal(found, expected[1])


def test_the_best_labels_of_every_row(run, expected) -> None:
    rows = rows_of(run("labels", "predict", "m.marginmf", "songs.csv", "--top", 2).out)
    assert len(rows) == 160
    best = np.argsort(-expected[1], axis=1)[:, :2]
    assert [row["label"] for row in rows] == [TAGS[k] for k in best.ravel()]
    assert [row["rank"] for row in rows[:2]] == ["1", "2"]
    # No more than there are.
    assert len(rows_of(run("labels", "predict", "m.marginmf", "songs.csv", "--top", 9).out)) == 240


def test_json_lists_names(run, expected) -> None:
    outcome = run("labels", "predict", "m.marginmf", "songs.csv", "--json", "--scores")
    result = json.loads(outcome.out)
    assert result["n_rows"] == 80
    assert [";".join(row["labels"]) for row in result["predictions"]] == named(expected[0])
    assert list(result["predictions"][0]["scores"]) == list(TAGS)
    table = json.loads(
        run("labels", "predict", "m.marginmf", "songs.csv", "--json", "--as", "table").out
    )
    assert table["predictions"][0]["labels"][TAGS[0]] == int(expected[0][0, 0])
    top = json.loads(run("labels", "predict", "m.marginmf", "songs.csv", "--json", "--top", 1).out)
    assert set(top["predictions"][0]) == {"row", "rank", "label", "score"}


@pytest.mark.parametrize("name", ["p.csv", "p.tsv.gz", "p.jsonl", "p.parquet", "p.npz"])
def test_a_file_of_the_kind_that_its_name_says(run, expected, name: str) -> None:
    outcome = run("labels", "predict", "m.marginmf", "songs.csv", "--out", name)
    assert (outcome.code, outcome.out) == (0, f"The labels of 80 rows are in {name}.\n")
    if name.endswith("parquet"):
        found = pyarrow.parquet.read_table(name).column("labels").to_pylist()
        assert found == named(expected[0])
    if name.endswith("npz"):
        with np.load(name, allow_pickle=False) as arrays:
            assert arrays["label_names"].tolist() == list(TAGS)
            assert arrays["Y_shape"].tolist() == [80, 3]
            assert arrays["Y_indices"].tolist() == np.nonzero(expected[0])[1].tolist()


def test_features_are_found_by_name(run, expected) -> None:
    Path("turned.csv").write_text(as_csv(TABLE, labels=False, order=(4, 2, 0, 1, 3)))
    rows = rows_of(run("labels", "predict", "m.marginmf", "turned.csv").out)
    assert [row["labels"] for row in rows] == named(expected[0])


def test_columns_more_than_needed_do_no_harm(run, expected) -> None:
    text = as_csv(TABLE).splitlines()
    more = [f"id,{text[0]},year", *(f"song {k},{line},1999" for k, line in enumerate(text[1:]))]
    Path("more.csv").write_text("\n".join(more) + "\n")
    outcome = run("labels", "predict", "m.marginmf", "more.csv", "--ignore", "id")
    assert [row["labels"] for row in rows_of(outcome.out)] == named(expected[0])


def test_labels_that_are_not_known_yet_are_not_looked_at(run, expected) -> None:
    text = as_csv(TABLE, labels=False).splitlines()
    unknown = [f"{text[0]},{','.join(TAGS)}", *(f"{line},,?,soon" for line in text[1:])]
    Path("unknown.csv").write_text("\n".join(unknown) + "\n")
    outcome = run("labels", "predict", "m.marginmf", "unknown.csv")
    assert [row["labels"] for row in rows_of(outcome.out)] == named(expected[0])


def test_other_kinds_of_files_and_text_without_names_are_read(run, expected) -> None:
    Path("songs.svm").write_text(as_svmlight(TABLE))
    Path("bare.csv").write_text(as_csv(TABLE, labels=False).partition("\n")[2])
    np.savez("songs.npz", X=TABLE.X)
    for name in ("songs.svm", "bare.csv", "songs.npz"):
        rows = rows_of(run("labels", "predict", "m.marginmf", name).out)
        assert [row["labels"] for row in rows] == named(expected[0])


def test_what_is_written_through_a_link_leaves_the_link(run, expected) -> None:
    for name in ("p.csv", "p.npz"):
        Path(f"real-{name}").write_text("old")
        Path(name).symlink_to(f"real-{name}")
        assert run("labels", "predict", "m.marginmf", "songs.csv", "--out", name).code == 0
        assert Path(name).is_symlink()
        assert Path(f"real-{name}").read_bytes() != b"old"


@pytest.mark.parametrize("names", [("row", "tag_sad", "score:row"), ("x", "x", "x (2)")])
def test_no_column_is_lost_whatever_labels_are_called(run, expected, names) -> None:
    model = marginmf.load("m.marginmf")
    set_names(model, replace(TABLE, label_names=names))
    model.save("odd.marginmf")
    asked = ("labels", "predict", "odd.marginmf", "songs.csv", "--as", "table", "--scores")
    outcome = run(*asked)
    header, *rows = csv.reader(outcome.out.splitlines())
    assert len(set(header)) == len(header) == 7
    values = np.array(rows, dtype=float)
    np.testing.assert_array_equal(values[:, 0], np.arange(1, 81))
    np.testing.assert_array_equal(values[:, 1:4], expected[0])
    np.testing.assert_array_equal(values[:, 4:], expected[1])
    first = json.loads(run(*asked, "--json").out)["predictions"][0]
    assert list(first["labels"].values()) == expected[0][0].tolist()
    assert list(first["scores"].values()) == expected[1][0].tolist()


def test_columns_to_leave_out_may_have_blanks_and_commas(run, expected) -> None:
    text = as_csv(TABLE).splitlines()
    more = ['id,"year, about",' + text[0], *(f"{k},soon,{line}" for k, line in enumerate(text[1:]))]
    Path("more.csv").write_text("\n".join(more) + "\n")
    left_out = 'id, "year, about"'
    outcome = run("labels", "predict", "m.marginmf", "more.csv", "--ignore", left_out)
    assert [row["labels"] for row in rows_of(outcome.out)] == named(expected[0])


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_loses_no_letter_whatever_the_encoding(run, monkeypatch, encoding: str) -> None:
    names = ("café", "音", "b")
    model = marginmf.load("m.marginmf")
    set_names(model, replace(TABLE, label_names=names))
    model.save("letters.marginmf")
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding=encoding, errors="replace")
    monkeypatch.setattr(sys, "stdout", stream)
    run("labels", "predict", "letters.marginmf", "songs.csv", "--json", "--as", "table")
    stream.flush()
    first = json.loads(written.getvalue())["predictions"][0]
    assert tuple(first["labels"]) == names
    assert ("音".encode() in written.getvalue()) is (encoding == "utf-8")


def test_rows_are_predicted_some_at_a_time(run, expected, monkeypatch) -> None:
    monkeypatch.setattr("marginmf.cli.predict.BATCH_SCORES", 100)
    rows = rows_of(run("labels", "predict", "m.marginmf", "songs.csv").out)
    assert [row["row"] for row in rows] == [str(k) for k in range(1, 81)]
    assert [row["labels"] for row in rows] == named(expected[0])


def test_a_model_without_names_counts_labels(run) -> None:
    PLST(decision="sign").fit(TABLE.X, TABLE.Y).save("plain.marginmf")
    Path("bare.csv").write_text(as_csv(TABLE, labels=False))
    outcome = run("labels", "predict", "plain.marginmf", "bare.csv", "--as", "table")
    assert outcome.out.startswith("row,0,1,2\n")
    assert len(FEATURES) == 5
