"""Ways to interrupt a fit."""

import pytest


@pytest.fixture
def path(tmp_path):
    """Where a checkpoint goes; nothing is there yet."""
    return tmp_path / "checkpoint"


@pytest.fixture
def interrupt_after():
    """Return a maker of callbacks: each raises when it has seen so many iterations."""

    def make(n, error=KeyboardInterrupt):
        seen = []

        def callback(progress):
            if len(seen) == n:
                raise error
            seen.append(progress.record)

        return callback

    return make
