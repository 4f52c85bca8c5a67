"""Cells on the workers of dask: of this machine, or of a cluster that is there already."""

import os
import sys
from pathlib import Path

import pytest
from distributed import Client, LocalCluster, default_client

from studies.harness import Cell, Store, run
from studies.harness.running import connect_dask


def found_on_dask(folder: Path, measure: str) -> list[dict[str, object]]:
    cells = [Cell(f"sample_measures:{measure}", {"number": number}) for number in range(5)]
    store = Store(folder)
    summary = run(cells, store, n_jobs=2, backend="dask")
    assert (summary.done, summary.failures) == (5, {})
    return [store.values(cell) or {} for cell in cells]


@pytest.fixture
def cluster():
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as one:
        yield one


def test_workers_are_started_here_and_stopped_again(tmp_path: Path) -> None:
    found = found_on_dask(tmp_path / "places", "process")
    assert os.getpid() not in {values["process"] for values in found}
    with pytest.raises(ValueError, match=r"[Nn]o client"):
        default_client()


def test_a_cluster_that_is_connected_stays_so(tmp_path: Path, cluster) -> None:
    with Client(cluster) as client:
        assert found_on_dask(tmp_path / "squares", "square")[3] == {"square": 9}
        # One worker: joblib's backend would have a fit use as many threads as it is told there are.
        assert found_on_dask(tmp_path / "cores", "cores") == [{"cores": 1}] * 5
        assert default_client() is client
        assert client.status == "running"


def test_the_scheduler_of_the_settings_is_used(tmp_path: Path, cluster) -> None:
    import dask

    with dask.config.set({"scheduler-address": cluster.scheduler_address}):
        found = found_on_dask(tmp_path, "process")
    assert len({values["process"] for values in found}) == 1


def test_a_scheduler_that_is_not_there_is_named() -> None:
    import dask

    settings = {"scheduler-address": "tcp://127.0.0.1:9", "distributed.comm.timeouts.connect": 1}
    with dask.config.set(settings), pytest.raises(ConnectionError, match=r"127\.0\.0\.1:9.*DASK_"):
        connect_dask(2)


def test_without_dask_the_way_to_get_it_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'marginmf\[cluster\]'"):
        connect_dask(2)
