from pathlib import Path

import pytest
from samples import EVERYTHING, EXHIBITS, fill

from marginmf.experiments import Store
from marginmf.experiments.report import Report, write_report


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A report with every kind of block, in which some cells have not been run."""
    folder: Path = tmp_path_factory.mktemp("report")
    store = Store(folder)
    fill(store, EVERYTHING.cells("full")[:60])
    return write_report(EXHIBITS, store, "full", folder)
