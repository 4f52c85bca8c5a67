"""Files that are written whole or not at all, and locks between processes."""

import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

#: Seconds between two attempts to acquire a lock that another process holds.
PAUSE = 0.1


def check_destination(path: Path) -> None:
    """Raise an error unless a file can be written to a path that somebody named.

    A folder that is missing is more often a slip than a wish: it is not made.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"There is no folder {folder} for {path.name}: make it first, or name another."
        )


@contextmanager
def atomic_write(destination: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside `destination` that takes its name when the block succeeds.

    On any exception, an interruption from the keyboard included, what was under the name before
    stays as it was.  The content reaches the disk before the name does, so that not even a loss of
    power leaves half a file.  Where the name is a link, the file that it leads to is replaced;
    pipes and devices are not.  Missing folders are made, as a cache needs it; what users name goes
    through `check_destination` first.
    """
    destination = _followed(destination)
    if destination.exists() and not destination.is_file() and not destination.is_dir():
        raise OSError(f"{destination} is a pipe or a device and cannot be replaced; name a file.")
    destination.parent.mkdir(parents=True, exist_ok=True)
    # Opened by hand rather than by tempfile, whose files nobody else may read.
    temporary = destination.with_name(f".{destination.name}.{secrets.token_hex(6)}.part")
    try:
        with open(temporary, "xb") as file:
            yield file
        # By name, because the block may have filled the file by its name and not by this handle.
        _to_disk(temporary, os.O_RDWR)
        os.replace(temporary, destination)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # not every system lets a folder be opened, or flushed
        _to_disk(destination.parent, os.O_RDONLY)


def leftovers(destination: Path) -> Iterator[Path]:
    """Yield the temporary files that killed processes have left beside `destination`."""
    destination = _followed(destination)
    for path in destination.parent.iterdir():
        if path.name.startswith(f".{destination.name}.") and path.name.endswith(".part"):
            yield path


def _followed(path: Path) -> Path:
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _to_disk(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def acquire_lock(path: Path) -> Iterator[bool]:
    """Hold the lock that a file stands for; yields whether another held it before.

    The operating system keeps the lock, not the file, so a process that was killed leaves at most
    an empty file behind. On file systems without locks the block runs all the same.
    """
    waited = False
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            while not try_lock(handle):
                waited = True
                time.sleep(PAUSE)
            # Whoever held the lock removed the file at the end: then this is a lock on nothing.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
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


def try_lock(handle: int) -> bool:
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
