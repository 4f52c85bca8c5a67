import json
from pathlib import Path

import pytest


def test_facts_of_a_file(run, ratings_file: Path) -> None:
    result = json.loads(run("info", ratings_file, "--json").out)
    assert (result["kind"], result["name"]) == ("ratings", "small.csv")
    assert (result["n_ratings"], result["n_users"], result["n_items"]) == (375, 30, 25)
    assert result["density"] == 0.5
    assert sum(result["levels"].values()) == 375
    assert result["user_ids"] == "text"
    assert result["item_ids"] == "whole numbers"
    assert result["duplicates"] == {"n_pairs": 0, "first": []}


def test_facts_in_words(run) -> None:
    Path("films.tsv").write_text("ann\t7\t4\t881250949\nann\t7\t5\t891250949\nbob\t9\t1\t0\n")
    outcome = run("info", "films.tsv")
    assert outcome.code == 0
    lines = [line.strip() for line in outcome.out.splitlines()]
    assert lines[0] == "films.tsv"
    for line in (
        "ratings         3, 50.00% of all pairs",
        "users           2, 1 to 2 ratings each (median 1.5)",
        "4             1 (33.3%)",
        "repeated pairs  1: ('ann', 7)",
        "times           0 to 1998-03-30",
    ):
        assert line in lines


def test_what_a_fit_would_refuse_is_described_all_the_same(run) -> None:
    Path("one.csv").write_text("a,x,4\na,x,4\n")
    result = json.loads(run("info", "one.csv", "--json").out)
    assert result["n_levels"] == 1
    assert result["duplicates"]["n_pairs"] == 1


def test_many_levels_are_not_listed(run) -> None:
    Path("fine.csv").write_text("".join(f"a,{k},{k / 7:.3f}\n" for k in range(50)))
    result = json.loads(run("info", "fine.csv", "--json").out)
    assert (result["n_levels"], result["levels"]) == (50, None)
    assert run("info", "fine.csv").code == 0


def test_a_dataset_by_its_name(run, data_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    result = json.loads(run("info", "ml-100k", "--json").out)
    assert result["levels"] == {"1": 6110, "2": 11370, "3": 27145, "4": 34174, "5": 21201}
    assert result["ratings_a_user"]["fewest"] == 20


def test_facts_of_a_model(run, model_file: Path) -> None:
    outcome = run("info", model_file, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    assert (result["kind"], result["class_name"]) == ("model", "MMMF")
    assert result["counts"] == {"users": 30, "items": 25, "ratings": 375, "levels": 5}
    assert result["params"]["n_factors"] == 3
    assert result["file_size"] == model_file.stat().st_size


def test_facts_of_a_model_in_words_whatever_its_name(run, model_file: Path) -> None:
    Path("renamed").write_bytes(model_file.read_bytes())
    outcome = run("info", "renamed")
    assert outcome.code == 0
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert lines[:3] == [
        "renamed",
        "method MMMF",
        "learned from 375 ratings of 25 items by 30 users, 5 levels",
    ]
    assert "n_factors 3" in lines


def test_only_the_head_of_a_model_is_read(run, model_file: Path) -> None:
    content = model_file.read_bytes()
    Path("damaged.marginmf").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert run("info", "damaged.marginmf").code == 0
