"""Lists with the titles of items, from files or datasets, and reasons."""

import csv
import json
from pathlib import Path

import pytest

import marginmf
from marginmf.cli.lists import _find_title_column
from marginmf.ratings.lists.explain import contributions


@pytest.fixture
def items_file(tmp_path: Path) -> Path:
    """Titles of the items 0 to 23 of 25, one of them empty."""
    path = tmp_path / "items.csv"
    lines = [f"{item},Film {item},19{item:02d}" for item in range(24)]
    lines[7] = "7,,1907"
    path.write_text("\n".join(["movieId,title,year", *lines]) + "\n")
    return path


def test_titles_stand_beside_the_items(run, model_file: Path, items_file: Path) -> None:
    arguments = ["--user", "u1", "-n", 99, "--include-seen", "--items", items_file]
    rows = json.loads(run("recommend", model_file, *arguments, "--json").out)["recommendations"]
    assert list(rows[0])[:3] == ["user", "item", "title"]
    titles = {row["item"]: row["title"] for row in rows}
    assert titles == {item: f"Film {item}" for item in range(25)} | {7: "", 24: ""}
    shown = run("recommend", model_file, *arguments).out
    assert "Film 3 " in shown
    run("recommend", model_file, *arguments, "--out", "lists.csv")
    written = list(csv.DictReader(Path("lists.csv").read_text().splitlines()))
    assert [row["title"] for row in written] == [row["title"] for row in rows]


def test_a_narrow_terminal_keeps_titles_and_scores(
    run, model_file: Path, items_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    shown = run("recommend", model_file, "--user", "u1", "-n", 2, "--items", items_file).out
    _, heading, *_ = [line.split() for line in shown.splitlines() if line.strip()]
    assert heading == ["rank", "item", "title", "score", "rating"]


def test_similar_items_and_the_one_asked_for_have_titles(
    run, model_file: Path, items_file: Path
) -> None:
    arguments = ["similar", model_file, "--item", 3, "-n", 2, "--items", items_file]
    rows = json.loads(run(*arguments, "--json").out)["similar"]
    untitled = {7: "", 24: ""}
    for row in rows:
        assert row["title"] == untitled.get(row["similar"], f"Film {row['similar']}")
    assert run(*arguments).out.startswith("item 3: Film 3\n")
    outcome = run("similar", model_file, "--user", "u1", "--items", items_file)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("items.tsv", "item_id:token\tmovie_title:token\n3\tFilm 3\n"),
        ("items.jsonl", '{"item": 3, "name": "Film 3"}\n'),
        ("u.item", "3|Film 3|01-Jan-1995||http://x|0|1\n"),
        ("movies.dat", "3::Film 3::Drama\n"),
    ],
)
def test_files_of_titles(run, model_file: Path, tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    outcome = run("similar", model_file, "--item", 3, "-n", 1, "--items", name)
    assert outcome.out.startswith("item 3: Film 3\n"), outcome.err


def test_the_column_of_titles_can_be_named(run, model_file: Path) -> None:
    Path("i.csv").write_text("item,what,title\n3,Alien,x\n")
    arguments = ["similar", model_file, "--item", 3, "--items", "i.csv", "--title", "what"]
    assert run(*arguments).out.startswith("item 3: Alien\n")
    assert _find_title_column(["Book-Title", "title"]) == "title"
    assert _find_title_column(["userName", "name"]) == "name"


@pytest.mark.parametrize(
    ("content", "more", "message"),
    [
        ("item,year\n3,1999\n", [], "columns 'item', 'year' is known as the title; name it with"),
        ("item,year\n3,1999\n", ["--title", "t"], "columns 'item', 'year' is 't'; name it with"),
        ("what,title\n3,x\n", [], "none of the columns 'what', 'title' is known as the item's id"),
        ("item,title\nm3,x\n", [], "like 'm3', the model's like '0'"),
    ],
)
def test_titles_that_are_not_found(
    run, model_file: Path, content: str, more: list[str], message: str
) -> None:
    Path("i.csv").write_text(content)
    outcome = run("recommend", model_file, "--user", "u1", "--items", "i.csv", *more)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert message in outcome.err


def test_titles_of_a_dataset(run, model_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from marginmf.datasets import RatingsTable

    table = RatingsTable("films", [1], [3], [4], titles={3: "Alien"})
    monkeypatch.setattr("marginmf.datasets.load_ratings", lambda name, progress: table)
    outcome = run("similar", model_file, "--item", 3, "--items", "ml-100k")
    assert outcome.out.startswith("item 3: Alien\n")


def test_reasons_are_what_the_library_gives(run, model_file: Path, items_file: Path) -> None:
    arguments = ["explain", model_file, "--user", "u1", "--item", 3, "-n", 2]
    result = json.loads(run(*arguments, "--items", items_file, "--json").out)
    model = marginmf.load(model_file)
    frame, parts = model.explain("u1", 3, n=2), contributions(model, "u1", 3)
    assert [row["item"] for row in result["reasons"]] == frame["item"].tolist()
    assert [row["contribution"] for row in result["reasons"]] == frame["contribution"].tolist()
    assert (result["take"], result["like"], result["score"]) == (
        *(parts.take, parts.like, parts.score),
    )
    assert result["rating"] == model.predict([("u1", 3)])[0]
    assert result["title"] == "Film 3"
    shown = run(*arguments)
    assert shown.out.startswith("user u1, item 3\nChance to take it ")
    assert shown.out.count("\n") >= len(frame) + 4


def test_who_makes_lists_only_explains_nothing(run, ratings_file: Path) -> None:
    run("fit", ratings_file, "--model", "popular", "--out", "p.marginmf")
    outcome = run("explain", "p.marginmf", "--user", "u1", "--item", 3)
    assert outcome.code == 2
    assert "makes lists and predicts no ratings" in outcome.err
