"""Models of who has what on the command line."""

import json
from pathlib import Path

import pytest

import marginmf
from marginmf.ratings import POSITIVE

PLAYS = "user,item\nann,x\nann,y\nbob,x\nbob,y\ncy,x\ncy,z\nann,x\n"


@pytest.fixture
def plays(tmp_path: Path) -> Path:
    path = tmp_path / "plays.csv"
    path.write_text(PLAYS)
    return path


@pytest.fixture
def lists_file(run, plays: Path) -> Path:
    outcome = run("fit", plays, "--positive-only", "--reg", 1, "--out", "m.marginmf")
    assert outcome.code == 0, outcome.err
    return Path("m.marginmf").resolve()


def in_one_line(text: str) -> str:
    return " ".join(text.split())


def test_rows_without_ratings_all_count(run, plays: Path) -> None:
    outcome = run("fit", plays, "--positive-only", "--out", "m.marginmf")
    assert (outcome.code, outcome.err) == (0, "")
    first, second, _ = outcome.out.splitlines()
    columns = "columns user, item; every row counts as taken."
    assert first == f"plays.csv: 6 pairs of 3 items by 3 users; {columns}"
    assert second.startswith("EASE: reg ")
    model = marginmf.load("m.marginmf")
    assert len(model.taken_) == 6  # what is played again counts once


@pytest.mark.parametrize("name", POSITIVE)
def test_every_method_is_fitted_by_its_name(run, plays: Path, name: str) -> None:
    outcome = run("fit", plays, "--model", name, "--out", "m.marginmf", "--json")
    assert outcome.code == 0, outcome.err
    result = json.loads(outcome.out)
    assert (result["model"]["name"], result["data"]["n_users"]) == (name, 3)
    assert type(marginmf.load("m.marginmf")) is POSITIVE[name]


def test_a_level_says_from_which_rating_on(run, ratings_file: Path) -> None:
    arguments = ("fit", ratings_file, "--positive-only", "--out", "m.marginmf")
    outcome = run(*arguments, "--set", "level=4")
    assert outcome.code == 0, outcome.err
    assert "; those from 4 count as taken." in outcome.out.splitlines()[0]
    model = marginmf.load("m.marginmf")
    assert len(model.taken_) == (model.ratings_.values >= 4).sum() < len(model.ratings_)
    outcome = run(*arguments, "--force")
    assert "; every row counts as taken." in outcome.out
    assert len(marginmf.load("m.marginmf").taken_) == len(model.ratings_)


def test_columns_can_be_named(run, tmp_path: Path) -> None:
    Path("log.csv").write_text("when,who,what\n1,ann,x\n2,bob,y\n3,bob,x\n")
    named = ("--user", "who", "--item", "what")
    outcome = run("fit", "log.csv", "--model", "popular", *named, "--out", "m.marginmf")
    assert outcome.code == 0, outcome.err
    assert marginmf.load("m.marginmf").popularity_.tolist() == [2, 1]


def test_lists_and_similar_items(run, lists_file: Path) -> None:
    outcome = run("recommend", lists_file, "--user", "cy", "-n", 1, "--json")
    (first,) = json.loads(outcome.out)["recommendations"]
    assert (first["user"], first["item"], first["rank"]) == ("cy", "y", 1)
    table = run("recommend", lists_file, "--users", "all")
    assert (table.code, table.err) == (0, "")
    outcome = run("similar", lists_file, "--item", "x", "-n", 1, "--json")
    assert json.loads(outcome.out)["similar"][0]["similar"] == "y"
    outcome = run("similar", lists_file, "--user", "ann")
    assert outcome.code == 2
    assert "holds a model of items alone (EASE): ask with --item." in in_one_line(outcome.err)


def test_facts_of_the_model(run, lists_file: Path) -> None:
    lines = [in_one_line(line) for line in run("info", lists_file).out.splitlines()]
    assert "method EASE" in lines
    assert "learned from 6 pairs of 3 items by 3 users" in lines
    counts = json.loads(run("info", lists_file, "--json").out)["counts"]
    assert counts == {"users": 3, "items": 3, "pairs": 6}


def test_ratings_and_labels_are_not_predicted(run, lists_file: Path, plays: Path) -> None:
    outcome = run("predict", lists_file, plays)
    assert outcome.code == 2
    assert "makes lists and predicts no ratings" in in_one_line(outcome.err)
    outcome = run("labels", "predict", lists_file, plays)
    assert outcome.code == 2
    assert "makes lists and predicts no labels" in in_one_line(outcome.err)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--set", "level=4"), "is known as the rating"),
        (("--features",), "learned from pairs alone: leave --features, --users and --items out"),
        (("--checkpoint", "kept"), "EASE keeps no checkpoints"),
        (("--factors", "5"), "ease has no parameter 'n_factors'"),
        (("--model", "mmmf"), "--model mmmf learns from ratings"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_does_not_go_together_gets_a_sentence(run, plays: Path, arguments, sentence) -> None:
    outcome = run("fit", plays, "--positive-only", "--out", "m.marginmf", *arguments)
    assert outcome.code == 2
    assert sentence in in_one_line(outcome.err)
    assert not Path("m.marginmf").exists()


@pytest.fixture
def many_plays(tmp_path: Path) -> Path:
    rows = [(u, i) for u in range(20) for i in range(12) if (u + i) % 2 and (u * i) % 5]
    path = tmp_path / "many.csv"
    path.write_text("user,item\n" + "".join(f"u{u},i{i}\n" for u, i in [*rows, *rows[:5]]))
    return path


def test_lists_are_judged_without_ratings(run, many_plays: Path) -> None:
    outcome = run("compare", many_plays, "--lists", "--positive-only", "--splits", 1, "--json")
    assert outcome.code == 0
    assert sorted(json.loads(outcome.out)["models"]) == ["ease", "itemknn", "oneclass", "popular"]
    options = ["--model", "ease", "--lists", "--positive-only", "--splits", 1]
    outcome = run("evaluate", many_plays, *options)
    assert (outcome.code, "relevant if there" in outcome.out) == (0, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "ease"], "ease makes lists and predicts no ratings: add --lists."),
        (["--model", "ease", "--positive-only"], "--positive-only is for lists: add --lists."),
        (["--lists", "--positive-only", "--model", "hmf"], "hmf learns from ratings, which"),
        (["--lists", "--positive-only", "--model", "ease", "--level", 3], "--level is about"),
    ],
)
def test_what_cannot_be_judged_gets_a_sentence(run, many_plays, options, message: str) -> None:
    outcome = run("evaluate", many_plays, *options)
    assert outcome.code == 2
    assert message in outcome.err


def test_lists_of_who_has_what_are_ranked_in_one_way(run, plays: Path) -> None:
    run("fit", plays, "--positive-only", "--out", "p.marginmf")
    outcome = run("recommend", "p.marginmf", "--users", "all", "--by", "expected")
    assert (outcome.code, "ranks by its own scores" in outcome.err) == (2, True)
