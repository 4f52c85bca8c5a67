"""``marginmf labels tune`` and ``labels info``."""

import json
import shlex
from pathlib import Path

import pytest
from labels_inputs import as_csv, songs

import marginmf
from marginmf.labels import PLST, DecisionTuned, MLkNN, Scaled

TRIES = ("--try", "reg=0.01,1,100", "--try", "n_factors=1,2")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "songs.csv"
    path.write_text(as_csv(songs()))
    return path


def test_the_values_are_those_of_the_library(run, file: Path) -> None:
    outcome = run(*("labels", "tune", file, "--labels", 3, "-m", "plst", *TRIES), "--json", "-q")
    assert (outcome.code, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    grid = {"estimator__reg": [0.01, 1, 100], "estimator__n_factors": [1, 2]}
    data = songs()
    tuned = DecisionTuned(Scaled(PLST()), grid).fit(data.X, data.Y)
    assert sorted(one["value"] for one in result["candidates"]) == sorted(tuned.cv_values_)
    chosen = {f"estimator__{name}": value for name, value in result["chosen"].items()}
    assert chosen == tuned.best_params_
    assert result["candidates"][0]["params"] == result["chosen"]


@pytest.mark.parametrize(
    ("given", "judged"),
    [("auto", "auto"), ("jaccard", "jaccard"), ("per-label", "global"), ("sign", "global")],
)
def test_candidates_are_judged_by_the_rule_that_will_be_followed(
    run, file: Path, given: str, judged: str
) -> None:
    words = ("labels", "tune", file, "--labels", 3, "-m", "plst", "--try", "reg=0.01,100", "--top1")
    result = json.loads(run(*words, "--decision", given, "--json", "-q").out)
    data = songs()
    rule = {"decision": judged, "top1_if_empty": True}
    tuned = DecisionTuned(Scaled(PLST()), {"estimator__reg": [0.01, 100]}, **rule)
    tuned.fit(data.X, data.Y)
    values = {one["params"]["reg"]: one["value"] for one in result["candidates"]}
    assert values == dict(zip([0.01, 100], tuned.cv_values_, strict=True))
    assert (f"--decision {given}" in result["command"]) == (given != "auto")


def test_hamming_is_a_loss_and_the_smallest_is_the_best(run, file: Path) -> None:
    words = ("labels", "tune", file, "--labels", 3, "-m", "mlknn", "--try", "n_neighbors=2,5,20")
    settings = ("--tune-for", "hamming", "--scale", "none", "--cv", 4, "--json")
    result = json.loads(run(*words, *settings).out)
    losses = [one["value"] for one in result["candidates"]]
    assert losses == sorted(losses)
    data = songs()
    grid = {"n_neighbors": [result["chosen"]["n_neighbors"]]}
    tuned = DecisionTuned(MLkNN(), grid, tune_for="hamming", cv=4).fit(data.X, data.Y)
    assert losses[0] == pytest.approx(-tuned.cv_values_[0] / data.Y.toarray().size)


def test_the_command_at_the_end_fits_with_the_chosen(run, file: Path) -> None:
    words = ("labels", "tune", file, "--labels", "tag_*", "-m", "plst", *TRIES, "--top1")
    outcome = run(*words)
    *_, took, last = outcome.out.splitlines()
    assert took.startswith("6 candidates on 3 folds took ")
    then = shlex.split(last.removeprefix("Fit with the chosen: "))
    assert run(*then[1:]).code == 0
    model = marginmf.load("plst.marginmf")
    assert model.top1_if_empty
    result = json.loads(run(*words, "--json").out)
    assert result["command"] == shlex.join(then)
    inside = model.estimator.get_params()
    assert {name: inside[name] for name in result["chosen"]} == result["chosen"]


def test_the_best_comes_first_and_is_marked(run, file: Path) -> None:
    outcome = run("labels", "tune", file, "--labels", 3, "-m", "plst", *TRIES)
    rows = [line.split() for line in outcome.out.splitlines() if line.startswith(" ")][1:]
    values = [row[-1] for row in rows if row and row[0][0].isdigit()]
    assert len(values) == 6
    assert values[0].startswith("*")
    assert [float(value.strip("*")) for value in values] == sorted(
        (float(value.strip("*")) for value in values), reverse=True
    )


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "--try: name what to try; the parameters of plst are n_factors, reg."),
        (["--try", "lost=1"], "--try: plst has no 'lost'; the parameters of plst are n_factors"),
        (["--try", "cv=2,3"], "--try: plst has no 'cv'"),
        (["--try", "reg"], "--try reg: write it as name=value,value"),
        (["--try", "reg=-1"], "reg=-1 must be a number >= 0"),
        (["--try", "reg=1", "--cv", "900"], "songs.csv has 80 rows, too few for 900 folds"),
    ],
)
def test_what_cannot_be_tried(run, file: Path, more: list[str], message: str) -> None:
    outcome = run("labels", "tune", file, "--labels", 3, "--model", "plst", *more)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_info_of_a_model_is_the_same_in_both_groups(run, tmp_path: Path) -> None:
    data = songs()
    PLST().fit(data.X, data.Y).save(tmp_path / "l.marginmf")
    outcome = run("labels", "info", "l.marginmf")
    assert "80 rows, 5 features, 3 labels" in outcome.out
    assert outcome == run("info", "l.marginmf")


def test_info_of_a_file_counts_labels(run, file: Path) -> None:
    facts = json.loads(run("labels", "info", file, "--labels", "tag_*", "--json").out)
    times = songs().Y.toarray().sum(axis=0).tolist()
    assert facts["kind"] == "labels"
    assert sorted(facts["most_frequent"].values()) == sorted(times)
    assert facts["rows_a_label"]["most"] == max(times)
    shown = run("labels", "info", file, "--labels", "tag_*").out
    assert "80, " in shown
    assert "5, dense" in shown
    assert f"{max(times)} ({max(times) / 80:.1%})" in shown
