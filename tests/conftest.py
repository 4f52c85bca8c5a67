"""Fixtures that several test folders share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder with real datasets: $MARGINMF_DATA, else shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    named = os.environ.get("MARGINMF_DATA")
    for root in [Path(named), beside] if named else [beside]:
        if (root / "ratings").is_dir() and (root / "original").is_dir():
            return root
    pytest.skip("no real data: set MARGINMF_DATA to a folder with 'ratings' and 'original'")
