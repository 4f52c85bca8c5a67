"""Write a file whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_write(destination: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside `destination` that takes its name when the block succeeds.

    On any exception, an interruption from the keyboard included, the temporary file is removed and
    what was under the name before stays as it was.  The content reaches the disk before the name
    does, so that not even a loss of power leaves half a file.

    Where the name is a link, the file that it leads to is replaced and the link stays.  Pipes and
    devices are not replaced.
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
