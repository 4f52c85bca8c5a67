"""The systems of chapter 3: how they are tested, how settings are chosen, and their table."""

import json
from argparse import Namespace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginmf.metrics import chance_error
from marginmf.ratings import MMMF, MarginEnsemble
from studies.harness import Cell, Store
from studies.harness.markdown import Entry, Table, Text, Verdict
from studies.thesis import measures, settings
from studies.thesis.chapter3_systems import (
    ADDED,
    FIXED,
    NMAE,
    ROWS,
    SLOW,
)
from studies.thesis.chapter3_systems import SYSTEMS as RUN_ORDER
from studies.thesis.exhibit import exhibits
from studies.thesis.measures import (
    RATING_METHODS,
    candidate_error,
    load_table,
    make_recipe,
    rating_errors,
    split_rows,
    system_errors,
)
from studies.thesis.published import PublishedFigure, published
from studies.thesis.samples import STOPPING, Sample
from studies.thesis.settings import PROTOCOLS
from studies.thesis.system_verdicts import Found, judge_row
from studies.thesis.systems import (
    SYSTEMS,
    Votes,
    clustered_error,
    draw_tests,
    measure_system,
    read_rows,
)

RECIPE = make_recipe(60, 3, 0.5, 0)
WEAK, STRONG = {"name": "weak"}, {"name": "strong", "n_train_users": 0.7}
SMALL = {"n_factors": 3, "reg": 1.0}


@pytest.mark.parametrize("protocol", [WEAK, STRONG])
def test_first_draw_is_the_one_of_other_tables(protocol: dict[str, Any]) -> None:
    before = rating_errors(RECIPE, protocol, 1, "HMF", SMALL)
    found = system_errors(RECIPE, protocol, 1, "HMF", SMALL)
    assert found["test"] == before["test"]
    assert found["draws"] == [before["test"]["nmae"]]
    assert (found["n_test"], found["reg"]) == (before["n_test"], before["reg"])
    assert ("fold_in_cpu_seconds" in found) == (protocol is STRONG)
    json.dumps(found)


def test_more_draws_begin_with_it_and_their_mean_is_the_error() -> None:
    one = system_errors(RECIPE, STRONG, 0, "MMMF", SMALL)
    more = system_errors(RECIPE, STRONG, 0, "MMMF", SMALL, draws=6)
    assert more["draws"][0] == one["draws"][0]
    assert len(set(more["draws"])) > 1
    assert more["test"]["nmae"] == pytest.approx(np.mean(more["draws"]))
    assert more["n_test"] == one["n_test"] == 18


def test_each_draw_tests_on_another_rating_of_every_new_user() -> None:
    table = load_table(RECIPE)
    train, fold_in, test = split_rows(table, STRONG, 0)
    draws = list(draw_tests(table.users, fold_in, test, 5, seed=1))
    assert len(draws) == 5
    assert draws[0][1] is test
    tested = np.concatenate([own for _, own in draws])
    assert len(np.unique(tested)) == len(tested) == 5 * 18
    new = np.union1d(fold_in, test)
    for given, asked in draws:
        assert np.array_equal(np.union1d(given, asked), new)
        assert len(np.intersect1d(given, asked)) == 0
        assert np.array_equal(np.sort(table.users[asked]), np.unique(table.users[new]))
    assert not np.isin(train, tested).any()


def test_errors_of_one_user_are_not_independent() -> None:
    rng = np.random.default_rng(0)
    values, users = rng.normal(size=40), np.arange(40)
    alone = clustered_error(values, users)
    assert alone == pytest.approx(values.std(ddof=1) / np.sqrt(40))
    again = clustered_error(np.tile(values, 5), np.tile(users, 5))
    assert again == pytest.approx(alone)


@pytest.mark.parametrize(
    ("method", "params", "has"),
    [("Margin ensemble", {"n_estimators": 2, "n_factors": 3}, True), ("PMF", SMALL, False)],
)
def test_log_loss_is_of_methods_with_probabilities_of_their_own(
    method: str, params: dict[str, Any], has: bool
) -> None:
    found = system_errors(RECIPE, STRONG, 0, method, params, draws=2)["test"]
    assert all((name in found) == has for name in ("log_loss", "zero_one_mode", "rmse_mean"))
    if has:
        assert found["rmse_mean"] < found["rmse"]


def test_rule_of_an_ensemble_is_the_median() -> None:
    table = load_table(RECIPE)
    model = MarginEnsemble(n_estimators=2, n_factors=3, random_state=0)
    model.fit(table.pairs, table.ratings)
    pairs = table.pairs[:50]
    assert np.array_equal(model.predict(pairs, output="rule"), model.predict(pairs))


@pytest.fixture(scope="module")
def votes() -> Votes:
    table = load_table(RECIPE)
    return Votes(3, n_factors=3).fit(read_rows(table, np.arange(len(table))))


def test_votes_are_of_starts_that_share_a_strength(votes: Votes) -> None:
    assert [member.random_state for member in votes.members_] == [0, 1, 2]
    assert {member.reg_ for member in votes.members_} == {votes.reg_}
    table = load_table(RECIPE)
    alone = MMMF(3, calibrate=False, random_state=0).fit(table.pairs, table.ratings)
    assert votes.reg_ == alone.reg_
    half = Votes(1, n_factors=3, share=0.5).fit(read_rows(table, np.arange(len(table))))
    assert half.reg_ == pytest.approx(alone.reg_ / 2)


@pytest.mark.parametrize(
    ("vote", "stars", "expected"),
    [("median", (1, 2, 5), 2), ("mean", (1, 2, 5), 3), ("median", (4, 4, 1), 4)],
)
def test_members_vote_with_whole_stars(vote: str, stars: tuple[int, ...], expected: int) -> None:
    class Constant:
        levels_ = np.arange(1.0, 6.0)

        def __init__(self, star: int) -> None:
            self.star = star

        def predict(self, pairs: Any, output: str) -> np.ndarray:
            return np.full(len(pairs), float(self.star))

    ensemble = Votes(vote=vote)
    ensemble.members_ = [Constant(star) for star in stars]
    assert ensemble.predict([("a", "x")]).tolist() == [expected]


def test_bags_of_members_differ_and_keep_their_seeds() -> None:
    table = load_table(RECIPE)
    data = read_rows(table, np.arange(len(table)))
    bags = [Votes(bagging=True)._bag(data, seed) for seed in (0, 1, 0)]
    # One minus one over e of them, in the mean.
    assert len(bags[0]) == pytest.approx(0.632 * len(data), rel=0.05)
    assert not np.array_equal(bags[0].pairs, bags[1].pairs)
    assert np.array_equal(bags[0].pairs, bags[2].pairs)
    model = Votes(2, n_factors=3, bagging=True).fit(data)
    assert np.isin(model.predict(table.pairs), table.levels).all()


def test_new_users_are_folded_into_every_member(votes: Votes) -> None:
    table = load_table(RECIPE)
    rows = np.flatnonzero(table.users == table.users[0])
    folded = votes.fold_in(table.pairs[rows], table.ratings[rows])
    assert [len(member.users_) for member in folded.members_] == [1, 1, 1]
    assert [len(member.users_) for member in votes.members_] == [60, 60, 60]


@pytest.mark.parametrize("protocols", [[WEAK], [STRONG], [WEAK, STRONG]])
def test_candidates_see_nothing_that_a_split_tests_on(
    protocols: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def watch(method: Any, table: Any, rows: tuple[np.ndarray, ...], *rest: Any) -> Any:
        seen.extend(rows)
        return measure_system(method, table, rows, *rest)

    monkeypatch.setattr(measures, "measure_system", watch)
    found = candidate_error(RECIPE, 3, 5, "Biases", {}, protocols=protocols)
    table, used = load_table(RECIPE), np.concatenate(seen)
    for protocol, split in product(protocols, range(3)):
        _, *others = split_rows(table, protocol, split)
        # Of new users neither what is asked may be known, nor what they are folded in with.
        assert not np.isin(used, np.concatenate(others)).any()
    assert len(np.unique(used)) == len(used)
    assert (found["n_train"], found["n_test"]) == tuple(map(len, seen))
    assert found["n_test"] == 5 * len(np.unique(table.users[used]))
    assert 0 < found["test"]["mae"] < chance_error(table.levels)


def test_one_protocol_or_a_list_of_it_is_the_same_search() -> None:
    alone = candidate_error(RECIPE, 2, 5, "Biases", {}, protocol=WEAK)
    assert alone["test"] == candidate_error(RECIPE, 2, 5, "Biases", {}, protocols=[WEAK])["test"]


def test_candidates_of_a_search_differ() -> None:
    searches = settings.list_searches(settings.DATA, settings.CANDIDATES)
    cells = [cell for point in searches for cell in settings.candidate_cells(*point)]
    assert len({cell.key for cell in cells}) == len(cells)
    assert all(len(candidates) > 1 for candidates in settings.CANDIDATES.values())
    assert set(settings.SEARCHED_ONCE) < set(settings.CANDIDATES) <= set(SYSTEMS)


def test_a_search_that_takes_long_is_one_for_both_protocols(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    methods = ["GP-LVM", "URP"]
    assert settings.list_searches(["ml-1m", "ml-100k"], methods) == [
        ("ml-1m", "both", "GP-LVM"),
        ("ml-1m", "weak", "URP"),
        ("ml-1m", "strong", "URP"),
        *(("ml-100k", "weak", method) for method in methods),
        *(("ml-100k", "strong", method) for method in methods),
    ]
    (cell, *_) = settings.candidate_cells("ml-1m", "both", "GP-LVM")
    assert [one["name"] for one in cell.settings["protocols"]] == ["weak", "strong"]
    names = ("weak", "strong", "both")
    chosen = {name: {one: {"n_factors": k} for one in methods} for k, name in enumerate(names)}
    monkeypatch.setattr(settings, "_chosen", lambda: {"ml-1m": chosen, "ml-100k": chosen})
    assert settings.chosen_params("ml-1m", "strong", "GP-LVM") == {"n_factors": 2}
    assert settings.chosen_params("ml-1m", "strong", "URP") == {"n_factors": 1}
    assert settings.chosen_params("ml-100k", "strong", "GP-LVM") == {"n_factors": 1}


def test_what_was_chosen_is_the_best_of_a_search_that_is_still_made() -> None:
    chosen = json.loads(settings.FILE.read_text())
    searches = settings.list_searches(settings.DATA, settings.CANDIDATES)
    assert searches
    for data, name, method in searches:
        assert chosen[data][name][method] in settings.CANDIDATES[method]
    kept = {
        (data, name, method)
        for data, protocols in chosen.items()
        for name, methods in protocols.items()
        for method in methods
    }
    assert kept == set(searches)


def test_best_candidate_is_kept_once_all_are_measured(tmp_path: Path) -> None:
    store, file = Store(tmp_path), tmp_path / "settings.json"
    before = {"BPMF": {"n_factors": 99}, "NMF": {"reg": 7}}
    file.write_text(json.dumps({"ml-100k": {"strong": before}}))
    points = [("ml-100k", "strong", "URP"), ("ml-100k", "strong", "BPMF")]
    for point, n_measured in zip(points, (4, 2), strict=True):
        cells = settings.candidate_cells(*point)[:n_measured]
        for cell, error in zip(cells, (0.5, 0.3, 0.4, 0.6), strict=False):
            store.add(cell, {"test": {"mae": error}}, 1.0)
    found = {point: settings.find_errors(store, *point) for point in points}
    assert [error for error, _ in found[points[0]]] == [0.3, 0.4, 0.5, 0.6]
    settings.write_choice(found, file)
    best = settings.CANDIDATES["URP"][1]
    assert json.loads(file.read_text()) == {"ml-100k": {"strong": {**before, "URP": best}}}


def test_without_a_choice_a_system_has_its_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_chosen", dict)
    assert settings.chosen_params("ml-1m", "weak", "URP") == {}


def test_errors_of_candidates_are_shown_without_measuring(tmp_path: Path, capsys) -> None:
    store = Store(tmp_path)
    for cell in settings.candidate_cells("ml-1m", "weak", "BPMF"):
        store.add(cell, {"test": {"mae": 0.625}}, 1.0)
    shown = Namespace(out=tmp_path, data=["ml-1m"], methods=["BPMF"], show=True)
    assert settings.main(shown) == 0
    lines = capsys.readouterr().out.splitlines()
    assert '| ml-1m | weak | BPMF | {"n_factors": 10} | 0.6250 |' in lines
    assert len(lines) == 2 + len(settings.CANDIDATES["BPMF"])


def test_choice_is_written_where_it_is_asked_for(
    tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "CANDIDATES", {"NMF": settings.grid(n_factors=[2], reg=[1.0])})
    monkeypatch.setattr(
        settings,
        "candidate_cells",
        lambda *point: [Cell("sample_measures:odd_fails", {"number": point[1] == "strong"})],
    )
    monkeypatch.setattr(settings, "find_errors", lambda *point: [(0.5, {"reg": 1.0})])
    file = tmp_path / "here.json"
    given = {"out": tmp_path, "data": ["ml-100k"], "methods": ["NMF"], "to": file, "jobs": 1}
    assert settings.main(Namespace(**given, show=False)) == 1
    assert "1 of the cells could not be run: LookupError" in capsys.readouterr().out
    assert json.loads(file.read_text())["ml-100k"]["weak"] == {"NMF": {"reg": 1.0}}


def test_every_row_of_the_thesis_has_a_system_that_is_run() -> None:
    assert tuple(ROWS) == published("nmae").methods
    shown = [*(name for names in ROWS.values() for name in names), *ADDED]
    assert sorted(shown) == sorted(RUN_ORDER)
    assert set(RUN_ORDER) <= set(RATING_METHODS) | set(SYSTEMS)
    assert set(FIXED).isdisjoint(settings.CANDIDATES)


def test_quick_systems_and_the_data_of_the_thesis_are_run_first() -> None:
    cells = NMAE.cells("full")
    assert len(cells) == 2 * 3 * (3 * len(RUN_ORDER) - len(SLOW))
    assert {cell.settings["data"] for cell in cells[: 2 * 3 * len(RUN_ORDER)]} == {"ml-1m"}
    assert cells[0].settings["method"] == "Biases"
    quick = {cell.key for cell in NMAE.cells("quick")}
    assert quick < {cell.key for cell in cells}


def fill(store: Store, errors: dict[str, float], protocol: str = "weak") -> None:
    """Keep an NMAE on MovieLens 1M, the same on every split, for each system."""
    for name, nmae in errors.items():
        test = {"nmae": nmae, "mae": 1.6 * nmae, "rmse": 1.6 * nmae + 0.3, "zero_one": 0.5}
        for cell in NMAE.cells_at("full", "ml-1m", protocol, name):
            values = {"test": test, "standard_error": 0.006, "n_test": 6040, "draws": [nmae]}
            store.add(cell, {**values, "fit_cpu_seconds": 12.34, "fold_in_cpu_seconds": 0.5}, 1.0)


def tables(store: Store) -> dict[str, Table]:
    return {one.caption: one for one in NMAE.blocks(store, "full") if isinstance(one, Table)}


def entries(row: Any) -> list[str]:
    return [one.text if isinstance(one, Entry) else one for one in row]


def test_ours_stands_beside_the_thesis_with_a_verdict_and_what_it_costs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    errors = {"HMF": 0.4019, "BPMF": 0.39, "URP": 0.46, "iBPMMMF published": 0.42, "iBPMMMF": 0.3}
    fill(store, errors)
    weak = tables(store)["NMAE on MovieLens 1M, weak"]
    rows = {row[1]: entries(row) for row in map(entries, weak.rows)}
    assert rows["HMF"][2:] == ["reproduced", ".4019 ± .0044", ".4019 ± .0000", "+.0000", "12.3"]
    assert rows["BPMF"][2] == "better"
    assert rows["URP"][2:] == ["not reproduced", ".4341 ± .0023", ".4600 ± .0000", "+.0259", "12.3"]
    assert rows["iPMMMF"][:5] == [
        "iPMMMF and iBPMMMF",
        "iPMMMF",
        "",
        ".4031 ± .0030",
        "not run",
    ]
    assert rows["iBPMMMF"][0] == "iPMMMF and iBPMMMF"
    assert rows["iBPMMMF"][2] == "not reproduced"
    # What goes beyond the published model stands there, and is not judged.
    assert rows["iBPMMMF (firmer prior)"][2:4] == ["", ".4031 ± .0030"]
    assert rows["NMF"][:2] == ["", "NMF"]


def described(store: Store) -> str:
    return " ".join(one.words for one in NMAE.blocks(store, "full") if isinstance(one, Text))


def test_verdict_counts_rows_and_texts_name_those_that_are_far_better(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store, {"HMF": 0.38, "MMMF": 0.41, "BPMF": 0.39, "iPMMMF": 0.4032})
    verdict = NMAE.blocks(store, "full")[0]
    assert isinstance(verdict, Verdict)
    assert verdict.outcome == "reproduced"
    assert "it is ahead in 3, within noise in 0 and behind in 0 of 3;" in verdict.why
    assert "of 4 published figures on MovieLens 1M, 4 reproduced" in verdict.why
    words = described(store)
    assert "Far below what is published: BPMF weak .3900 (published .4235, better) and" in words
    fill(store, {"URP": 0.6})
    verdict = NMAE.blocks(store, "full")[0]
    assert isinstance(verdict, Verdict)
    assert verdict.outcome == "not reproduced"
    assert verdict.cause == "on MovieLens 1M NMAE larger than printed for URP weak"


def test_both_models_of_a_row_are_judged(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store, {"HMF": 0.38, "iPMMMF": 0.39, "iBPMMMF published": 0.9, "Gibbs MMMF": 0.9})
    verdict = NMAE.blocks(store, "full")[0]
    assert isinstance(verdict, Verdict)
    assert verdict.cause.endswith("printed for iBPMMMF weak")


def test_the_claim_that_hmf_is_ahead_is_judged_with_the_exception_it_has(tmp_path: Path) -> None:
    store = Store(tmp_path)
    # The exception is GP-LVM for new users; what goes beyond published models is no part of it.
    for protocol in PROTOCOLS:
        fill(store, {"HMF": 0.4, "GP-LVM": 0.39, "BPMF": 0.395, "Gibbs MMMF": 0.3}, protocol)
    verdict = NMAE.blocks(store, "full")[0]
    assert isinstance(verdict, Verdict)
    assert verdict.outcome == "not reproduced"
    behind = "BPMF weak (-.0050 ± .0000), GP-LVM weak (-.0100 ± .0000) and BPMF strong (-.0050"
    assert f"behind in 3 of 3: behind {behind}" in verdict.why
    assert verdict.cause == "on MovieLens 1M HMF is behind in 3 of 3 comparisons"
    leads = {row[0]: row for row in tables(store)["NMAE of other systems minus that of HMF"].rows}
    assert leads["GP-LVM"][1:4] == ["-.0100 ± .0000", "-.0100 ± .0000", "not run"]
    assert "Gibbs MMMF (learned priors)" in leads


def test_verdicts_that_rest_on_an_assumed_deviation_are_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store, {"HMF": 0.4080, "BPMF": 0.39})
    words = described(store)
    assert "by the deviations alone, HMF weak would be not reproduced." in words


def test_methods_that_are_compared_stop_by_one_rule() -> None:
    compared = {"HMF", "PHMF"}
    for exhibit in exhibits():
        for cell in exhibit.cells("full"):
            if cell.settings.get("method") in compared:
                assert STOPPING.items() <= cell.settings["params"].items(), exhibit.name


def test_calibrated_ensemble_is_not_judged_as_the_published_one(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store, {"HMF": 0.40, "E-MMMF": 0.3})
    assert "of 1 published figures" in NMAE.blocks(store, "full")[0].why  # type: ignore[union-attr]
    fill(store, {"E-MMMF votes": 0.5})
    verdict = NMAE.blocks(store, "full")[0]
    assert isinstance(verdict, Verdict)
    assert verdict.cause.endswith("for E-MMMF (votes) weak")


def test_sample_of_eachmovie_is_not_judged(tmp_path: Path) -> None:
    store = Store(tmp_path)
    fill(store, {"HMF": 0.40})
    found = tables(store)["NMAE on a sample of EachMovie, weak"]
    assert {row[2] for row in map(entries, found.rows)} == {""}
    assert any("withdrawn" in note for note in found.notes)


def test_one_draw_is_as_uncertain_in_the_thesis_as_here() -> None:
    ours = Found(Sample((0.42, 0.42, 0.42)), noise=0.004, noise_of_draw=0.013)
    # The printed deviation of three draws may be small by luck.
    assert judge_row(ours, PublishedFigure(0.4032, 0.0022)) == ("not reproduced", False)
    assert judge_row(ours, PublishedFigure(0.4082, 0.0022)) == ("within noise", False)
    assert judge_row(ours, PublishedFigure(0.4450, 0.0022)) == ("reproduced", True)


def test_cells_name_their_measure() -> None:
    cell = NMAE.cells_at("full", "ml-1m", "strong", "HMF")[0]
    assert isinstance(cell, Cell)
    assert (cell.measure, cell.settings["draws"]) == ("system_errors", 10)
    weak = NMAE.cells_at("full", "ml-1m", "weak", "HMF")[0]
    assert "draws" not in weak.settings
