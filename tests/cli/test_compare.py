import csv
import json
from pathlib import Path

import pytest

from marginmf.cli.scores import Scores
from marginmf.cli.tables import as_markdown

QUICK = ["--models", "bias,mmmf", "--factors", "3", "--set", "mmmf.reg=1", "--splits", "2"]


def test_one_table_with_the_best_of_each_column_marked(run, ratings_file: Path) -> None:
    outcome = run("compare", ratings_file, *QUICK)
    assert (outcome.code, outcome.err) == (0, "")
    rows = [line.split() for line in outcome.out.splitlines()]
    bias, mmmf = (next(row for row in rows if row[:1] == [name]) for name in ("bias", "mmmf"))
    # Made-up ratings of two factors: a factorisation is better, averages are quicker.
    assert mmmf[1].startswith("*")
    assert not bias[1].startswith("*")
    assert bias[-3].startswith("*")
    assert bias.count("±") == mmmf.count("±") == 5


def test_json_has_every_number_and_the_best(run, ratings_file: Path) -> None:
    outcome = run("compare", ratings_file, *QUICK, "--json", "--quiet")
    assert (outcome.code, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    assert list(result["models"]) == ["bias", "mmmf"]
    assert result["best"]["mae"] == "mmmf"
    assert len(result["models"]["mmmf"]["mae"]["splits"]) == 2
    assert result["out"] is None


def test_every_method_sees_the_same_splits(run, ratings_file: Path) -> None:
    alone = json.loads(run("evaluate", ratings_file, "--model", "bias", "--json").out)
    beside = json.loads(run("compare", ratings_file, "--models", "als,bias", "--json").out)
    assert beside["models"]["bias"]["mae"] == alone["metrics"]["mae"]


@pytest.mark.parametrize("name", ["table.csv", "table.md", "table.json", "table.png", "table.SVG"])
def test_the_table_is_kept_by_its_ending(run, ratings_file: Path, name: str) -> None:
    outcome = run("compare", ratings_file, *QUICK, "--out", name)
    assert outcome.code == 0
    assert outcome.out.endswith(f"The table is in {name}.\n")
    assert [path.name for path in Path().iterdir()] == [name]
    content = Path(name).read_bytes()
    if name.endswith("csv"):
        rows = list(csv.DictReader(content.decode().splitlines()))
        assert [row["method"] for row in rows] == ["bias", "mmmf"]
        assert float(rows[1]["mae"]) < float(rows[0]["mae"])
        assert all(float(row["mae_sd"]) >= 0 for row in rows)
    elif name.endswith("md"):
        assert content.startswith(b"| method | MAE |")
        assert content.count(b"**") >= 2 * 5
    elif name.endswith("json"):
        assert list(json.loads(content)["models"]) == ["bias", "mmmf"]
    else:
        assert content.startswith(b"\x89PNG") or b"<svg" in content


def test_equal_to_the_eye_is_equally_best() -> None:
    scores = {"a": Scores({"mae": [0.70001]}), "b": Scores({"mae": [0.70002]})}
    assert as_markdown(scores, ("mae",)).count("**0.7000**") == 2


def test_errors_without_a_meaning_are_null(run) -> None:
    rows = [f"{user},{item},{int(user == 0)}" for user in range(9) for item in range(9)]
    Path("zeros.csv").write_text("\n".join(rows))
    # The held-out ratings of users 1 to 8 are all 0 in some split, and FRE divides by them.
    arguments = ["--models", "bias", "--protocol", "holdout", "--test-size", "0.05", "--splits", 9]
    outcome = run("compare", "zeros.csv", *arguments, "--json")
    assert outcome.code == 0
    assert None in json.loads(outcome.out)["models"]["bias"]["fre"]["splits"]
