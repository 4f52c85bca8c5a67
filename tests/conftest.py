"""Fixtures that several test folders share."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from marginmf.datasets import RatingsTable, dataset_path, load_ratings

# A check has minutes; `pytest --hypothesis-profile=thorough` has more time.
settings.register_profile("quick", max_examples=30)
settings.register_profile("thorough", max_examples=300, deadline=None)
settings.load_profile("quick")


def data_folders() -> list[Path]:
    """Where real datasets may be: $MARGINMF_DATA, and shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    named = os.environ.get("MARGINMF_DATA")
    return [Path(named), beside] if named else [beside]


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder with all real datasets, for tests that need more than MovieLens 100K."""
    for root in data_folders():
        if (root / "ratings").is_dir() and (root / "original").is_dir():
            return root
    pytest.skip("no real data: set MARGINMF_DATA to a folder with 'ratings' and 'original'")


@pytest.fixture(scope="session")
def movielens_100k() -> RatingsTable:
    """MovieLens 100K from a data folder, or from the cache where a demo has left it."""
    for folder in [*filter(Path.is_dir, data_folders()), None]:
        if dataset_path("ml-100k", data_dir=folder) is not None:
            return load_ratings("ml-100k", data_dir=folder, offline=True)
    pytest.skip("no MovieLens 100K: run 'marginmf datasets get ml-100k', or set MARGINMF_DATA")


@pytest.fixture(scope="session")
def movielens_80_20(movielens_100k):
    """Pairs and ratings to learn from, and those of a random fifth to test on."""
    pairs, ratings = movielens_100k.pairs, np.asarray(movielens_100k.ratings, float)
    train, test = np.split(np.random.default_rng(1).permutation(len(pairs)), [80_000])
    return pairs[train], ratings[train], pairs[test], ratings[test]
