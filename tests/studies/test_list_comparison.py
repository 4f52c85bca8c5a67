"""Top-10 lists: the judge beside a slow oracle, how settings are chosen, and whole measurements."""

import json
from dataclasses import replace
from math import log2

import numpy as np
import pytest
from scipy.sparse import csr_array

from marginmf.datasets import RatingsTable, make_ratings
from studies.__main__ import main
from studies.harness import Store
from studies.peers import bench, lists, worker
from studies.peers.adapters.common import Feedback
from studies.peers.bench import newest_records
from studies.peers.problems import INNER_SPLIT, LIST_SPLIT, list_problem, list_quality


@pytest.fixture
def table(monkeypatch):
    """Few ratings, with ids that are not codes."""
    made = make_ratings(40, 30, n_factors=2, observed=0.4, random_state=0)
    made = RatingsTable("made up", made.users * 7 + 100, made.items * 3 + 5, made.ratings)
    monkeypatch.setattr("studies.peers.problems.load_table", lambda name: made)
    return made


def oracle(ranked, relevant, n_items):
    """Compute the measures from their definitions, user by user."""
    found = {name: [] for name in ("ndcg", "precision", "recall", "map", "mrr")}
    shown = set()
    for user, wanted in relevant.items():
        items = [item for item in ranked[user] if item >= 0]
        shown |= set(items)
        hits = [rank for rank, item in enumerate(items, 1) if item in wanted]
        n = min(10, len(wanted))
        ideal = sum(1 / log2(rank + 1) for rank in range(1, n + 1))
        found["ndcg"].append(sum(1 / log2(rank + 1) for rank in hits) / ideal)
        found["precision"].append(len(hits) / 10)
        found["recall"].append(len(hits) / len(wanted))
        found["map"].append(sum((k + 1) / rank for k, rank in enumerate(hits)) / n)
        found["mrr"].append(1 / hits[0] if hits else 0.0)
    return {name: np.mean(values) for name, values in found.items()} | {
        "coverage": len(shown) / n_items
    }


@pytest.mark.parametrize("seed", range(5))
def test_the_judge_agrees_with_the_definitions(seed):
    rng = np.random.default_rng(seed)
    n_users, n_items = 30, 40
    ranked = np.array([rng.permutation(n_items)[:10] for _ in range(n_users)])
    ranked[::3, 4:] = -1
    counts = rng.integers(0, 25, n_users)  # some have nothing relevant, some more than ten
    wanted = {
        user: set(rng.permutation(n_items)[:count].tolist()) for user, count in enumerate(counts)
    }
    dense = np.array([[item in wanted[user] for item in range(n_items)] for user in wanted])
    expected = oracle(ranked, {user: items for user, items in wanted.items() if items}, 37)
    found = list_quality(ranked, csr_array(dense), 37)
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_perfect_lists_and_empty_lists():
    relevant = csr_array(np.array([[True, True, False], [False, False, True]]))
    ranked = np.full((2, 10), -1)
    assert set(list_quality(ranked, relevant, 3).values()) == {0.0}
    ranked[0, :2], ranked[1, 0] = [1, 0], 2
    found = list_quality(ranked, relevant, 3)
    assert all(found[name] == 1.0 for name in ("ndcg", "recall", "map", "mrr", "coverage"))
    assert found["precision"] == pytest.approx(0.15)


def test_relevant_items_that_training_lacks_count_in_the_ideal(monkeypatch):
    # One user, and two items that nobody has rated in training.
    held_out = np.random.default_rng(1).permutation(10)[8:]
    items = np.arange(10)
    ratings = np.where(np.isin(items, held_out), 5, 1)
    made = RatingsTable("made up", np.ones(10, int), items, ratings)
    monkeypatch.setattr("studies.peers.problems.load_table", lambda name: made)
    problem = list_problem("made up", LIST_SPLIT, 1)
    ranked = np.full((1, 10), -1)
    ranked[0, 0] = held_out[0]
    found = problem.judge({"lists": ranked})
    assert found["ndcg"] == pytest.approx(1 / (1 + 1 / log2(3)))


def test_the_split_is_that_of_the_seed_and_lists_are_for_all_training_users(table):
    problem = list_problem("made up", LIST_SPLIT, 1)
    rows = np.random.default_rng(1).permutation(len(table))[: len(table) * 4 // 5]
    users, items = np.unique(table.users), np.unique(table.items)
    pairs = np.column_stack([users[problem.train["users"]], items[problem.train["items"]]])
    assert sorted(map(tuple, pairs.tolist())) == sorted(map(tuple, table.pairs[rows].tolist()))
    assert np.array_equal(problem.test["users"], np.unique(problem.train["users"]))
    assert sorted(problem.test) == ["n", "users"]


def test_settings_are_chosen_within_the_training_ratings(table):
    outer = list_problem("made up", LIST_SPLIT, 1)
    inner = list_problem("made up", INNER_SPLIT, 1)
    pairs, fewer = (
        set(zip(part.train["users"].tolist(), part.train["items"].tolist(), strict=True))
        for part in (outer, inner)
    )
    assert fewer < pairs
    assert len(fewer) == len(pairs) * 4 // 5
    _, seen, relevant = inner.judge.args
    judged = set(zip(*(codes.tolist() for codes in relevant.nonzero()), strict=True))
    assert seen.sum() == len(fewer)
    assert judged
    assert judged <= pairs - fewer


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda ranked, seen: ranked[:, :9], "of shape"),
        (lambda ranked, seen: ranked.astype(float), "float64"),
        (lambda ranked, seen: np.where(np.arange(10) == 3, seen[:, None], ranked), "has rated"),
        (lambda ranked, seen: np.where(np.arange(10) == 3, ranked[:, :1], ranked), "twice"),
    ],
)
def test_lists_that_are_not_valid_are_found_out(table, change, fault):
    problem = list_problem("made up", LIST_SPLIT, 1)
    users, pairs = problem.test["users"], problem.train
    rated = [pairs["items"][pairs["users"] == user] for user in users]
    ranked = np.full((len(users), 10), -1)
    for row, known in zip(ranked, rated, strict=True):
        left = np.setdiff1d(np.arange(30), known)[:10]
        row[: len(left)] = left
    assert problem.judge({"lists": ranked})["ndcg"] > 0
    with pytest.raises(ValueError, match=fault):
        problem.judge({"lists": change(ranked, np.array([known[0] for known in rated]))})


def test_lists_from_likes_leave_out_what_was_rated_low():
    users, items = np.array([1, 1, 1, 2, 2]), np.array([10, 11, 12, 10, 13])
    feedback = Feedback(users, items, np.array([5, 1, 2, 4, 4]), likes=True)
    assert feedback.items.tolist() == [10, 10, 13]
    assert feedback.n_more == 2
    found = feedback.lists(
        np.array([1, 2, 3]), np.array([2, 1, 1, 1, 1]), np.array([11, 12, 13, 11, -1]), 2
    )
    assert found["lists"].tolist() == [[13, -1], [11, -1], [-1, -1]]


@pytest.fixture
def workers_here(monkeypatch):
    """Workers in this process: the bench's own tests start real ones."""

    def run_worker(python, task, folder, timeout, ours):
        out = folder / "out"
        out.mkdir(exist_ok=True)
        try:
            worker.measure({**task, "out": str(out)})
        except Exception as error:
            raise bench.Failed(f"{type(error).__name__}: {error}") from error
        answers = dict(np.load(out / "answers.npz")) if "arrays" in task else {}
        return json.loads((out / "record.json").read_text()), answers

    monkeypatch.setattr(bench, "run_worker", run_worker)


@pytest.mark.usefixtures("workers_here")
def test_our_methods_from_end_to_end(tmp_path, table, monkeypatch):
    hmf = next(family for family in lists.FAMILIES if family.method.name == "HMF()")
    tuned = replace(
        hmf,
        method=replace(hmf.method, name="EASE", options={"estimator": "EASE", "level": 4.0}),
        settings=lists.grid(reg=(1.0, 100.0)),
    )
    absent = replace(hmf, method=replace(hmf.method, name="None", options={"estimator": "None_"}))
    families = [tuned, absent]
    monkeypatch.setattr(lists, "FAMILIES", families)
    assert main(["lists", "--data", "ml-100k", "--out", str(tmp_path)]) == 0
    records = newest_records(Store(tmp_path), "lists")
    tried = {
        one["options"]["reg"]: one["errors"]["ndcg"]
        for one in records
        if one["split"] == INNER_SPLIT
    }
    cells = list(lists.settled_cells(families, "ml-100k", 1, records))
    assert sorted(tried) == [1.0, 100.0]
    chosen = cells[0].settings["options"]["reg"]
    assert tried[chosen] == max(tried.values())
    table_text, note = lists.tables(records)
    assert f"best of 2: reg={chosen} |" in table_text
    assert "| EASE | 0." in table_text
    assert "None is not measured: AttributeError: module 'marginmf.ratings' has no" in table_text
    assert "nDCG@10" in note


def test_every_setting_has_a_name_of_its_own_and_fair_peers_have_several():
    for data in lists.TITLES:
        for family in lists.FAMILIES:
            names = [one.name for one in family.candidates(data)]
            assert len(set(names)) == len(names)
            assert bool(names) == bool(family.method.peer)


def test_the_best_methods_come_first():
    records = [
        {
            **{
                "method": name,
                "peer": "",
                "data": "ml-1m",
                "split": LIST_SPLIT,
                "threads": 1,
            },
            **{"repetition": 1, "options": {"estimator": name}},
            "phases": {phase: {"cpu": 1.0, "wall": 2.0} for phase in ("prepare", "fit", "answer")},
            "errors": dict.fromkeys(lists.MEASURES, ndcg),
        }
        for name, ndcg in (("second", 0.2), ("first", 0.3))
    ]
    text, _ = lists.tables(records)
    assert text.startswith("## MovieLens 1M\n")
    assert text.index("| first |") < text.index("| second |")
    assert "| 2.00 | 1.00 | 6.00 | default |" in text


def test_markdown_prints_what_was_measured(tmp_path, capsys):
    assert main(["lists", "--markdown", "--out", str(tmp_path)]) == 0
    assert "nDCG@10" in capsys.readouterr().out
