import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from marginmf.cli.demo import demo_methods, format_stars, most_varied, spread
from marginmf.datasets import DatasetUnavailable, make_ratings
from marginmf.ratings import Ratings

METHODS = [
    *("BiasOnly", "ALS with biases", "MMMF", "PMMMF", "HMF"),
    *("MMMF, raters", "MarginEnsemble"),
]

#: Small models of MovieLens, without a search for the regularisation strength.
FILMS = {"n_factors": 8, "reg": 15.0, "max_iter": 15, "n_estimators": 3}


@pytest.fixture(autouse=True)
def quick(quick_demo) -> None:
    """Fit small models."""


def test_tables_example_picture_and_closing_line(run, ratings_file: Path) -> None:
    outcome = run("demo", ratings_file)
    assert outcome.code == 0
    rows = outcome.out.splitlines()
    for method in METHODS:
        assert any(row.strip().startswith(method) for row in rows)
    assert rows[0].startswith(
        "small.csv: 375 ratings (1 to 5) of 25 items by 30 users; columns user, item,"
    )
    assert "★" in outcome.out
    assert "marginmf-demo.png" in rows[-1]
    assert rows[-1].endswith("seconds.")
    assert Path("marginmf-demo.png").read_bytes().startswith(b"\x89PNG")
    assert outcome.err == "", "bars are for terminals"


def test_json_has_every_method_with_finite_numbers(run, ratings_file: Path) -> None:
    outcome = run("demo", ratings_file, "--json", "--quiet", "--picture", "other.svg")
    assert (outcome.code, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    assert list(result["methods"]) == METHODS
    for score in result["methods"].values():
        assert sorted(score) == ["mae", "rmse", "seconds", "zero_one"]
        assert all(math.isfinite(value) and value >= 0 for value in score.values())
    assert result["data"]["origin"] == "file"
    assert result["data"]["levels"] == [1, 2, 3, 4, 5]
    assert result["split"] == {"seed": 0, "n_train": 300, "n_test": 75}
    assert result["picture"] == "other.svg"
    assert "<svg" in Path("other.svg").read_text()
    ratings = result["example"]["ratings"]
    assert result["example"]["user"].startswith("u")
    assert 1 <= len(ratings) <= 5
    assert [one["true"] for one in ratings] == sorted(
        (one["true"] for one in ratings), reverse=True
    )
    assert {one["predicted"] for one in ratings} <= {1, 2, 3, 4, 5}


def test_same_seed_same_result_whatever_the_threads(run, ratings_file: Path) -> None:
    def numbers(*arguments: object) -> object:
        result = json.loads(run("demo", ratings_file, "--json", "-q", *arguments).out)
        del result["seconds"]
        for score in result["methods"].values():
            del score["seconds"]
        return result, Path(result["picture"]).read_bytes()

    first = numbers("--seed", 3, "--threads", 1)
    assert numbers("--seed", 3, "--threads", 2) == first
    assert numbers("--seed", 4) != first


def test_without_matplotlib_it_says_so_and_goes_on(
    run, ratings_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # importing it now fails
    outcome = run("demo", ratings_file, "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["picture"] is None
    assert "pip install 'marginmf[plots]'" in outcome.err.splitlines()[-1]
    assert not list(Path().iterdir())


def test_offline_it_makes_ratings_up_and_says_so(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(*arguments: object, **named: object) -> None:
        raise DatasetUnavailable("No source has it.")

    monkeypatch.setattr("marginmf.datasets.load_ratings", unavailable)
    few = make_ratings(40, 30, random_state=0)
    monkeypatch.setattr("marginmf.datasets.make_ratings", lambda *sizes, **settings: few)
    outcome = run("demo")
    assert outcome.code == 0
    assert outcome.err.startswith("MovieLens 100K could not be downloaded, so these are made-up")
    assert outcome.out.startswith("Synthetic ratings: ")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("nan.csv", "a,x,4\na,y,nan\n", "nan.csv, line 2: the rating 'nan' is not a finite number"),
        ("words.csv", "a,x,4\nb,x,good\n", "words.csv, line 2: the rating 'good' is not a number"),
        ("empty.csv", "", "empty.csv is empty"),
        ("few.csv", "a,x,4\nb,x,3\n", "few.csv has 2 ratings, too few"),
        ("one.csv", "".join(f"a,{k},4\n" for k in range(30)), "Every rating is 4"),
        ("twice.csv", "a,x,4\na,x,3\n" * 15, "pairs occur more than once"),
    ],
)
def test_a_bad_file_is_one_line_and_2(run, name: str, content: str, message: str) -> None:
    Path(name).write_text(content)
    assert_one_line(run("demo", name), message)
    assert [path.name for path in Path().iterdir()] == [name]


def test_a_missing_file_is_one_line_and_2(run) -> None:
    assert_one_line(run("demo", "absent.csv"), "There is no file absent.csv")


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        ("absent/demo.png", "There is no folder "),
        ("demo.doc", "must end in one of .png, .svg, .pdf"),
        ("folder.png", "is a folder"),
    ],
)
def test_a_picture_that_cannot_be_written_stops_before_the_work(
    run, ratings_file: Path, monkeypatch: pytest.MonkeyPatch, picture: str, message: str
) -> None:
    def too_late(*arguments: object, **named: object) -> None:
        raise AssertionError("the ratings were read although no picture can be written")

    monkeypatch.setattr("marginmf.cli.inputs.read_demo_ratings", too_late)
    Path("folder.png").mkdir()
    assert_one_line(run("demo", ratings_file, "--picture", picture), message)
    assert [path.name for path in Path().iterdir()] == ["folder.png"]


def test_a_picture_that_fails_leaves_the_old_one(
    run, ratings_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*arguments: object, **named: object) -> None:
        raise OSError(28, "No space left on device", "demo.png")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full_disk)
    Path("demo.png").write_text("the old one")
    outcome = run("demo", ratings_file, "-q", "--picture", "demo.png")
    advice = "The disk is full: make room on it, or write elsewhere."
    assert (outcome.code, outcome.err) == (2, f"marginmf: demo.png: {advice}\n")
    assert [path.read_text() for path in Path().iterdir()] == ["the old one"]


@pytest.mark.parametrize("quick_demo", [FILMS], indirect=True)
def test_max_margin_methods_beat_averages_on_real_ratings(
    run, data_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    result = json.loads(run("demo", "--json", "-q").out)
    assert result["data"]["name"] == "ml-100k"
    errors = {name: score["mae"] for name, score in result["methods"].items()}
    assert max(errors, key=errors.get) == "BiasOnly"
    assert min(errors, key=errors.get) == "MarginEnsemble"
    assert result["methods"]["HMF"]["mae"] < 0.69
    assert all(isinstance(one["title"], str) for one in result["example"]["ratings"])


def assert_one_line(outcome, message: str) -> None:
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("marginmf: ")
    assert outcome.err.count("\n") == 1
    assert message in outcome.err


def grid(n_users: int, n_items: int) -> Ratings:
    pairs = [(user, item) for user in range(n_users) for item in range(n_items)]
    return Ratings.of(pairs, [1 + k % 5 for k in range(len(pairs))])


def test_tiny_data_get_fewer_factors() -> None:
    models = demo_methods(grid(9, 5), seed=0, n_jobs=1, progress=False)
    assert models["HMF"].n_factors == 5


@pytest.mark.parametrize(
    ("rating", "levels", "written"),
    [
        (1, [1, 2, 3, 4, 5], "★☆☆☆☆"),
        (5, [1, 5], "★★★★★"),
        (4.5, [0.5, 4.5, 5], "4.5"),
        (0, [0, 1, 2], "0"),
        (40, [1, 40, 100], "40"),
    ],
)
def test_stars_only_on_scales_of_stars(rating: float, levels: list[float], written: str) -> None:
    assert format_stars(rating, levels) == written


def test_no_stars_where_the_terminal_has_none() -> None:
    assert format_stars(4, [1, 2, 3, 4, 5], plain=True) == "4"


def test_the_example_is_the_user_of_most_levels() -> None:
    users = np.array([0, 0, 0, 0, 1, 1, 1])
    assert most_varied(users, np.array([1.0, 1, 2, 2, 1, 2, 3]), 2) == 1


def test_a_long_scale_is_shown_from_end_to_end() -> None:
    ratings = np.arange(1.0, 11.0)
    shown = ratings[spread(ratings, np.arange(10))]
    assert len(shown) == 5
    assert (shown[0], shown[-1]) == (10, 1)


def test_few_ratings_are_all_shown() -> None:
    assert spread(np.array([2.0, 5.0]), np.array([1, 1])).tolist() == [1, 0]
