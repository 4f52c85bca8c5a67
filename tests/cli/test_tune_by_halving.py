import json
import shlex
from pathlib import Path

import pytest

import marginmf
from marginmf.cli.halving import parse_tries
from marginmf.datasets import read_ratings
from marginmf.ratings import MMMF, HalvingSearch

TRIES = ["--try", "reg=0.3,1,3,10", "--try", "factors=2,4", "--try", "loss=logistic,smooth_hinge"]


def test_the_search_is_that_of_the_library(run, ratings_file: Path) -> None:
    outcome = run("tune", ratings_file, "--model", "mmmf", *TRIES, "--json", "--quiet")
    assert (outcome.code, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    grid = {"reg": [0.3, 1, 3, 10], "n_factors": [2, 4], "loss": ["logistic", "smooth_hinge"]}
    search = HalvingSearch(MMMF(random_state=0), grid, random_state=0, refit=False)
    table = read_ratings(ratings_file)
    search.fit(table.pairs, table.ratings)
    assert result["chosen"] == search.best_params_
    assert [one["error"] for one in result["candidates"]] == [o.error for o in search.results_]
    assert result["rungs"] == [rung._asdict() for rung in search.rungs_]


def test_the_command_at_the_end_fits_with_what_was_chosen(run, ratings_file: Path) -> None:
    outcome = run("tune", ratings_file, "--model", "mmmf", *TRIES)
    assert outcome.code == 0
    assert "16 candidates took" in outcome.out
    command = shlex.split(outcome.out.splitlines()[-1].partition(": ")[2])
    assert run(*command[1:]).code == 0
    result = json.loads(run("tune", ratings_file, "-m", "mmmf", *TRIES, "--json").out)
    params = marginmf.load("mmmf.marginmf").get_params()
    assert {name: params[name] for name in result["chosen"]} == result["chosen"]


def test_a_weight_for_each_stage_and_one_that_is_given(run, ratings_file: Path) -> None:
    tried = ["--try", "reg=[1,2,2,1],[3,6,6,3]"]
    result = json.loads(run("tune", ratings_file, "--factors", 3, *tried, "--json").out)
    assert result["chosen"]["reg"] in ([1, 2, 2, 1], [3, 6, 6, 3])
    tried = ["--try", "factors=2,3", "--reg", "2"]
    result = json.loads(run("tune", ratings_file, *tried, "--json").out)
    assert "--reg 2 " in result["command"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--try", "reg"], "--try reg: write it as name=value,value"),
        (["--try", "reg="], "--try reg=: write it as name=value,value"),
        (["--try", "rank=1,2"], "hmf has no parameter 'rank'"),
        (["--try", "reg=1", "--try", "reg=2"], "--try reg is given twice"),
        (["--try", "reg=1,2", "--picture", "path.png"], "--picture draws the path of one weight"),
        (["--try", "factors=1,2"], "reg='auto' is a search of its own"),
        (["--model", "bias", "--try", "reg=1,2"], "cannot be tuned by halving"),
    ],
)
def test_what_cannot_be_tried(run, ratings_file: Path, options: list[str], message: str) -> None:
    outcome = run("tune", ratings_file, *options)
    assert outcome.code != 0
    assert message in " ".join(outcome.err.split())


def test_values_are_json_or_text() -> None:
    assert parse_tries(["bias=true,false", "a=x, y"]) == {"bias": [True, False], "a": ["x", "y"]}
