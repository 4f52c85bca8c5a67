"""``marginmf evaluate`` and ``compare``: errors on held-out ratings."""

import csv
import json
from pathlib import Path
from statistics import fmean, stdev

import pytest

from marginmf.cli.comparisons import ProtocolOptions
from marginmf.datasets import read_ratings
from marginmf.protocols import HoldOut, KFold, StrongGeneralisation, WeakGeneralisation, evaluate
from marginmf.ratings import BiasOnly

PROTOCOLS = {
    "weak": ["--held-out", "2"],
    "strong": ["--train-users", "20", "--min-ratings", "5"],
    "holdout": ["--test-size", "0.3"],
    "kfold": [],
}
QUICK = ["--models", "bias,mmmf", "--factors", "3", "--set", "mmmf.reg=1", "--splits", "2"]


def test_a_table_of_mean_and_deviation(run, ratings_file: Path) -> None:
    outcome = run("evaluate", ratings_file, "--model", "bias", "--splits", 2)
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].endswith(" by 30 users; columns user, item, rating.")
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
    table, model = read_ratings(ratings_file), BiasOnly(random_state=5)
    reports = evaluate(model, table.pairs, table.ratings, HoldOut(3, random_state=5))
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
        few = ["--splits", 1, "--max-iter", 20]
        outcome = run("evaluate", ratings_file, "--model", "mmmf", "--json", *few, *arguments)
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


@pytest.mark.parametrize(
    ("options", "protocol"),
    [
        (ProtocolOptions("weak", 2, held_out=3), WeakGeneralisation(2, 7, 3)),
        (ProtocolOptions("holdout", 1, test_size=0.5), HoldOut(1, 7, 0.5)),
        (ProtocolOptions("kfold", 4), KFold(4, 7)),
        (
            ProtocolOptions("strong", 1, train_users=0.5, min_ratings=4),
            StrongGeneralisation(0.5, 1, 4, 1, 7),
        ),
        (ProtocolOptions("strong", train_users=5000), StrongGeneralisation(5000, random_state=7)),
    ],
)
def test_a_protocol_gets_its_own_options(options: ProtocolOptions, protocol: object) -> None:
    assert options.make(seed=7) == protocol


def test_one_table_with_the_best_of_each_column_marked(run, ratings_file: Path) -> None:
    outcome = run("compare", ratings_file, *QUICK)
    assert (outcome.code, outcome.err) == (0, "")
    rows = [line.split() for line in outcome.out.splitlines()]
    bias, mmmf = (next(row for row in rows if row[:1] == [name]) for name in ("bias", "mmmf"))
    # Made-up ratings of two factors: a factorisation is better, averages are quicker.
    assert mmmf[1].startswith("*")
    assert not bias[1].startswith("*")
    assert bias[-3].startswith("*")
    assert bias.count("±") == mmmf.count("±") == 4
    assert mmmf[-4] == "best"
    assert outcome.out.endswith("p is that of the difference from the best MAE.\n")


@pytest.mark.parametrize(("width", "headings"), [(60, "MAE"), (100, "RMSE"), (120, "NMAE")])
def test_a_wide_terminal_has_more_columns(run, ratings_file, monkeypatch, width, headings) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run("compare", ratings_file, *QUICK).out.splitlines()
    (heading,) = (line.split() for line in lines if line.startswith(" method"))
    assert heading[-3:] == [headings, "p", "seconds"]
    assert all(len(line) <= width for line in lines[1:])


def test_json_has_every_number_and_the_best(run, ratings_file: Path) -> None:
    outcome = run("compare", ratings_file, *QUICK, "--json", "--quiet")
    assert (outcome.code, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    assert list(result["models"]) == ["bias", "mmmf"]
    assert result["best"]["mae"] == result["tested"]["best"] == "mmmf"
    assert 0 < result["tested"]["models"]["bias"]["p_value"] < 1
    assert len(result["models"]["mmmf"]["mae"]["splits"]) == 2
    assert result["out"] is None


def test_every_method_sees_the_same_splits(run, ratings_file: Path) -> None:
    alone = json.loads(run("evaluate", ratings_file, "--model", "bias", "--json").out)
    models = ["--models", "als,bias", "--set", "als.max_iter=2"]
    beside = json.loads(run("compare", ratings_file, *models, "--json").out)
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


def test_errors_without_a_meaning_are_null(run) -> None:
    rows = [f"{user},{item},{int(user == 0)}" for user in range(9) for item in range(9)]
    Path("zeros.csv").write_text("\n".join(rows))
    # The held-out ratings of users 1 to 8 are all 0 in some split, and FRE divides by them.
    arguments = ["--models", "bias", "--protocol", "holdout", "--test-size", "0.05", "--splits", 9]
    outcome = run("compare", "zeros.csv", *arguments, "--json")
    assert outcome.code == 0
    assert None in json.loads(outcome.out)["models"]["bias"]["fre"]["splits"]
