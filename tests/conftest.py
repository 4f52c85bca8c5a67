"""Fixtures that several test folders share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder with real datasets: $MARGINMF_DATA, or shared/data beside the repository."""
    named = os.environ.get("MARGINMF_DATA")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    root = Path(named) if named else beside
    if not (root / "ratings").is_dir():
        pytest.skip("no real data: set MARGINMF_DATA to a folder with ratings/ml-100k.npz")
    return root
