import json
from pathlib import Path
from statistics import fmean, stdev

import pytest

from marginmf.datasets import read_ratings
from marginmf.protocols import HoldOut, evaluate
from marginmf.ratings import BiasOnly

PROTOCOLS = {
    "weak": ["--held-out", "2"],
    "strong": ["--train-users", "20", "--min-ratings", "5"],
    "holdout": ["--test-size", "0.3"],
    "kfold": [],
}


def test_a_table_of_mean_and_deviation(run, ratings_file: Path) -> None:
    outcome = run("evaluate", ratings_file, "--model", "bias", "--splits", 2)
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0] == "small.csv: 375 ratings (1 to 5) of 25 items by 30 users."
    assert lines[1] == "Protocol weak (held-out 1), 2 splits."
    (mae,) = (line.split() for line in lines if line.startswith(" MAE"))
    mean, sign, deviation, first, second = mae[1:]
    assert sign == "±"
    assert float(mean) == pytest.approx(fmean([float(first), float(second)]), abs=1e-4)
    assert float(deviation) == pytest.approx(stdev([float(first), float(second)]), abs=1e-4)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_json_for_every_protocol(run, ratings_file: Path, protocol: str) -> None:
    arguments = ["--model", "bias", "--protocol", protocol, "--splits", 2, *PROTOCOLS[protocol]]
    outcome = run("evaluate", ratings_file, "--json", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    assert result["protocol"]["name"] == protocol
    assert set(result["metrics"]) == {"mae", "zero_one", "rmse", "nmae", "fre", "seconds"}
    for metric in result["metrics"].values():
        assert len(metric["splits"]) == 2
        assert metric["mean"] == pytest.approx(fmean(metric["splits"]))


def test_the_errors_are_those_of_the_library(run, ratings_file: Path) -> None:
    arguments = ["--model", "bias", "--protocol", "holdout", "--seed", 5, "--json"]
    metrics = json.loads(run("evaluate", ratings_file, *arguments).out)["metrics"]
    table = read_ratings(ratings_file)
    reports = evaluate(BiasOnly(), table.pairs, table.ratings, HoldOut(3, random_state=5))
    for name, metric in metrics.items():
        if name != "seconds":
            assert metric["splits"] == pytest.approx([report[name] for report in reports])


def test_one_split_has_no_deviation(run, ratings_file: Path) -> None:
    arguments = ["--model", "bias", "--splits", 1]
    assert "±" not in run("evaluate", ratings_file, *arguments).out
    result = json.loads(run("evaluate", ratings_file, "--json", *arguments).out)
    assert result["metrics"]["mae"]["sd"] is None


def test_repeated_pairs_are_made_one_before_the_split(run) -> None:
    lines = [f"u{user},{item},{1 + (user + item) % 3}" for user in range(8) for item in range(6)]
    Path("twice.csv").write_text("\n".join(lines + lines))
    outcome = run("evaluate", "twice.csv", "--model", "bias", "--json", "--duplicates", "last")
    assert json.loads(outcome.out)["data"]["n_ratings"] == len(lines)


def test_a_method_is_set_up_as_told(run, ratings_file: Path) -> None:
    def mae(*arguments: object) -> float:
        outcome = run("evaluate", ratings_file, "--model", "mmmf", "--json", *arguments)
        value: float = json.loads(outcome.out)["metrics"]["mae"]["mean"]
        return value

    assert mae("--reg", 1, "--factors", 3) == mae("--set", "reg=1", "--set", "n_factors=3")
    assert mae("--reg", 1000, "--factors", 3) > mae("--reg", 1, "--factors", 3)


def test_a_dataset_by_its_name(run, data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    outcome = run("evaluate", "ml-100k", "--model", "bias", "--protocol", "holdout", "--json")
    result = json.loads(outcome.out)
    assert result["data"]["origin"] == "movielens"
    assert 0.69 < result["metrics"]["mae"]["mean"] < 0.72


def test_a_file_with_the_name_of_a_dataset_goes_first(run, ratings_file: Path) -> None:
    Path("ml-100k").write_bytes(ratings_file.read_bytes())
    result = json.loads(run("evaluate", "ml-100k", "--model", "bias", "--json").out)
    assert result["data"]["n_ratings"] == 375
