"""Files that are written whole or not at all, and locks between processes."""

import errno
import hashlib
import os
import platform
import re
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

#: Seconds between two attempts to acquire a lock that another process holds.
PAUSE = 0.1
#: Seconds without a change after which a temporary file counts as abandoned where no lock tells:
#: one of another machine; and one on Windows, which does not remove what a process has open.
DAY, MINUTE = 86_400, 60
#: Longer names than this leave no room for the rest of the name of a temporary file.
LONGEST_STEM = 180
#: The most characters of a path in a message.
SHOWN = 120
_NO_RIGHT = "You may not write there: change the permissions, or write elsewhere"
#: What to do where a system refuses to write, by the names of its error numbers.
ADVICE = {
    "ENOSPC": "The disk is full: make room on it, or write elsewhere",
    "EDQUOT": "Your quota of disk space is used up: remove files, or write elsewhere",
    "EFBIG": "The file is larger than is allowed there: raise the limit (ulimit -f), or "
    "write elsewhere",
    "EROFS": "That file system is read-only: write elsewhere",
    "EACCES": _NO_RIGHT,
    "EPERM": _NO_RIGHT,
    "ENAMETOOLONG": "The name is too long: give a shorter one",
    "ELOOP": "Its links lead in a circle: name the file itself",
}


def check_destination(path: Path) -> None:
    """Raise an error unless a file can be written to a path that somebody named.

    A folder that is missing is more often a slip than a wish: it is not made.
    """
    check_path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"There is no folder {folder} for {path.name}: make it first, or name another."
        )


def check_path(path: Path) -> None:
    """Raise an error if no file can have that name, or if its links lead in a circle."""
    if "\0" in str(path):
        raise ValueError(f"The name {clipped(path)!r} has the character NUL in it: leave it out.")
    with named(path), suppress(FileNotFoundError, NotADirectoryError):
        path.stat()


@contextmanager
def named(path: Path, *others: Path) -> Iterator[None]:
    """Say, where a system refuses to write in the block, to which file and what can be done.

    An error that names another file than the path, its folders or those others is left alone.
    """
    try:
        yield
    except OSError as error:
        own = {os.fspath(one) for one in (path, *path.parents, *others)}
        advice = ADVICE.get(errno.errorcode.get(error.errno or 0, ""))
        if advice is None or (error.filename is not None and str(error.filename) not in own):
            raise
        raise OSError(error.errno, advice, clipped(path)) from error


def clipped(path: Path) -> str:
    """Return a path as messages show it: without the middle of one that is very long."""
    text = str(path)
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]}...{text[-SHOWN // 3 :]}"


@contextmanager
def atomic_write(destination: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside `destination` that takes its name when the block succeeds.

    On any exception, an interruption from the keyboard included, what was under the name before
    stays as it was.  The content reaches the disk before the name does, so that not even a loss of
    power leaves half a file.  Where the name is a link, the file that it leads to is replaced;
    pipes and devices are not.  Missing folders are made, as a cache needs it; what users name goes
    through `check_destination` first.

    What killed processes left of the same destination is removed first.
    """
    check_path(destination)
    destination = _followed(destination)
    if destination.exists() and not destination.is_file() and not destination.is_dir():
        raise OSError(f"{destination} is a pipe or a device and cannot be replaced; name a file.")
    with named(destination):
        destination.parent.mkdir(parents=True, exist_ok=True)
        for left in leftovers(destination):
            _remove_abandoned(left)
    temporary, lock = _new_temporary(destination)
    try:
        with named(destination, temporary):
            with open(temporary, "wb") as file:
                yield file
            # By name, because the block may have filled the file by its name, not by this handle.
            _to_disk(temporary, os.O_RDWR)
            os.replace(temporary, destination)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        if lock is not None:
            os.close(lock)
    with suppress(OSError):  # not every system lets a folder be opened, or flushed
        _to_disk(destination.parent, os.O_RDONLY)


def leftovers(destination: Path) -> Iterator[Path]:
    """Yield the temporary files beside `destination`: of killed processes, and of running ones."""
    destination = _followed(destination)
    stem = re.escape(_stem(destination))
    name = re.compile(rf"\.{stem}\.(?:[0-9a-f]{{8}}-)?[0-9a-f]{{12}}\.part")
    with os.scandir(destination.parent) as entries:
        found = [entry.name for entry in entries if name.fullmatch(entry.name)]
    yield from map(destination.with_name, found)


def _new_temporary(destination: Path) -> tuple[Path, int | None]:
    """Make a temporary file; return its path and, where there are locks, a handle that locks it.

    The system drops the lock with the process, however that ends.  Windows would not rename a file
    that is open, so there nothing is locked.
    """
    while True:
        # Made by hand rather than by tempfile, whose files nobody else may read.
        token = secrets.token_hex(6)
        temporary = destination.with_name(f".{_stem(destination)}.{_machine()}-{token}.part")
        with named(destination, temporary):
            handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        if sys.platform == "win32":
            os.close(handle)
            return temporary, None
        # Another process that cleans up may have come between: then it removes, or has removed, it.
        if try_lock(handle) and temporary.exists():
            return temporary, handle
        os.close(handle)


def _remove_abandoned(path: Path) -> None:
    """Remove a temporary file unless its process may still be writing it."""
    with suppress(OSError):  # another process was quicker, or it is not ours to remove
        own = f".{_machine()}-" in path.name
        if path.is_symlink() or not path.is_file():
            return
        if time.time() - path.stat().st_mtime > (
            MINUTE if own and sys.platform == "win32" else DAY
        ):
            path.unlink()
        elif own and sys.platform != "win32":
            handle = os.open(path, os.O_RDWR)
            try:
                if _lock(handle):
                    path.unlink()
            finally:
                os.close(handle)


def _machine() -> str:
    """Return a code of this machine: locks need not reach others that share a folder with it."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def _stem(destination: Path) -> str:
    name = destination.name
    if len(os.fsencode(name)) <= LONGEST_STEM:
        return name
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:32]


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
    return _lock(handle) is not False


def _lock(handle: int) -> bool | None:
    """Return whether the lock was taken; None where there are no locks."""
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
        return None
    return True
