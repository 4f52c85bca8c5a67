"""Files of features, and those of datasets, on the command line."""

import json
import re
from pathlib import Path

import pytest

import marginmf
from marginmf.cli.fit import fit_command
from marginmf.cli.inputs import RatingsInput, add_features, read_source
from marginmf.cli.options import DataOptions, ModelOptions

QUICK = ["--model", "mmmf", "--factors", "3", "--reg", "1", "--out", "m.marginmf", "--quiet"]


@pytest.fixture
def items_file(tmp_path: Path) -> Path:
    lines = [f"{k},{'AB'[k % 2]}|C,{1990 + k},title {k}" for k in range(25)]
    path = tmp_path / "items.csv"
    path.write_text("\n".join(["item,genres,year,title", *lines]) + "\n")
    return path


@pytest.fixture
def users_file(tmp_path: Path) -> Path:
    lines = [f'{{"user": "u{k}", "gender": "{"FM"[k % 2]}"}}' for k in range(30)]
    path = tmp_path / "users.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def read(file: object, **options: object) -> RatingsInput:
    chosen = DataOptions(file=str(file), **options)  # type: ignore[arg-type]
    return add_features(read_source(chosen.file, chosen.columns, False), chosen)


def test_a_line_says_what_was_taken(ratings_file: Path, items_file: Path, users_file: Path) -> None:
    source = read(ratings_file, items_file=items_file, users_file=users_file)
    assert source.lines() == [
        "small.csv: 375 ratings (1 to 5) of 25 items by 30 users; columns user, item, rating.",
        "users.jsonl: gender (2 categories).",
        "items.csv: genres (3 categories, several a cell), year (number), title left out: every "
        "value differs.",
    ]
    assert source.summary()["user_features"] == "gender (2 categories)"
    assert list(source.features) == ["user_features", "item_features"]
    assert source.features["user_features"].ids[0] == "u0"


def test_without_options_there_are_none(ratings_file: Path) -> None:
    source = read(ratings_file)
    assert source.features == {}
    assert len(source.lines()) == 1
    assert "item_features" not in source.summary()


def test_the_ids_may_have_the_name_that_they_have_among_the_ratings(tmp_path: Path) -> None:
    ratings, items = tmp_path / "ratings.csv", tmp_path / "items.csv"
    ratings.write_text("who,what,stars\n1,a,1\n1,b,2\n2,a,3\n")
    items.write_text("what,kind\na,x\nb,x\nc,y\nd,y\n")
    named = {"user_column": "who", "item_column": "what", "rating_column": "stars"}
    source = read(ratings, items_file=items, **named)
    assert source.features["item_features"].ids.tolist() == ["a", "b", "c", "d"]


@pytest.mark.filterwarnings("ignore:Features of items have cells that are missing")
def test_a_dataset_comes_with_features(data_root: Path, monkeypatch, items_file: Path) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    assert read("ml-100k").features == {}
    assert read("ml-100k", features=True).lines()[1:] == [
        "Features of users: age (number), gender (2 categories), occupation (21 categories).",
        "Features of items: genres (19 categories, several a cell), year (number).",
    ]
    mixed = read("ml-100k", features=True, items_file=items_file)
    assert mixed.feature_titles == {
        "user_features": "Features of users",
        "item_features": "items.csv",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "name,year\n1,1\n",
            "items.csv: No column is known as the ids of items; there are 'name',",
        ),
        ("item,year\n1,1\n1,2\n", r"items.csv: The ids .* occur more than once \(1\): 1. Keep one"),
        (
            "1,2\n3,4\n",
            "items.csv: the first line, '1', '2', holds no names of columns; add a line",
        ),
        ("item,title\n1,a\n2,b\n", r"No column says anything about items: 'title' \(every value"),
    ],
)
def test_faulty_files_are_one_line(run, ratings_file: Path, text: str, message: str) -> None:
    Path("items.csv").write_text(text)
    outcome = run("fit", ratings_file, "--items", "items.csv", *QUICK)
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert "id=" not in outcome.err
    assert re.search(message, outcome.err)


def test_what_has_no_features_says_so(run, ratings_file: Path) -> None:
    outcome = run("fit", ratings_file, "--features", *QUICK)
    assert outcome.code == 2
    assert "small.csv comes without features" in outcome.err
    assert "leave --features out, or name files with --users and --items" in outcome.err
    outcome = run("fit", ratings_file, "--items", "absent.csv", *QUICK)
    assert (outcome.code, "There is no file absent.csv" in outcome.err) == (2, True)


def test_what_is_read_is_not_written_to(run, ratings_file: Path, items_file: Path) -> None:
    outcome = run(
        "fit", ratings_file, "--items", items_file, *QUICK, "--out", items_file, "--force"
    )
    assert outcome.code == 2
    assert "is read by this command" in outcome.err


def test_tune_repeats_the_options_of_features() -> None:
    data = DataOptions(file="r.csv", items_file=Path("i.csv"), users_file=Path("u.csv"))
    command = fit_command(data, ModelOptions(reg="1"), "mmmf")
    assert "--users u.csv --items i.csv" in command
    assert "--features" in fit_command(
        DataOptions(file="ml-100k", features=True), ModelOptions(reg="1"), "mmmf"
    )


def test_a_model_is_fitted_to_features(
    run, ratings_file: Path, items_file: Path, users_file: Path
) -> None:
    with items_file.open("a") as file:
        file.write("99,A|C,2001,title 99\n")  # an item without ratings
    options = ["--items", items_file, "--users", users_file]
    outcome = run("fit", ratings_file, *options, *QUICK)
    assert (outcome.code, outcome.err) == (0, "")
    assert "items.csv: genres (3 categories, several a cell)" in outcome.out
    model = marginmf.load("m.marginmf")
    assert model.ratings_.item_features.names[:3] == ("genres=A", "genres=B", "genres=C")
    assert model.items_.encode([99])[0] >= 0


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "--model", "mmmf"],
        ["compare", "--models", "mmmf,als"],
        ["tune", "--model", "mmmf", "--max-iter", "5"],
    ],
)
def test_other_commands_take_features_too(
    run, command: list[str], ratings_file: Path, items_file: Path
) -> None:
    name, *options = command
    options += ["--factors", "2"] + ([] if name == "tune" else ["--reg", "1", "--splits", "1"])
    outcome = run(name, ratings_file, *options, "--items", items_file, "--json", "--quiet")
    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads(outcome.out)["data"]["item_features"].startswith("genres (3 categories")
