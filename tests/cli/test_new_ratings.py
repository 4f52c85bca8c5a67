"""Ratings that come after the fit: new users' lists, models of them, and updated models."""

import json
from pathlib import Path

import numpy as np
import pytest

import marginmf
from marginmf.ratings import BiasOnly

NEW = [("ann", 3, 1.0), ("ann", 5, 3.0), ("ann", 8, 2.0), ("bob", 3, 3.0), ("bob", 4, 3.0)]
PAIRS, STARS = [row[:2] for row in NEW], [row[2] for row in NEW]


@pytest.fixture
def new_file(tmp_path: Path) -> Path:
    path = tmp_path / "new.csv"
    rows = [f"{user},{item},{stars:g}" for user, item, stars in NEW]
    path.write_text("\n".join(["user,item,rating", *rows]) + "\n")
    return path


# --- fold-in --------------------------------------------------------------------------------------


def test_lists_of_new_users(run, model_file: Path, new_file: Path) -> None:
    outcome = run("fold-in", model_file, new_file, "-n", 3, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    expected = marginmf.load(model_file).fold_in(PAIRS, STARS).recommend(n=3)
    assert [row["item"] for row in result["recommendations"]] == expected["item"].tolist()
    assert (result["n_users"], result["n_ratings"], result["n_left_out"]) == (2, 5, 0)
    shown = run("fold-in", model_file, new_file).out
    assert [line for line in shown.splitlines() if line.startswith("user")] == [
        *("user ann", "user bob")
    ]
    assert " 10 " in shown


def test_a_model_of_new_users(run, model_file: Path, new_file: Path) -> None:
    outcome = run("fold-in", model_file, new_file, "--out", "new.marginmf")
    assert outcome.out.startswith("New users: 2, from 5 ratings.\nSaved to new.marginmf (")
    folded, saved = marginmf.load(model_file).fold_in(PAIRS, STARS), marginmf.load("new.marginmf")
    np.testing.assert_array_equal(saved.predict_proba(PAIRS), folded.predict_proba(PAIRS))
    again = run("fold-in", model_file, new_file, "--out", "new.marginmf")
    assert (again.code, "--force" in again.err) == (2, True)
    both = run("fold-in", model_file, new_file, "--out", "new.marginmf", "--force", "-n", 1)
    assert "Saved to" in both.out
    assert "user ann" in both.out


@pytest.mark.filterwarnings("default")
def test_ratings_of_unknown_items_are_counted(run, model_file: Path) -> None:
    Path("new.csv").write_text("user,item,rating\nann,3,1\nann,777,2\n")
    outcome = run("fold-in", model_file, "new.csv", "--json")
    assert "1 of 2 ratings are of unknown items and left out: 777" in outcome.err
    assert json.loads(outcome.out)["n_left_out"] == 1
    Path("new.csv").write_text("user,item,rating\nann,777,2\n")
    outcome = run("fold-in", model_file, "new.csv")
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert "Take them in with marginmf update --side items first" in outcome.err


def test_users_who_are_not_new_are_noted(run, model_file: Path) -> None:
    Path("new.csv").write_text("user,item,rating\nu1,3,1\nann,3,2\n")
    outcome = run("fold-in", model_file, "new.csv")
    assert "1 of these 2 users are known to the model" in outcome.err
    assert run("fold-in", model_file, "new.csv", "--quiet").err == ""


def test_repeats_and_strange_levels_are_sentences(run, model_file: Path) -> None:
    Path("new.csv").write_text("user,item,rating\nann,3,1\nann,3,2\n")
    outcome = run("fold-in", model_file, "new.csv")
    assert (outcome.code, "--duplicates last" in outcome.err) == (2, True)
    assert run("fold-in", model_file, "new.csv", "--duplicates", "last").code == 0
    Path("new.csv").write_text("user,item,rating\nann,3,99\n")
    outcome = run("fold-in", model_file, "new.csv")
    assert (outcome.code, "99 in row 0 is not on the scale" in outcome.err) == (2, True)


def test_new_users_of_a_model_of_pairs(run, ratings_file: Path) -> None:
    run("fit", ratings_file, "--model", "ease", "--positive-only", "--out", "e.marginmf")
    Path("new.csv").write_text("user,item\nann,3\nann,5\nann,3\n")
    result = json.loads(run("fold-in", "e.marginmf", "new.csv", "-n", 2, "--json").out)
    folded = marginmf.load("e.marginmf").fold_in([("ann", 3), ("ann", 5)])
    expected = folded.recommend("ann", n=2)["item"].tolist()
    assert [row["item"] for row in result["recommendations"]] == expected
    outcome = run("update", "e.marginmf", "new.csv", "--out", "f.marginmf")
    assert (outcome.code, "makes lists and predicts no ratings" in outcome.err) == (2, True)


def test_ids_are_of_the_models_type(run) -> None:
    pairs = [(f"{user}", item) for user in range(5) for item in range(4)][:-1]
    model = BiasOnly().fit(pairs, [1 + k % 3 for k in range(len(pairs))])
    model.save("text.marginmf")
    Path("new.csv").write_text("user,item,rating\n3,1,2\n77,1,2\n77,2,3\n")
    assert run("update", "text.marginmf", "new.csv", "--out", "b.marginmf").code == 0
    assert marginmf.load("b.marginmf").users_.ids.tolist() == [*"01234", "77"]


# --- update ---------------------------------------------------------------------------------------


def test_new_users_and_new_items_together(run, model_file: Path) -> None:
    rows = [*NEW, ("u1", 777, 3.0), ("u2", 777, 1.0), ("ann", 777, 2.0), ("u3", 3, 2.0)]
    lines = [f"{user},{item},{stars:g}" for user, item, stars in rows]
    Path("new.csv").write_text("\n".join(["user,item,rating", *lines]))
    outcome = run("update", model_file, "new.csv", "--out", "b.marginmf", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    assert (result["n_new_users"], result["n_new_items"]) == (2, 1)
    model = marginmf.load(model_file)
    n_before = len(model.ratings_)
    model.update_items([("u1", 777), ("u2", 777)], [3, 1])
    model.update_users([row[:2] for row in rows], [row[2] for row in rows])
    saved = marginmf.load("b.marginmf")
    pairs = [("ann", 777), ("u1", 777), ("u1", 3), ("u5", 8)]
    np.testing.assert_array_equal(saved.predict_proba(pairs), model.predict_proba(pairs))
    assert result["n_new_ratings"] == len(saved.ratings_) - n_before


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("side", ["users", "items"])
def test_one_side_alone(run, model_file: Path, side: str) -> None:
    Path("new.csv").write_text("user,item,rating\nu1,3,2\nann,3,1\nu1,777,3\n")
    outcome = run("update", model_file, "new.csv", "--side", side, "--out", "b.marginmf")
    assert "1 of 3 ratings are" in outcome.err
    model = marginmf.load(model_file)
    with pytest.warns(UserWarning, match="1 of 3 ratings"):
        getattr(model, f"update_{side}")([("u1", 3), ("ann", 3), ("u1", 777)], [2, 1, 3])
    saved = marginmf.load("b.marginmf")
    assert saved.users_.ids.tolist() == model.users_.ids.tolist()
    assert saved.items_.ids.tolist() == model.items_.ids.tolist()
    np.testing.assert_array_equal(
        saved.predict_proba([("u1", 3)]), model.predict_proba([("u1", 3)])
    )


def test_features_of_new_users(run) -> None:
    rng = np.random.default_rng(0)
    cells = [(u, i) for u in range(12) for i in range(8) if rng.random() < 0.6]
    lines = [f"{user},{item},{1 + (user % 2 + item) % 3}" for user, item in cells]
    Path("r.csv").write_text("\n".join(["user,item,rating", *lines]))
    Path("u.csv").write_text("\n".join(["user,kind", *(f"{u},{'ab'[u % 2]}" for u in range(12))]))
    settings = ["--model", "mmmf", "--factors", 2, "--reg", 1, "--users", "u.csv"]
    assert run("fit", "r.csv", *settings, "--out", "m.marginmf").code == 0
    Path("new.csv").write_text("user,item,rating\n50,3,2\n")
    Path("v.csv").write_text("user,kind\n50,a\n51,b\n")
    outcome = run("update", "m.marginmf", "new.csv", "--users", "v.csv", "--out", "n.marginmf")
    assert outcome.code == 0, outcome.err
    assert marginmf.load("n.marginmf").users_.ids.tolist()[-2:] == [50, 51]
    outcome = run(
        *("update", "m.marginmf", "new.csv", "--users", "v.csv", "--side", "items"),
        *("--out", "o.marginmf"),
    )
    assert (outcome.code, "--side items learns no users" in outcome.err) == (2, True)


def test_a_model_may_be_updated_in_its_own_file(run, model_file: Path, new_file: Path) -> None:
    Path("m.marginmf").write_bytes(model_file.read_bytes())
    outcome = run("update", "m.marginmf", new_file, "--out", "m.marginmf")
    assert (outcome.code, "--force" in outcome.err) == (2, True)
    outcome = run("update", "m.marginmf", new_file, "--out", "m.marginmf", "--force")
    assert outcome.out.startswith("New: 2 users, 0 items, 5 ratings.\nSaved to m.marginmf")
    assert len(marginmf.load("m.marginmf").users_) == 32
