"""Threads are those of this machine, whatever backend of joblib is at work."""

from typing import Any

import pytest
from joblib import cpu_count, parallel_config, register_parallel_backend
from joblib.parallel import SequentialBackend

from marginmf._utils.parameters import n_threads
from marginmf.ratings import MMMF


class Cluster(SequentialBackend):
    """A backend that counts the cores of a cluster, whatever is asked for, as that of dask does."""

    def effective_n_jobs(self, n_jobs: Any) -> int:
        return 1000


@pytest.fixture(autouse=True)
def _cluster() -> None:
    register_parallel_backend("cluster", Cluster)


def test_threads_are_counted_as_in_scikit_learn() -> None:
    cores = cpu_count()
    assert [n_threads(n) for n in (None, 1, 5, -1)] == [1, 1, 5, cores]
    with parallel_config(backend="threading", n_jobs=3):
        assert n_threads(None) == min(3, cores)
    with parallel_config(backend="sequential"):
        assert n_threads(-1) == 1


def test_a_cluster_does_not_lend_its_cores_to_threads() -> None:
    with parallel_config(backend="cluster"):
        assert n_threads(1) == 1
        assert n_threads(5) == 5
        assert n_threads(None) == n_threads(-1) == cpu_count()


def test_a_fit_on_a_cluster_is_the_same() -> None:
    pairs = [(user, item) for user in range(8) for item in range(6)]
    stars = [1 + (user * item) % 5 for user, item in pairs]
    here = MMMF(n_factors=2, random_state=0).fit(pairs, stars).predict(pairs)
    with parallel_config(backend="cluster"):
        there = MMMF(n_factors=2, random_state=0).fit(pairs, stars).predict(pairs)
    assert (here == there).all()
