import json
import re
import shlex
from pathlib import Path

import pytest

import marginmf
from marginmf.cli.fit import fit_command, parse_tries
from marginmf.cli.options import TUNABLE, DataOptions, ModelOptions
from marginmf.datasets import make_ratings, read_ratings
from marginmf.ratings import HMF, METHODS, MMMF, HalvingSearch
from marginmf.ratings.factoriser import Factoriser

QUICK = ["--factors", "3", "--max-iter", "20"]
TRIES = ["--try", "reg=0.3,1,3,10", "--try", "factors=2,4", "--try", "loss=logistic,smooth_hinge"]


def test_a_row_for_each_stage(run, ratings_file: Path) -> None:
    outcome = run("tune", ratings_file, *QUICK)
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    rows = [line.split() for line in lines if re.match(r" +\d  ", line)]
    assert [row[:2] for row in rows] == [["1", "1"], ["2", "2"], ["3", "3"], ["4", "4"]]
    assert f"--reg {','.join(row[2] for row in rows)} " in lines[-1]
    paths = json.loads(run("tune", ratings_file, *QUICK, "--json").out)["paths"]
    for row, path in zip(rows, paths, strict=True):
        regs, errors = path["regs"], path["errors"]
        at = regs[max(k for k, error in enumerate(errors) if error == min(errors))]
        ends = [f"{reg:.4g}" for reg in (at, regs[0], regs[-1])]
        assert row[3:] == [f"{min(errors):.4f}", ends[0], str(len(regs)), *ends[1:]]


def test_a_row_for_each_candidate_of_the_only_path(run, ratings_file: Path) -> None:
    lines = run("tune", ratings_file, "--model", "mmmf", *QUICK).out.splitlines()
    errors = [line for line in lines if re.match(r" *[\d.]+  ", line)]
    assert len(errors) > 3
    assert sum(line.count("*") for line in errors) == 1
    (chosen,) = (line.split()[1] for line in lines if line.split()[:1] == ["chosen"])
    assert f"--reg {chosen} " in lines[-1]


def test_ten_levels_fit_a_narrow_terminal(run, monkeypatch) -> None:
    table = make_ratings(60, 40, n_factors=2, n_levels=10, observed=0.6, random_state=0)
    rows = zip(table.users, table.items, table.ratings / 2, strict=True)
    Path("halves.csv").write_text("".join(f"{u},{i},{rating:g}\n" for u, i, rating in rows))
    monkeypatch.setenv("COLUMNS", "80")
    *lines, _, then = run("tune", "halves.csv", *QUICK, "--reg", "auto").out.splitlines()
    assert all(len(line) <= 80 for line in lines[1:])
    stages = [line.split()[:2] for line in lines if re.match(r" +\d  ", line)]
    assert stages == [[str(k), f"{k / 2:g}"] for k in range(1, 10)]
    assert then.count(",") == 8


def test_the_paths_are_those_of_the_library(run, ratings_file: Path) -> None:
    outcome = run("tune", ratings_file, *QUICK, "--holdouts", 2, "--json", "--quiet")
    assert (outcome.code, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    table = read_ratings(ratings_file)
    model = HMF(3, max_iter=20, holdouts=2, random_state=0).fit(table.pairs, table.ratings)
    assert result["chosen"] == list(model.reg_)
    for path, expected in zip(result["paths"], model.reg_path_, strict=True):
        assert path["regs"] == expected.regs.tolist()
        assert path["errors"] == expected.mean.tolist()


def test_other_methods_have_one_weight(run, ratings_file: Path) -> None:
    result = json.loads(run("tune", ratings_file, "--model", "mmmf", *QUICK, "--json").out)
    assert len(result["paths"]) == len(result["chosen"]) == 1
    assert result["metric"] in run("tune", ratings_file, "--model", "mmmf", *QUICK).out


def test_the_command_at_the_end_runs(run, ratings_file: Path) -> None:
    result = json.loads(run("tune", ratings_file, *QUICK, "--json").out)
    assert run(*shlex.split(result["command"])[1:]).code == 0
    assert marginmf.load("hmf.marginmf").reg_ == pytest.approx(result["chosen"], rel=1e-3)


def test_the_path_is_drawn(run, ratings_file: Path) -> None:
    outcome = run("tune", ratings_file, *QUICK, "--picture", "path.svg")
    assert "The path is drawn in path.svg." in outcome.out
    assert "<svg" in Path("path.svg").read_text()


def test_a_name_between_dollars_is_no_mathematics(run, ratings_file: Path) -> None:
    Path("$a_{$.csv").write_bytes(ratings_file.read_bytes())
    outcome = run("tune", "$a_{$.csv", *QUICK, "--picture", "path.svg")
    assert (outcome.code, outcome.err) == (0, "")


def test_the_command_repeats_the_options() -> None:
    data = DataOptions(file="my films.csv", user_column="who", duplicates="last")
    settings = ["loss=logistic"]
    model = ModelOptions(factors=7, reg="6,10.5", max_iter=9, settings=settings, seed=3, threads=2)
    assert shlex.split(fit_command(data, model, "hmf")) == [
        *["marginmf", "fit", "my films.csv", "--model", "hmf", "--reg", "6,10.5", "--user", "who"],
        *["--duplicates", "last", "--factors", "7", "--max-iter", "9", "--set", "loss=logistic"],
        *["--seed", "3", "--threads", "2", "--out", "hmf.marginmf"],
    ]


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
        (
            ["--try", "reg=1,2", "--picture", "path.png"],
            "--picture draws the path of one",
        ),
        (["--try", "factors=1,2"], "--reg auto is a search of its own"),
        (["--model", "bias", "--try", "reg=1,2"], "--model bias: tune is for hmf, mmmf, "),
        (["--model", "svd"], "--model svd --set NAME=VALUE, or with scikit-learn's GridSearchCV"),
    ],
)
def test_what_cannot_be_tried(run, ratings_file: Path, options: list[str], message: str) -> None:
    outcome = run("tune", ratings_file, *options)
    assert outcome.code != 0
    assert message in " ".join(outcome.err.split())


def test_the_help_names_the_methods_that_can_be_tuned() -> None:
    tunable = [name for name, kind in METHODS.items() if issubclass(kind, Factoriser)]
    assert sorted(TUNABLE) == sorted(tunable)


def test_values_are_json_or_text() -> None:
    assert parse_tries(["bias=true,false", "a=x, y"]) == {"bias": [True, False], "a": ["x", "y"]}


def test_what_is_printed_is_what_was_chosen(run, ratings_file: Path) -> None:
    tried = ["--try", "factors=2,3", "--set", "reg=[1,2,2,1]"]
    outcome = run("tune", ratings_file, "--model", "hmf", *tried)
    assert outcome.code == 0, outcome.err
    assert "--reg 1,2,2,1" in outcome.out
    outcome = run("tune", ratings_file, "--model", "mmmf", "--try", "reg=12345.6,12346.7")
    assert "--reg 12345.6" in outcome.out or "--reg 12346.7" in outcome.out
