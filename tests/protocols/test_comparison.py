"""Several models on the same splits: figures, tests, tables, progress, processes, resumption."""

import csv
import io
import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator

from contracts import synthetic
from marginmf.datasets import RatingsTable
from marginmf.protocols import (
    Comparison,
    HoldOut,
    KFold,
    ListRule,
    StrongGeneralisation,
    WeakGeneralisation,
    compare,
    evaluate,
    split_ratings,
)
from marginmf.ratings import ALS, EASE, MMMF, BiasOnly, Ratings
from marginmf.stats import holm, paired_comparison

PAIRS, RATINGS = synthetic((1, 2, 3, 4, 5), n_users=40, n_items=30, n=800)
DATA = PAIRS, RATINGS
WEAK = WeakGeneralisation()
MODELS = {"MMMF": MMMF(3, 1.0, random_state=0), "ALS": ALS(3, 1.0, random_state=0)}


class Constant(BaseEstimator):
    """Predicts one rating for all, and writes a line whenever it is fitted."""

    def __init__(self, value=3.0, log=None):
        self.value, self.log = value, log

    def fit(self, data):
        if self.log is not None and len(data) > 20:  # not the few that warm it up
            with Path(self.log).open("a") as file:
                file.write(f"{self.value}\n")
        return self

    def predict(self, pairs):
        if self.value is None:
            raise KeyboardInterrupt
        return np.full(len(pairs), self.value)


def without_seconds(found: Comparison) -> dict:
    return {
        method: {name: own for name, own in values.items() if name != "seconds"}
        for method, values in found.values.items()
    }


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare(DATA, {**MODELS, "averages": BiasOnly()}, HoldOut(4))


def test_every_split_has_the_values_of_evaluate(found) -> None:
    reports = evaluate(BiasOnly(), *DATA, HoldOut(4))
    for name in reports[0]:
        assert found.values["averages"][name] == [report[name] for report in reports]
    assert len(found.values["averages"]["seconds"]) == 4
    assert found.test_size == pytest.approx(0.2)
    assert found.mean("averages") == np.mean([report["mae"] for report in reports])


@pytest.mark.parametrize(
    ("protocol", "test_size"),
    [
        (KFold(4), 0.25),
        (WeakGeneralisation(2), 0.05),
        (StrongGeneralisation(0.5, n_splits=1), 0.04),
    ],
    ids=str,
)
def test_every_protocol(protocol, test_size) -> None:
    compared = compare(DATA, {"averages": BiasOnly()}, protocol, ["rmse"])
    reports = evaluate(BiasOnly(), *DATA, protocol)
    assert compared.values["averages"]["rmse"] == [report["rmse"] for report in reports]
    assert compared.test_size == pytest.approx(test_size, abs=0.02)


@pytest.mark.parametrize(
    "data",
    [
        RatingsTable("films", *PAIRS.T, RATINGS),
        Ratings.of(PAIRS, RATINGS),
        pd.DataFrame({"user": PAIRS[:, 0], "item": PAIRS[:, 1], "rating": RATINGS}),
        pl.DataFrame(
            {
                "user": [f"u{user:02}" for user in PAIRS[:, 0]],
                "item": PAIRS[:, 1],
                "rating": RATINGS,
            }
        ),
        (pd.DataFrame(PAIRS, columns=["user", "item"]), pd.Series(RATINGS)),
        ([(f"u{user:02}", ("film", item)) for user, item in PAIRS.tolist()], RATINGS.tolist()),
    ],
    ids=["table", "ratings", "frame", "polars", "pair of frames", "lists"],
)
def test_data_in_any_form(data) -> None:
    # Rows keep their order in all forms but Ratings, which are sorted by user and item.
    order = np.lexsort(PAIRS.T[::-1]) if isinstance(data, Ratings) else slice(None)
    expected = compare((PAIRS[order], RATINGS[order]), ["bias"], HoldOut(1))
    assert without_seconds(compare(data, ["bias"], HoldOut(1))) == without_seconds(expected)


def test_rows_of_your_own_are_a_protocol_too(found) -> None:
    rows = list(HoldOut(4).split(PAIRS))
    again = compare(DATA, {"averages": BiasOnly()}, rows)
    assert without_seconds(again)["averages"] == without_seconds(found)["averages"]


def test_names_are_methods_with_a_seed() -> None:
    by_name = compare(DATA, ["mmmf", BiasOnly()], HoldOut(1), lists=None)
    assert by_name.methods == ["mmmf", "BiasOnly"]
    seeded = compare(DATA, {"mmmf": MMMF(random_state=0)}, HoldOut(1))
    assert by_name.values["mmmf"]["mae"] == seeded.values["mmmf"]["mae"]


def test_differences_are_tested_by_the_splits_and_corrected(found) -> None:
    assert found.best() == "MMMF"
    errors = {name: own["mae"] for name, own in found.values.items()}
    raw = [
        paired_comparison(errors[name], errors["MMMF"], test_size=found.test_size).p_value
        for name in ("ALS", "averages")
    ]
    assert found.p_values() == pytest.approx(
        {"MMMF": 1.0, **dict(zip(("ALS", "averages"), holm(raw), strict=True))}
    )
    against = found.p_values("rmse", baseline="averages")
    assert against["averages"] == 1.0
    assert against["MMMF"] < 0.05
    assert np.isnan(list(found.p_values("seconds").values())).all()


def test_the_frame_has_a_row_for_each_method_and_metric(found) -> None:
    frame = found.frame(["mae", "seconds"])
    assert list(frame.columns) == (
        ["method", "metric", "mean", "sd", "n_splits", "best", "difference", "p_value"]
    )
    assert frame["metric"].tolist() == ["mae"] * 3 + ["seconds"] * 3
    assert frame["best"].tolist()[:3] == [True, False, False]
    own = frame[(frame["method"] == "ALS") & (frame["metric"] == "mae")].iloc[0]
    assert own["mean"] == found.mean("ALS", "mae")
    assert own["sd"] == pytest.approx(np.std(found.values["ALS"]["mae"], ddof=1))
    assert own["difference"] == pytest.approx(own["mean"] - found.mean("MMMF", "mae"))
    assert set(found.frame()["metric"]) == {"mae", "zero_one", "rmse", "nmae", "seconds"}


def test_a_single_split_has_neither_deviations_nor_tests() -> None:
    single = compare(DATA, ["bias", "popular"][:1], HoldOut(1))
    assert single.deviation("bias") is None
    frame = compare(DATA, {"a": BiasOnly(), "b": Constant()}, HoldOut(1), ["mae"]).frame()
    assert frame["p_value"].isna().all()
    assert frame["sd"].isna().all()
    assert "±" not in str(single)
    assert str(single).endswith("1 split; * marks the best.")


def test_tables_mark_the_best_and_name_the_test(found) -> None:
    lines = str(found).splitlines()
    assert lines[0].split() == ["method", "MAE", "zero-one", "RMSE", "NMAE", "p", "seconds"]
    assert lines[1].split()[1].startswith("*")
    assert "best" in lines[1]
    assert lines[-1] == "4 splits; * marks the best; p: difference from the best by MAE."
    markdown = found.to_markdown(["mae", "seconds"]).splitlines()
    assert markdown[:2] == ["| method | MAE | p | seconds |", "|---|---:|---:|---:|"]
    assert markdown[2].startswith("| MMMF | **")
    rows = list(csv.DictReader(io.StringIO(found.to_csv(["mae"]))))
    assert list(rows[0]) == ["method", "mae", "mae_sd", "difference", "p_value"]
    assert float(rows[1]["mae"]) == found.mean("ALS")


def test_means_with_the_same_printed_digits_are_equally_best() -> None:
    means = {"a": 0.71001, "b": 0.70999, "c": 0.7102, "d": float("nan")}
    errors = {name: {"mae": [mean], "seconds": [1.0]} for name, mean in means.items()}
    tied = Comparison("ratings", ("mae", "seconds"), errors)
    assert tied.best() == "b"
    assert tied.winners() == {"a", "b"}
    assert tied.winners("seconds") == {"a", "b", "c", "d"}
    assert [row[1] for row in tied.rows(["mae"])] == ["MAE", "*0.7100", "*0.7100", "0.7102", "nan"]
    assert tied.to_markdown(["mae"]).count("**0.7100**") == 2
    lists = Comparison("lists", ("ndcg",), {"a": {"ndcg": [0.5], "novelty": [2.0]}})
    assert lists.winners() == {"a"}
    assert lists.winners("novelty") == set()  # more of it is neither better nor worse


def test_a_baseline_is_what_tables_test_against() -> None:
    compared = compare(DATA, {**MODELS, "bias": BiasOnly()}, HoldOut(2), ["rmse"], baseline="bias")
    assert "baseline" in str(compared)
    assert str(compared).endswith("p: difference from the bias by RMSE.")
    assert compared.frame()["difference"].tolist()[2] == 0.0


def test_everything_is_plain_data(found) -> None:
    data = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert data["models"]["ALS"]["mae"]["splits"] == found.values["ALS"]["mae"]
    assert data["best"]["mae"] == "MMMF"
    assert data["tested"]["metric"] == "mae"
    assert data["tested"]["models"]["MMMF"] == {"difference": 0.0, "p_value": 1.0}
    lists = compare(DATA, {"b": BiasOnly()}, HoldOut(1), lists=ListRule(5)).as_dict()
    assert lists["lists"] == {"k": 5, "level": None, "by": None}
    assert lists["models"]["b"]["ndcg"]["low"] <= lists["models"]["b"]["ndcg"]["mean"]
    json.dumps(lists, allow_nan=False)


def test_side_by_side_gives_the_same_figures(found) -> None:
    heard = []
    with parallel_config(backend="threading"):  # processes would take seconds to start
        again = compare(
            DATA,
            {**MODELS, "averages": BiasOnly()},
            HoldOut(4),
            n_jobs=2,
            progress=lambda *step: heard.append(step),
        )
    assert without_seconds(again) == without_seconds(found)
    assert [done for done, _, _ in heard] == [*range(1, 13), 12]


def test_progress_tells_of_each_fit_before_it_starts(capsys) -> None:
    heard = []
    models = {"a": BiasOnly(), "b": Constant()}
    compare(DATA, models, HoldOut(2), progress=lambda *step: heard.append(step))
    assert heard == [
        (0, 4, "a, split 1"),
        (1, 4, "b, split 1"),
        (2, 4, "a, split 2"),
        (3, 4, "b, split 2"),
        (4, 4, ""),
    ]
    compare(DATA, models, HoldOut(1), progress=True)
    assert capsys.readouterr() == ("", "")  # there is no terminal


@pytest.mark.parametrize("lists", [None, ListRule(5)])
def test_a_second_call_goes_on_where_the_first_one_stopped(tmp_path, lists, monkeypatch) -> None:
    path = tmp_path / "folder" / "comparison.jsonl"
    models = {"a": BiasOnly(), "b": ALS(3, 1.0, random_state=0)}

    def interrupt(done, total, text):
        if done == 3:
            raise KeyboardInterrupt

    named = [(f"u{user}", item) for user, item in PAIRS.tolist()], RATINGS
    with pytest.raises(KeyboardInterrupt):
        compare(named, models, HoldOut(2), lists=lists, progress=interrupt, checkpoint=path)
    with path.open("a") as file:
        file.write('{"method": "b", "spl')  # killed while it wrote
    assert len(path.read_text().splitlines()) == 5
    heard = []
    again = compare(
        named,
        models,
        HoldOut(2),
        lists=lists,
        checkpoint=path,
        progress=lambda *step: heard.append(step[2]),
    )
    assert heard == ["b, split 2", ""]
    whole = compare(named, models, HoldOut(2), lists=lists)
    assert without_seconds(again) == without_seconds(whole)
    assert again.p_values() == pytest.approx(whole.p_values())
    for method in again.lists:
        for one, other in zip(again.lists[method], whole.lists[method], strict=True):
            assert one.users.tolist() == other.users.tolist()
            assert one.report() == other.report()


def test_models_may_be_added_to_a_checkpoint(tmp_path) -> None:
    path, log = tmp_path / "c.jsonl", tmp_path / "log"
    compare(DATA, {"a": Constant(2.0, log)}, HoldOut(2), checkpoint=path)
    models = {"a": Constant(2.0, log), "b": Constant(4.0, log)}
    both = compare(DATA, models, HoldOut(2), checkpoint=path)
    assert log.read_text().split() == ["2.0", "2.0", "4.0", "4.0"]
    assert both.methods == ["a", "b"]
    assert len(both.values["b"]["mae"]) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"data": (PAIRS, RATINGS[::-1])}, r"another comparison \(other data\)"),
        ({"models": {"a": BiasOnly(reg=9.0)}}, r"another comparison \(other parameters of a\)"),
        ({"protocol": HoldOut(1, random_state=1)}, "split 1 has other rows: another protocol"),
        ({"lists": ListRule(5)}, r"another comparison \(other kind of metrics\)"),
    ],
)
def test_the_checkpoint_of_another_comparison_is_refused(tmp_path, change, said) -> None:
    same = {"data": DATA, "models": {"a": BiasOnly()}, "protocol": HoldOut(1)}
    path = tmp_path / "c.jsonl"
    compare(**same, checkpoint=path)
    before = path.read_text()
    with pytest.raises(ValueError, match=said):
        compare(**{**same, **change}, checkpoint=path)
    assert path.read_text() == before


def test_any_other_file_is_left_alone(tmp_path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n1,2,3\n")
    with pytest.raises(ValueError, match="is not the checkpoint of a comparison"):
        compare(DATA, ["bias"], checkpoint=path)
    assert path.read_text().startswith("user")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: compare(DATA, {}), "There are no models to compare"),
        (lambda: compare(DATA, "hmf"), "There are no models to compare"),
        (lambda: compare(DATA, ["hnf"]), r"no method 'hnf' here; .*Did you mean hmf\?"),
        (lambda: compare(DATA, ["ease"]), "no method 'ease' here"),
        (lambda: compare(DATA, [BiasOnly(), BiasOnly()]), "Two models are called BiasOnly"),
        (lambda: compare(DATA, {"e": EASE()}), "EASE makes lists and predicts no ratings"),
        (lambda: compare(DATA, ["bias"], metrics=["ndcg"]), "There is no rating metric 'ndcg'"),
        (lambda: compare(DATA, ["bias"], metrics="mae"), "must be a sequence of metrics"),
        (lambda: compare(DATA, ["bias"], baseline="als"), "baseline='als' is not one of"),
        (lambda: compare((PAIRS[:9], RATINGS[:9]), ["bias"]), "has 9 ratings, too few to hold"),
        (lambda: compare(PAIRS, ["bias"]), "or a pair .* not ndarray"),
        (
            lambda: compare(
                ([(k, k) for k in range(30)], [1, 2] * 15), ["bias"], WeakGeneralisation()
            ),
            "no user has enough ratings to hold some of them out",
        ),
        (
            lambda: compare(DATA, ["bias"], HoldOut(1)).p_values(baseline="x"),
            "baseline='x' is not one of the methods: bias",
        ),
    ],
)
def test_what_cannot_be_compared_is_a_sentence(call, said) -> None:
    with pytest.raises(ValueError, match=said):
        call()


def test_without_a_library_of_frames_there_are_arrays(found, monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    columns = found.frame(["mae"])
    assert isinstance(columns, dict)
    assert columns["method"].tolist() == found.methods


def test_an_error_in_a_process_or_in_a_split_is_raised() -> None:
    def rows():
        yield from HoldOut(8).split(PAIRS)
        yield np.arange(700), np.arange(0)

    with parallel_config(backend="threading"):
        with pytest.raises(ValueError, match="no user has enough ratings"):
            compare(DATA, {"a": Constant()}, rows(), n_jobs=2)
        with pytest.raises(ValueError, match="makes lists and predicts no ratings"):
            compare(DATA, {"a": Constant(), "e": EASE()}, HoldOut(2), n_jobs=2)


@pytest.mark.parametrize("lists", [None, ListRule(5)])
def test_splits_and_results_can_go_to_processes_and_come_back(lists) -> None:
    split = next(split_ratings(DATA, HoldOut(1), lists))
    expected, result = (one.evaluate(BiasOnly()) for one in (split, pickled(split)))
    assert pickled(replace(result, model=None)).values.keys() == expected.values.keys()
    assert result.values["seconds"] > 0
    for name in expected.values.keys() - {"seconds"}:
        assert result.values[name] == expected.values[name]


def pickled(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("protocol", [[], WeakGeneralisation(n_splits=0)])
def test_a_protocol_without_splits_is_refused(protocol) -> None:
    with pytest.raises(ValueError, match="The protocol has no splits"):
        compare(synthetic((1, 2, 3)), ["bias"], protocol)


def test_a_damaged_line_of_a_checkpoint_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    data, models = synthetic((1, 2, 3)), ["bias"]
    compare(data, models, HoldOut(n_splits=3), checkpoint=file)
    first, second, *rest = file.read_text().splitlines(keepends=True)
    file.write_text("".join([first, second[:20] + "\n", *rest]))
    before = file.read_bytes()
    with pytest.raises(ValueError, match="line 2: the checkpoint is damaged"):
        compare(data, models, HoldOut(n_splits=3), checkpoint=file)
    assert file.read_bytes() == before
    file.write_bytes(b"\xff\xfe\x80")
    with pytest.raises(ValueError, match="is not the checkpoint of a comparison"):
        compare(data, models, HoldOut(n_splits=3), checkpoint=file)


def test_json_has_null_where_a_figure_is_not_a_number() -> None:
    found = Comparison("ratings", ["mae", "fre"], {"a": {}, "b": {}})
    for name in ("a", "b"):
        found.add(name, {"mae": 1.0, "fre": float("nan")})
        found.add(name, {"mae": 2.0, "fre": 0.5})
    text = json.dumps(found.as_dict(), allow_nan=False)
    assert json.loads(text)["models"]["a"]["fre"]["mean"] is None
