"""``evaluate`` and ``compare``: protocols in time, other answers than the median, all methods."""

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from labels_inputs import as_csv, songs

from marginmf.cli.comparisons import ProtocolOptions
from marginmf.cli.options import LABEL_METHODS, METHODS, POSITIVE
from marginmf.datasets import read_ratings
from marginmf.protocols import HoldOut, ListRule, TimeSplit, evaluate
from marginmf.ratings import MMMF, BiasOnly, MostPopular

QUICK = ["--factors", 3, "--reg", 1, "--max-iter", 3, "--set", "ensemble.n_estimators=2"]
PROTOCOLS = [
    (["--protocol", "time"], TimeSplit()),
    (["--protocol", "time", "--test-size", 0.1, "--splits", 3], TimeSplit(3, 0, 0.1)),
    (["--protocol", "time-per-user"], TimeSplit(1, 0, 1, per_user=True)),
    (
        ["--protocol", "time-per-user", "--held-out", 2, "--splits", 2, "--seed", 4],
        TimeSplit(2, 4, 2, per_user=True),
    ),
]


@pytest.fixture(scope="session")
def dated_file(ratings_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ratings of `ratings_file`, each with a day in a column called date."""
    header, *lines = ratings_file.read_text().splitlines()
    days = np.random.default_rng(0).integers(10_000, 10_200, len(lines)) * 86_400
    dates = [datetime.fromtimestamp(int(day), UTC).date().isoformat() for day in days]
    path = tmp_path_factory.mktemp("dated") / "dated.csv"
    rows = (f"{line},{date}" for line, date in zip(lines, dates, strict=True))
    path.write_text("\n".join([f"{header},date", *rows]) + "\n")
    return path


@pytest.mark.parametrize(("arguments", "protocol"), PROTOCOLS)
def test_the_errors_are_those_of_the_library(run, dated_file: Path, arguments, protocol) -> None:
    outcome = run("evaluate", dated_file, "--model", "bias", *arguments, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    result, table = json.loads(outcome.out), read_ratings(dated_file)
    bias = BiasOnly(random_state=protocol.random_state)
    reports = evaluate(bias, table.pairs, table.ratings, protocol, times=table.timestamps)
    assert result["metrics"]["mae"]["splits"] == pytest.approx([one["mae"] for one in reports])
    assert result["protocol"]["splits"] == protocol.n_splits
    assert result["answer"] == "median"


def test_the_options_make_the_protocol() -> None:
    options = ProtocolOptions("time", 2, test_size=0.3)
    assert options.make(seed=7) == TimeSplit(2, 7, 0.3)
    assert options.summary() == {"name": "time", "splits": 2, "test_size": 0.3}
    options = ProtocolOptions("time-per-user", held_out=5)
    assert options.make(seed=7) == TimeSplit(1, 7, 5, per_user=True)
    assert options.describe() == "time-per-user (held-out 5), 1 split"


def test_who_is_new_after_the_cut_is_counted(run) -> None:
    rows = [f"u{k // 10},{(k + k // 10) % 10},{1 + k % 3},{k}" for k in range(100)]
    Path("sorted.csv").write_text("\n".join(["user,item,rating,time", *rows]))
    outcome = run("evaluate", "sorted.csv", "--model", "bias", "--protocol", "time")
    assert outcome.out.splitlines()[1:3] == [
        "Protocol time (test-size 0.2), 1 split.",
        "100.0% of the test ratings are of users or items without earlier ratings.",
    ]
    outcome = run("evaluate", "sorted.csv", "--model", "bias", "--protocol", "time-per-user")
    assert "without earlier ratings" not in outcome.out
    outcome = run("evaluate", "sorted.csv", "--model", "bias", "--protocol", "holdout", "--json")
    assert json.loads(outcome.out)["unknown_share"] == 0


def test_lists_in_time_with_ratings_and_without(run, dated_file: Path) -> None:
    named = ["--lists", "--protocol", "time", "--json"]
    table, rule = read_ratings(dated_file), ListRule(level="any")
    for more in (["--level", "any"], ["--positive-only"]):
        outcome = run("evaluate", dated_file, "--model", "popular", *named, *more)
        assert (outcome.code, outcome.err) == (0, "")
        (report,) = evaluate(
            MostPopular(), table.pairs, None, TimeSplit(), lists=rule, times=table.timestamps
        )
        assert json.loads(outcome.out)["metrics"]["ndcg"]["splits"] == [report["ndcg"]]


def test_pairs_that_occur_again_keep_the_last_time(run) -> None:
    rows = [f"{k % 7},{k % 11},{1 + k % 3},{k}" for k in range(77)]
    again = [f"{k % 7},{k % 11},{1 + k % 3},{1000 - k}" for k in range(20)]
    Path("twice.csv").write_text("\n".join(["user,item,rating,time", *rows, *again]))
    Path("once.csv").write_text("\n".join(["user,item,rating,time", *rows[20:], *again]))
    named = ["--model", "bias", "--protocol", "time", "--duplicates", "last", "--json"]
    twice, once = (
        json.loads(run("evaluate", name, *named).out) for name in ("twice.csv", "once.csv")
    )
    assert twice["metrics"]["mae"] == once["metrics"]["mae"]


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (
            "user,item,rating,year\n1,2,3,1999\n",
            [],
            "line 1: there is no column of times; the columns are 'user', 'item', 'rating', 'year'",
        ),
        (
            "user,item,rating,date\n1,2,3,22 April\n",
            [],
            "line 2: the timestamp '22 April' is neither a number nor a date such as 1998-04-22 or",
        ),
        ("user,item,date\n1,2,x\n", ["--lists", "--positive-only"], "the timestamp 'x' is neither"),
        ("user,item,rating\n1,2,3\n", ["--test-size", 1], "--test-size 1 must be between 0 and 1"),
        (
            "user,item,rating\n1,2,3\n",
            ["--splits", 5],
            "--splits 5 of --test-size 0.2 each leave no ratings to train on",
        ),
    ],
)
def test_what_cannot_be_cut_in_time(run, content, arguments, message) -> None:
    Path("ratings.csv").write_text(content)
    model = "ease" if "--lists" in arguments else "bias"
    outcome = run("evaluate", "ratings.csv", "--model", model, "--protocol", "time", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err


def test_a_dataset_without_times(run, data_root: Path, monkeypatch) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    outcome = run("evaluate", "book-crossing", "--protocol", "time")
    assert outcome.code == 2
    assert "book-crossing has no times, which this protocol needs" in outcome.err


@pytest.mark.parametrize("answer", ["mode", "mean", "rule"])
def test_another_answer_is_measured_and_named(run, ratings_file: Path, answer: str) -> None:
    model = ["--factors", 3, "--reg", 1, "--protocol", "holdout", "--splits", 1]
    outcome = run("evaluate", ratings_file, "--model", "mmmf", *model, "--answer", answer)
    assert outcome.out.splitlines()[1].endswith(f"1 split; answer {answer}.")
    arguments = ["--models", "mmmf,bias", *model, "--answer", answer, "--json"]
    result, table = (
        json.loads(run("compare", ratings_file, *arguments).out),
        read_ratings(ratings_file),
    )
    one = MMMF(3, 1.0, random_state=0)
    (report,) = evaluate(one, table.pairs, table.ratings, HoldOut(1), output=answer)
    assert result["models"]["mmmf"]["mae"]["mean"] == pytest.approx(report["mae"])
    assert result["answer"] == answer
    assert "output" not in result


def test_lists_have_no_answer(run, ratings_file: Path) -> None:
    outcome = run("evaluate", ratings_file, "--lists", "--answer", "mean")
    assert outcome.code == 2
    assert outcome.err == ("marginmf: --answer mean is about ratings: leave it out with --lists.\n")
    assert "answer" not in run("evaluate", ratings_file, "-m", "popular", "--lists", "--json").out


@pytest.mark.filterwarnings("always:bmmmf is left out")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], [name for name in METHODS if name != "bmmmf"]),
        (["--lists"], [name for name in (*METHODS, *POSITIVE) if name != "bmmmf"]),
        (["--lists", "--positive-only"], list(POSITIVE)),
    ],
)
def test_all_methods_that_can_learn_from_the_data(run, ratings_file, arguments, expected) -> None:
    quick = QUICK if expected != list(POSITIVE) else []
    arguments = [*arguments, *quick, "--protocol", "holdout", "--splits", 1]
    outcome = run("compare", ratings_file, "--models", "all", *arguments, "--json", "--quiet")
    assert outcome.code == 0, outcome.err
    assert list(json.loads(outcome.out)["models"]) == expected
    left_out = "marginmf: bmmmf is left out: BMMMF tells two levels apart, but the ratings have 5."
    assert outcome.err.startswith(left_out if quick else "")
    assert outcome.err.count("\n") == bool(quick)


def test_a_method_that_is_named_must_suit_the_data(run, ratings_file: Path) -> None:
    outcome = run("compare", ratings_file, "--models", "bias,bmmmf", *QUICK[:-2])
    assert (outcome.code, outcome.out) == (2, "")
    assert "BMMMF tells two levels apart" in outcome.err


def test_all_label_methods(run) -> None:
    Path("songs.csv").write_text(as_csv(songs()))
    quick = ["--set", "mlknn.n_neighbors=3", "--set", "ensemble.members=ridge,mlknn"]
    arguments = ["--labels", 3, "--cv", 2, *quick, "--threads", 1]
    outcome = run("labels", "compare", "songs.csv", "--models", "all", *arguments, "--json", "-q")
    assert outcome.code == 0, outcome.err
    assert list(json.loads(outcome.out)["models"]) == list(LABEL_METHODS)
    assert "output" not in json.loads(outcome.out)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_splits_are_listed_where_there_is_room(run, dated_file, monkeypatch, width) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    arguments = ["--model", "bias", "--protocol", "holdout", "--splits", 5]
    for more in ([], ["--lists"]):
        lines = run("evaluate", dated_file, *arguments, *more).out.splitlines()
        (heading,) = (line for line in lines if line.startswith(" metric"))
        assert ("split 5" in heading) == (width == 120 or (width == 80 and not more))
        (first,) = (line for line in lines if line.startswith((" MAE ", " nDCG@10 ")))
        assert len(first.rstrip()) <= width
        assert first.count(".") >= 2
