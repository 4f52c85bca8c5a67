"""The splits of the literature, what peers are told of users and items, and the tables."""

import importlib
import sys
from collections import namedtuple
from types import SimpleNamespace
from typing import ClassVar
from zipfile import ZipFile

import numpy as np
import pytest

from marginmf.datasets import RatingsTable, load_ratings
from studies.peers import problems, state_of_the_art
from studies.peers.adapters.common import implicit_matrix
from studies.peers.bench import Task, interleave
from studies.peers.problems import described_problem, side_information, split_rows

ARCHIVE = {
    "u1.test": "1\t20\t5\t0\n2\t10\t1\t0\n",
    "u.user": "1|24|M|writer|85711\n2|33|F|other|94043\n",
    "u.item": "10|A (1995)|||x|0|1|1\n20|B (1995)|||x|1|0|0\n30|C (1995)|||x|0|0|0\n",
}
TABLE = RatingsTable("ml-100k", [1, 1, 2, 2, 2], [10, 20, 10, 20, 30], [3, 5, 1, 2, 4])


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """A small archive in the form of MovieLens 100K, and the ratings that belong to it."""
    (tmp_path / "original").mkdir()
    with ZipFile(tmp_path / "original" / "ml-100k.zip", "w") as made:
        for name, text in ARCHIVE.items():
            made.writestr(f"ml-100k/{name}", text)
    monkeypatch.setenv("MARGINMF_DATA", str(tmp_path))
    monkeypatch.setattr(problems, "load_table", lambda name: TABLE)
    side_information.cache_clear()
    yield
    side_information.cache_clear()


def test_a_published_fold_tests_on_the_pairs_of_its_file_and_trains_on_the_others(archive):
    train, test = split_rows(TABLE, "u1-u5", 1)
    assert TABLE.pairs[test].tolist() == [[1, 20], [2, 10]]
    assert sorted([*train, *test]) == list(range(len(TABLE)))


@pytest.mark.parametrize("fold", [1, 5])
def test_the_folds_of_movielens_100k_are_those_of_its_owner(data_root, monkeypatch, fold):
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    table = load_ratings("ml-100k")
    train, test = split_rows(table, "u1-u5", fold)
    with ZipFile(data_root / "original" / "ml-100k.zip") as owner:
        for part, rows in (("base", train), ("test", test)):
            lines = owner.read(f"ml-100k/u{fold}.{part}").decode().splitlines()
            published = {tuple(map(int, line.split()[:3])) for line in lines}
            found = zip(*table.pairs[rows].T.tolist(), table.ratings[rows].tolist(), strict=True)
            assert set(found) == published
            assert len(rows) == len(published) == (80_000 if part == "base" else 20_000)


def test_a_90_10_split_is_the_permutation_of_its_seed():
    table = RatingsTable("made up", range(1000), range(1000), np.ones(1000))
    train, test = split_rows(table, "90/10", 2)
    assert len(train) == 900
    assert np.array_equal(np.concatenate([train, test]), np.random.default_rng(2).permutation(1000))


def test_without_the_archive_the_error_says_what_to_set(tmp_path, monkeypatch):
    monkeypatch.setenv("MARGINMF_DATA", str(tmp_path))
    with pytest.raises(
        SystemExit, match=r"Set MARGINMF_DATA to a folder that has original/ml-100k"
    ):
        split_rows(TABLE, "u1-u5", 1)


def test_attributes_are_groups_of_columns(archive):
    side = side_information("ml-100k")
    assert side["user_ids"].tolist() == [1, 2]
    # Women and men, two ages, two occupations.
    assert side["user_features"].tolist() == [[0, 1, 1, 0, 0, 1], [1, 0, 0, 1, 1, 0]]
    assert side["user_groups"].tolist() == [2, 2, 2]
    assert side["item_features"].tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 0]]
    assert side["item_groups"].tolist() == [3]


def test_who_rated_what_is_scaled_by_the_number_of_ratings():
    found = implicit_matrix(np.array([0, 0, 1]), np.array([0, 2, 1]), (3, 3)).toarray()
    half = np.sqrt(0.5)
    assert np.allclose(found, [[half, 0, half], [0, 1, 0], [0, 0, 0]])


Block = namedtuple("Block", "original_to_block data")


class Machine:
    """In place of myFM's: keeps the blocks that it is given."""

    blocks: ClassVar[list] = []

    def __init__(self, rank, random_seed):
        self.blocks.clear()

    def fit(self, columns, targets, X_rel, n_iter, group_shapes):
        assert sum(group_shapes) == sum(block.data.shape[1] for block in X_rel)
        self.blocks.append(X_rel)

    def predict(self, columns, blocks):
        self.blocks.append(blocks)
        return np.full(len(blocks[0].original_to_block), 3.0)


@pytest.fixture
def relational(monkeypatch):
    """The adapter of myFM, without myFM."""
    made_up = SimpleNamespace(MyFMRegressor=Machine, MyFMOrderedProbit=Machine, RelationBlock=Block)
    monkeypatch.setitem(sys.modules, "myfm", made_up)
    monkeypatch.delitem(sys.modules, "studies.peers.adapters.myfm", raising=False)
    yield importlib.import_module("studies.peers.adapters.myfm").Relational
    sys.modules.pop("studies.peers.adapters.myfm", None)


def test_implicit_columns_hold_the_training_pairs_and_no_test_pair(archive, relational):
    problem = described_problem("ml-100k", "u1-u5", 1)
    adapter = relational(threads=1, rank=2, n_iter=1, attributes=True)
    adapter.describe(**problem.side)
    adapter.prepare(**problem.train)
    adapter.fit()
    adapter.answer(**problem.test)
    trained = {(1, 10), (2, 20), (2, 30)}
    n_users, n_items = 2, 3
    for pairs, (users, items) in zip((problem.train, problem.test), Machine.blocks, strict=True):
        rated = users.data.toarray()[users.original_to_block, n_users : n_users + n_items]
        raters = items.data.toarray()[items.original_to_block, n_items : n_items + n_users]
        for row, (user, item) in enumerate(zip(pairs["users"], pairs["items"], strict=True)):
            assert set(np.flatnonzero(rated[row])) == {
                (film - 10) // 10 for one, film in trained if one == user
            }
            assert set(np.flatnonzero(raters[row])) == {
                one - 1 for one, film in trained if film == item
            }
        assert (
            (users.data.toarray() ** 2).sum(axis=1).round(6) == 5
        ).all()  # five groups, one each


def canned(method, repetition, rmse, data="ml-100k", **more):
    return {
        **{"method": method, "peer": "", "data": data, "threads": 1, "repetition": repetition},
        "split": state_of_the_art.SPLITS[data],
        "phases": {phase: {"cpu": repetition, "wall": 9.0} for phase in ("prepare", "fit")},
        "errors": {"rmse_real": rmse, "mae_real": rmse - 0.2, "mae": rmse - 0.25},
        **more,
    }


def test_the_table_has_means_and_the_first_split_alone():
    records = [canned("myFM", 1, 0.9), canned("myFM", 2, 0.8)]
    first, *_ = state_of_the_art.tables(records)
    assert "published folds" in first
    assert "| method | n | RMSE | MAE | MAE, level | RMSE, u1 | MAE, u1 | MAE, level, u1 |" in first
    figures = "0.8500 | 0.6500 | 0.6000 | 0.9000 | 0.7000 | 0.6500 | 3.00 (2.00-4.00)"
    assert f"| myFM | 2 | {figures} |" in first
    assert "| MarginEnsemble() | 0 | - | - | - | - | - | - | - |" in first


def test_what_takes_too_long_is_left_out_with_its_reason():
    (name, data), reason = next(iter(state_of_the_art.SLOW.items()))
    slow = [method for method in state_of_the_art.METHODS if method.name == name]
    cells = interleave(
        slow,
        [Task("described", data, "90/10"), Task("described", "ml-100k", "u1-u5")],
        [1],
        1,
    )
    assert [one.settings["data"] for one in state_of_the_art.skip_slow(cells)] == ["ml-100k"]
    table, *_ = state_of_the_art.tables([canned("myFM", 1, 0.8, data)])
    assert f"- {name}: {reason}." in table


def test_published_figures_are_under_their_splits():
    *_, published = state_of_the_art.tables([])
    assert "| 0.8889 | 0.6950 | 0.8227 | 0.6421 |" in published
    assert "(ICML 2016) | - | - | 0.829 | - |" in published
