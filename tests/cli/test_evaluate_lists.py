"""``evaluate --lists`` and ``compare --lists``: lists are judged, not predicted ratings."""

import csv
import json
from pathlib import Path

import pytest

from marginmf.datasets import read_ratings
from marginmf.metrics import EXPOSURE_METRICS, LIST_METRICS
from marginmf.protocols import HoldOut, ListRule, compare, evaluate
from marginmf.ratings import BiasOnly

QUICK = ["--models", "bias,mmmf", "--factors", "3", "--reg", "1", "--splits", "2", "--lists"]
FIELDS = {*LIST_METRICS, *EXPOSURE_METRICS, "seconds"}


def test_means_and_intervals_of_one_method(run, ratings_file: Path) -> None:
    outcome = run("evaluate", ratings_file, "--model", "bias", "--lists", "--splits", 2)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[1] == (
        "Protocol holdout (test-size 0.2), 2 splits; lists of 10, relevant above the mean."
    )
    (ndcg,) = (line.split() for line in lines if line.startswith(" nDCG@10"))
    mean, low, to, high, *splits = ndcg[1:]
    assert to == "to"
    assert float(low) < float(mean) < float(high)
    assert len(splits) == 2
    assert lines[-1].startswith("Means and intervals are over ")


def test_the_measures_are_those_of_the_library(run, ratings_file: Path) -> None:
    arguments = ["--lists", "--k", 5, "--level", 4, "--test-size", 0.3, "--seed", 5, "--json"]
    result = json.loads(run("evaluate", ratings_file, "--model", "bias", *arguments).out)
    assert result["protocol"]["name"] == "holdout"
    assert result["lists"] == {"k": 5, "level": 4.0, "by": None}
    assert set(result["metrics"]) == FIELDS
    table, model = read_ratings(ratings_file), BiasOnly(random_state=5)
    protocol = HoldOut(3, random_state=5, test_size=0.3)
    data = table.pairs, table.ratings, protocol
    reports = evaluate(model, *data, lists=ListRule(5, level=4))
    for name, metric in result["metrics"].items():
        if name != "seconds":
            assert metric["splits"] == pytest.approx([report[name] for report in reports])
    found = compare(table, {"bias": model}, protocol, lists=ListRule(5, level=4))
    assert result["metrics"]["ndcg"]["mean"] == pytest.approx(found.mean("bias"))
    assert (result["metrics"]["ndcg"]["low"], result["metrics"]["ndcg"]["high"]) == pytest.approx(
        found.interval("bias")
    )


@pytest.mark.parametrize(
    ("arguments", "protocol"),
    [
        ([], "weak (held-out 1), 3 splits."),
        (["--lists"], "holdout (test-size 0.2), 3 splits; lists of 10, relevant above the mean."),
        (
            ["--lists", "--protocol", "weak", "--level", "any", "--k", "3"],
            "weak (held-out 1), 3 splits; lists of 3, relevant if rated.",
        ),
    ],
)
def test_the_usual_protocol_of_lists_is_another(run, ratings_file, arguments, protocol) -> None:
    outcome = run("evaluate", ratings_file, "--model", "bias", *arguments)
    assert outcome.out.splitlines()[1] == f"Protocol {protocol}"


def test_new_users_get_lists_too(run, ratings_file: Path) -> None:
    strong = ["--protocol", "strong", "--train-users", 20, "--min-ratings", 5, "--held-out", 3]
    outcome = run("evaluate", ratings_file, "--model", "bias", "--lists", *strong, "--json")
    assert outcome.code == 0
    result = json.loads(outcome.out)
    assert 0 < result["metrics"]["recall"]["mean"] < 1
    assert 0 < result["n_users"] <= 30


def test_one_table_with_intervals_and_the_difference_from_the_best(run, ratings_file) -> None:
    outcome = run("compare", ratings_file, *QUICK, "--k", 5)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    heading = next(line.split() for line in lines if line.startswith(" method"))
    assert heading == ["method", "nDCG@5", "recall@5", "coverage", "p", "seconds"]
    rows = [line.split() for line in lines if line[:5] in (" bias", " mmmf")]
    assert sum("best" in row for row in rows) == 1
    assert sum(row[1].startswith("*") for row in rows) == 1
    assert all(row[2].startswith("[") for row in rows)
    assert lines[-1] == "p is that of the difference from the best nDCG@5."


def test_json_has_every_number_and_the_tests(run, ratings_file: Path) -> None:
    result = json.loads(run("compare", ratings_file, *QUICK, "--json", "--quiet").out)
    assert list(result["models"]) == ["bias", "mmmf"]
    assert set(result["models"]["bias"]) == FIELDS
    best = result["tested"]["best"]
    assert best == result["best"]["ndcg"]
    assert result["tested"]["models"][best] == {"difference": 0.0, "p_value": 1.0}
    (other,) = {"bias", "mmmf"} - {best}
    assert result["tested"]["models"][other]["difference"] < 0
    assert 0 < result["tested"]["models"][other]["p_value"] <= 1


@pytest.mark.parametrize("name", ["t.csv", "t.md", "t.json", "t.png"])
def test_the_table_is_kept_by_its_ending(run, ratings_file: Path, name: str) -> None:
    outcome = run("compare", ratings_file, *QUICK, "--out", name)
    assert outcome.code == 0
    assert outcome.out.endswith(f"The table is in {name}.\n")
    content = Path(name).read_bytes()
    if name.endswith("csv"):
        rows = list(csv.DictReader(content.decode().splitlines()))
        assert [row["method"] for row in rows] == ["bias", "mmmf"]
        assert {"ndcg", "ndcg_low", "ndcg_high", "difference", "p_value", "seconds"} <= set(rows[0])
        assert max(float(row["difference"]) for row in rows) == 0
    elif name.endswith("md"):
        assert content.startswith(b"| method | nDCG@10 | precision@10 | recall@10 | coverage | p |")
        assert content.count(b"**") >= 2 * 4
    elif name.endswith("json"):
        assert json.loads(content)["tested"]["metric"] == "ndcg"
    else:
        assert content.startswith(b"\x89PNG")


def test_methods_that_only_make_lists_are_known_where_lists_are_judged(run, ratings_file) -> None:
    result = run("compare", ratings_file, "--models", "bias,popular", "--lists", "--json")
    assert list(json.loads(result.out)["models"]) == ["bias", "popular"]


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_methods_that_only_make_lists_predict_no_ratings(run, ratings_file, command) -> None:
    option = {"evaluate": "--model", "compare": "--models"}[command]
    outcome = run(command, ratings_file, option, "popular")
    assert outcome.code == 2
    assert outcome.err == "marginmf: popular makes lists and predicts no ratings: add --lists.\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--k", 5], "--k is for lists: add --lists."),
        (["--level", "any"], "--level is for lists: add --lists."),
        (["--by", "expected"], "--by is for lists: add --lists."),
        (["--lists", "--level", "much"], "--level much is not a rating: give a number, or any."),
        (["--lists", "--level", "nan"], "--level nan is not a rating"),
        (["--lists", "--level", "7"], "--level 7 is not on the scale of the ratings: 1, 2, 3, 4"),
        (["--lists", "--k", "0"], "--k: '0' should be"),
        (["--lists", "--by", "odd"], "--by: 'odd' is not one of"),
    ],
)
@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_faulty_options_are_a_sentence(run, ratings_file, command, arguments, message: str) -> None:
    outcome = run(command, ratings_file, *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("\n") == 1
    assert message in outcome.err
