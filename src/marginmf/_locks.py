"""Locks between processes, which end with the process that holds them, however that ends."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PAUSE = 0.1


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Hold the lock that a file stands for; yields whether another held it before.

    The operating system keeps the lock, not the file, so a process that was killed leaves at most
    an empty file behind. On file systems without locks the block runs all the same.
    """
    waited = False
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            while not take(handle):
                waited = True
                time.sleep(PAUSE)
            # Whoever held the lock removed the file at the end: then this is a lock on nothing.
            if _is_at(handle, path):
                break
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
    try:
        yield waited
    finally:
        with suppress(OSError):  # Windows does not remove what is open, here or in another process
            path.unlink()
        os.close(handle)


def take(handle: int) -> bool:
    """Take the lock of an open file or folder until it is closed; False if another has it.

    Where the system, or the file system, has no locks, everybody takes it.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except (OSError, ImportError):  # a file system, or a system, without locks
        return True
    return True


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False
