"""One writer at a time, where the system has locks on files."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


@contextmanager
def locked(file: BinaryIO) -> Iterator[None]:
    """Hold the lock of an open file.  It goes with the process, so a kill leaves none behind."""
    try:
        import fcntl
    except ImportError:  # a system without such locks: one run at a time in a folder, then
        yield
        return
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)
