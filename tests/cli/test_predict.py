import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import marginmf
from marginmf.datasets import read_ratings


@pytest.fixture
def pairs_file(ratings_file: Path, tmp_path: Path) -> Path:
    """The pairs of the ratings, and three that the model cannot know in full."""
    table = read_ratings(ratings_file)
    rows = [f"{user},{item}" for user, item in zip(table.users, table.items, strict=True)]
    path = tmp_path / "pairs.csv"
    path.write_text("\n".join(["user,item", *rows, "stranger,3", "u1,999", "stranger,999"]) + "\n")
    return path


def expected(model_file: Path, pairs_file: Path) -> np.ndarray:
    rows = [line.split(",") for line in pairs_file.read_text().splitlines()[1:]]
    pairs = [(user, int(item)) for user, item in rows]
    return marginmf.load(model_file).predict(pairs)


def test_csv_on_standard_output(run, model_file: Path, pairs_file: Path) -> None:
    outcome = run("predict", model_file, pairs_file)
    assert outcome.code == 0
    header, *rows = outcome.out.splitlines()
    assert header == "user,item,rating"
    assert [row.rpartition(",")[0] for row in rows] == pairs_file.read_text().splitlines()[1:]
    predicted = [float(row.rpartition(",")[2]) for row in rows]
    assert predicted == expected(model_file, pairs_file).tolist()
    assert outcome.err == (
        "3 of 378 pairs have a user or an item that training did not see; they are predicted from "
        "the frequencies of levels.\n"
    )


def test_batches_make_the_same_as_the_whole(
    run, model_file: Path, pairs_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run("predict", model_file, pairs_file).out
    monkeypatch.setattr("marginmf.cli.predict.BATCH_PAIRS", 7)
    assert run("predict", model_file, pairs_file).out == whole


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.jsonl.gz", "p.parquet", "p.feather"])
def test_a_file_by_its_ending(run, model_file: Path, pairs_file: Path, name: str) -> None:
    outcome = run("predict", model_file, pairs_file, "--out", name)
    assert (outcome.code, outcome.out) == (0, f"378 predictions are in {name}.\n")
    table = read_ratings(name)
    assert table.ratings.tolist() == expected(model_file, pairs_file).tolist()


def test_json(run, model_file: Path, pairs_file: Path) -> None:
    outcome = run("predict", model_file, pairs_file, "--json", "-q")
    assert (outcome.code, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    assert (result["n_pairs"], result["n_unknown"]) == (378, 3)
    assert sorted(result["predictions"][0]) == ["item", "rating", "user"]
    written = run("predict", model_file, pairs_file, "--json", "-q", "--out", "p.csv")
    assert json.loads(written.out)["out"] == "p.csv"


def test_unknown_pairs_may_be_left_empty(run, model_file: Path, pairs_file: Path) -> None:
    outcome = run("predict", model_file, pairs_file, "--unknown", "nan")
    rows = outcome.out.splitlines()[-3:]
    assert rows == ["stranger,3,", "u1,999,", "stranger,999,"]
    assert outcome.err.endswith("they are left empty.\n")


def test_numbers_that_were_text_in_training_are_found(run) -> None:
    # One name in the training file makes its whole column text; the pairs hold numbers only.
    rows = [f"{u},{i},{1 + (u + i) % 3}" for u in range(6) for i in range(6)]
    Path("r.csv").write_text("\n".join([*rows, "ann,x,2"]))
    run("fit", "r.csv", "--model", "bias", "--out", "b.marginmf")
    Path("pairs.csv").write_text("user,item\n1,2\n3,4\n")
    outcome = run("predict", "b.marginmf", "pairs.csv", "--unknown", "raise")
    assert (outcome.code, outcome.err) == (0, "")


def test_names_beside_numbers_do_not_hide_the_numbers(run) -> None:
    rows = [f"{u},{i},{1 + (u + i) % 3}" for u in range(6) for i in range(6)]
    Path("r.csv").write_text("\n".join(rows))
    run("fit", "r.csv", "--model", "bias", "--out", "b.marginmf")
    Path("pairs.csv").write_text("user,item\n1,2\nann,4\n")
    assert json.loads(run("predict", "b.marginmf", "pairs.csv", "--json").out)["n_unknown"] == 1


@pytest.mark.parametrize("answer", ["median", "mode", "mean", "rule"])
def test_another_answer(run, model_file: Path, pairs_file: Path, answer: str) -> None:
    arguments = ["--answer", answer, "--json", "--quiet"]
    rows = json.loads(run("predict", model_file, pairs_file, *arguments).out)["predictions"]
    pairs = [(row["user"], row["item"]) for row in rows]
    expected = marginmf.load(model_file).predict(pairs, output=answer)
    assert [row["rating"] for row in rows] == expected.tolist()


def test_probabilities_of_every_level(run, model_file: Path, pairs_file: Path) -> None:
    arguments = ["--proba", "--unknown", "nan"]
    header, first, *_, last = run("predict", model_file, pairs_file, *arguments).out.splitlines()
    assert header == "user,item,rating,p_1,p_2,p_3,p_4,p_5"
    shares = list(map(float, first.split(",")[3:]))
    assert sum(shares) == pytest.approx(1)
    assert min(shares) >= 0
    assert last == "stranger,999,,,,,,"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_read_once(run, model_file: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pairs"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("user,item\nu1,3\nu2,4\n"))
    writer.start()
    outcome = run("predict", model_file, pipe, "--unknown", "raise")
    writer.join()
    assert outcome.code == 0, outcome.err
    assert len(outcome.out.splitlines()) == 3
