import json
import re
import shlex
from pathlib import Path

import pytest

import marginmf
from marginmf.cli.options import DataOptions, ModelOptions
from marginmf.cli.tune import fit_command
from marginmf.datasets import read_ratings
from marginmf.ratings import HMF

QUICK = ["--factors", "3", "--max-iter", "20"]


def test_a_row_for_each_candidate_and_a_column_for_each_stage(run, ratings_file: Path) -> None:
    outcome = run("tune", ratings_file, *QUICK)
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert "stage 1   stage 2   stage 3   stage 4" in lines[2]
    errors = [line for line in lines if re.match(r" *[\d.]+  ", line)]
    assert len(errors) > 3
    assert sum(line.count("*") for line in errors) == 4
    (chosen,) = (line.split()[1:] for line in lines if line.split()[:1] == ["chosen"])
    assert f"--reg {','.join(chosen)} " in lines[-1]


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


def test_the_command_carries_on_what_was_said() -> None:
    data = DataOptions(file="my films.csv", user_column="who", duplicates="last")
    model = ModelOptions(7, None, 9, ["loss=logistic"], 3, 2)
    assert shlex.split(fit_command(data, model, "hmf", [6, 10.5])) == [
        *["marginmf", "fit", "my films.csv", "--model", "hmf", "--reg", "6,10.5", "--user", "who"],
        *["--duplicates", "last", "--factors", "7", "--max-iter", "9", "--set", "loss=logistic"],
        *["--seed", "3", "--threads", "2", "--out", "hmf.marginmf"],
    ]
