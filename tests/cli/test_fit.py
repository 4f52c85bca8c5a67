import json
import re
from pathlib import Path

import pytest

import marginmf
from marginmf.datasets import read_ratings
from marginmf.ratings import HMF, MMMF

QUICK = ["--model", "mmmf", "--factors", "3", "--reg", "1", "--out", "m.marginmf"]


def test_it_says_what_was_read_what_was_fitted_and_where_it_is(run, ratings_file: Path) -> None:
    outcome = run("fit", ratings_file, *QUICK, "--quiet")
    assert (outcome.code, outcome.err) == (0, "")
    read, fitted, saved = outcome.out.splitlines()
    assert (
        read
        == "small.csv: 375 ratings (1 to 5) of 25 items by 30 users; columns user, item, rating."
    )
    assert re.fullmatch(r"MMMF: 3 factors; reg 1; iterations \d+; seconds \d+\.\d\d\.", fitted)
    assert saved.startswith("Saved to m.marginmf (")
    assert [path.name for path in Path().iterdir()] == ["m.marginmf"]


def test_the_model_is_that_of_the_library(run, ratings_file: Path) -> None:
    run("fit", ratings_file, *QUICK, "--seed", 4)
    table = read_ratings(ratings_file)
    expected = MMMF(3, 1.0, random_state=4).fit(table.pairs, table.ratings)
    loaded = marginmf.load("m.marginmf")
    assert loaded.verbose == 0
    assert (loaded.decision_function(table.pairs) == expected.decision_function(table.pairs)).all()


def test_json(run, ratings_file: Path) -> None:
    arguments = ["--model", "hmf", "--reg", "1,2,2,1", "--factors", 3, "--out", "h.marginmf"]
    outcome = run("fit", ratings_file, *arguments, "--json", "-q")
    assert (outcome.code, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    assert result["model"]["class"] == "HMF"
    assert result["model"]["reg"] == [1, 2, 2, 1]
    assert len(result["model"]["n_iter"]) == 4
    assert result["bytes"] == Path("h.marginmf").stat().st_size
    assert isinstance(marginmf.load("h.marginmf"), HMF)


def test_the_model_is_calibrated_unless_told(run, ratings_file: Path) -> None:
    run("fit", ratings_file, *QUICK)
    run("fit", ratings_file, *QUICK, "--no-calibrate", "--out", "raw.marginmf")
    assert marginmf.load("m.marginmf")._calibrator is not None
    assert marginmf.load("raw.marginmf")._calibrator is None


def test_the_weight_is_chosen_unless_given(run, ratings_file: Path) -> None:
    arguments = ["--model", "mmmf", "--factors", 3, "--max-iter", 20, "--out", "a.marginmf"]
    outcome = run("fit", ratings_file, *arguments)
    chosen = marginmf.load("a.marginmf").reg_
    assert f"reg {chosen:.4g} (chosen on held-out ratings)" in outcome.out


def test_a_sampler_makes_sweeps_and_says_how_many_factors_it_found(run, ratings_file: Path) -> None:
    few = ["--set", "n_burn=2", "--set", "n_samples=4", "--out", "g.marginmf"]
    outcome = run("fit", ratings_file, "--model", "bpmf", "--set", "thin=2", "--factors", 2, *few)
    assert re.search(r"^BPMF: 2 factors; sweeps 10; seconds", outcome.out, re.M)
    arguments = ["--model", "gibbsipmmmf", "--set", "max_factors=2", *few, "--force"]
    outcome = run("fit", ratings_file, *arguments)
    wanted = r"^GibbsIPMMMF: 2 factors, of at most 2 \(reached in 100% of the samples\); sweeps 6; "
    assert re.search(wanted, outcome.out, re.M)
    result = json.loads(run("fit", ratings_file, *arguments, "--json").out)
    assert (result["model"]["n_factors"], result["model"]["limit_reached"]) == (2, 1.0)


def test_what_was_chosen_is_shown(run, ratings_file: Path) -> None:
    arguments = ["--model", "ipmmmf", "--factors", 2, "--max-iter", 2, "--out", "i.marginmf"]
    outcome = run("fit", ratings_file, *arguments)
    chosen = marginmf.load("i.marginmf").cost_
    assert f"IPMMMF: 2 factors; cost {chosen:.4g} (chosen); iterations 2; " in outcome.out
    outcome = run("fit", ratings_file, *arguments, "--set", "cost=0.1", "--force")
    assert "IPMMMF: 2 factors; iterations" in outcome.out


def test_an_ensemble(run, ratings_file: Path) -> None:
    arguments = ["--model", "ensemble", "--set", "n_estimators=2", "--set", 'members=["mmmf"]']
    outcome = run("fit", ratings_file, *arguments, "--out", "e.marginmf", "-q")
    assert outcome.code == 0, outcome.err
    assert "MarginEnsemble: 2 members; seconds " in outcome.out
    assert json.loads(run("info", "e.marginmf", "--json").out)["class_name"] == "MarginEnsemble"


def test_progress_goes_to_standard_error_of_a_terminal(
    run, ratings_file: Path, monkeypatch
) -> None:
    assert run("fit", ratings_file, *QUICK).err == ""
    monkeypatch.setattr("marginmf.progress.is_watched", lambda: True)
    outcome = run("fit", ratings_file, *QUICK, "--force", "--json")
    assert "MMMF" in outcome.err
    json.loads(outcome.out)


def test_force_replaces_a_model(run, ratings_file: Path) -> None:
    Path("m.marginmf").write_text("an old one")
    assert run("fit", ratings_file, *QUICK).code == 2
    assert Path("m.marginmf").read_text() == "an old one"
    assert run("fit", ratings_file, *QUICK, "--force").code == 0
    assert isinstance(marginmf.load("m.marginmf"), MMMF)


def test_the_destination_is_checked_before_the_work(
    run, ratings_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(*arguments: object, **named: object) -> None:
        raise AssertionError("the ratings were read although the model cannot be saved")

    monkeypatch.setattr("marginmf.datasets.read_ratings", too_late)
    assert run("fit", ratings_file, *QUICK, "--out", "absent/m.marginmf").code == 2


def test_a_fit_that_fails_leaves_the_old_model(
    run, ratings_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*arguments: object, **named: object) -> None:
        raise OSError(28, "No space left on device", "m.marginmf")

    Path("m.marginmf").write_text("the old one")
    monkeypatch.setattr("os.replace", full_disk)
    outcome = run("fit", ratings_file, *QUICK, "--force", "--quiet")
    advice = "The disk is full: make room on it, or write elsewhere."
    assert (outcome.code, outcome.err) == (2, f"marginmf: m.marginmf: {advice}\n")
    assert [path.read_text() for path in Path().iterdir()] == ["the old one"]


@pytest.mark.parametrize(("rule", "level"), [("last", 2.0), ("mean", 3.0)])
def test_repeated_pairs_by_the_rule(run, rule: str, level: float) -> None:
    rows = [f"u{u},{i},{1 + (u + i) % 3}" for u in range(6) for i in range(6)]
    Path("twice.csv").write_text("\n".join(["a,x,4", "a,x,2", *rows]))
    assert run("fit", "twice.csv", *QUICK, "--duplicates", rule).code == 0
    ratings = marginmf.load("m.marginmf").ratings_
    (code,) = ratings.codes[ratings.rows == ratings.users.encode(["a"])[0]]
    assert ratings.levels[code] == level


def test_columns_by_name(run) -> None:
    rows = [f"{1 + (u + i) % 3},{i},u{u}" for u in range(6) for i in range(6)]
    Path("odd.csv").write_text("\n".join(["how,what,who", *rows]))
    columns = ["--user", "who", "--item", "what", "--rating", "how"]
    assert run("fit", "odd.csv", *QUICK, *columns).code == 0
    model = marginmf.load("m.marginmf")
    assert model.users_.ids[0] == "u0"
    assert model.levels_.tolist() == [1, 2, 3]


def test_an_interrupted_fit_goes_on_from_its_checkpoint(
    run, ratings_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self, data):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MMMF, "_fit", interrupt)
        outcome = run("fit", ratings_file, *QUICK, "--checkpoint", "kept")
    assert outcome.code == 130
    assert outcome.err.endswith("the same command continues.\nmarginmf: interrupted.\n")
    assert not Path("m.marginmf").exists()
    assert run("fit", ratings_file, *QUICK, "--checkpoint", "kept").code == 0
    assert [path.name for path in Path().iterdir()] == ["m.marginmf"]
