"""A folder with a file for each minimisation of a fit: its result or, while it runs, its state."""

import hashlib
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

from marginmf._atomic import leftovers
from marginmf._locks import take
from marginmf.checkpoints.fingerprint import difference
from marginmf.checkpoints.pieces import Piece, read_piece, write_piece

#: The name of the piece that says whose checkpoint this is.
FIT = "fit"

#: The largest share of the time that may go into writing.
LARGEST_SHARE = 0.05


class Store:
    """Keeps the pieces of one fit.  Any thread may call it.

    Pieces wait in memory until it is time to write, then all are written in the order in which
    they came: what a piece depends on is there before it.

    Parameters
    ----------
    folder : Path
        Where the files are.
    seconds : float
        So long at least between two writes; 0 is no wait at all.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder = folder
        self.seconds = seconds
        self._names: set[str] = {FIT}
        self._unwritten: dict[str, Piece] = {}
        self._lock = RLock()
        self._next_write = time.monotonic() + seconds

    @contextmanager
    def opened(self, fingerprint: dict[str, Any]) -> Iterator[None]:
        """Make or take up the folder; remove it after success, bring it up to date otherwise."""
        with claimed(self.folder):
            self._begin(fingerprint)
            try:
                yield
            except BaseException as error:
                try:
                    self._write()
                except OSError as failure:
                    error.add_note(str(failure))
                if not self._others():
                    self._remove()  # nothing was done that is worth keeping
                raise
            self._remove()

    def find(self, name: str) -> Piece | None:
        """Return the piece of this name from an earlier call of the fit, if there is one."""
        with self._lock:
            if name in self._names:
                raise RuntimeError(f"Two parts of one fit have the same name, {name!r}.")
            self._names.add(name)
        path = self._path(name)
        return read_piece(path, name) if path.exists() else None

    def note(self, name: str, piece: Piece) -> None:
        """Keep a piece instead of the one that has this name now; its vectors must not change."""
        with self._lock:
            self._unwritten[name] = piece
            if time.monotonic() >= self._next_write:
                self._write()

    def _write(self) -> None:
        with self._lock:
            began = time.monotonic()
            try:
                for name in list(self._unwritten):
                    write_piece(self._path(name), name, self._unwritten[name])
                    del self._unwritten[name]
            except OSError as error:
                raise OSError(
                    error.errno,
                    f"The checkpoint could not be written ({error.strerror or error}), but what "
                    "was written before is whole. Mend that, and call fit again in the same way",
                    str(self.folder),
                ) from error
            ended = time.monotonic()
            pause = max(self.seconds, (ended - began) / LARGEST_SHARE) if self.seconds else 0.0
            self._next_write = ended + pause

    def _begin(self, fingerprint: dict[str, Any]) -> None:
        path = self._path(FIT)
        others = self._others()
        if path.exists():
            stored = read_piece(path, FIT)
            other = difference(stored, fingerprint) if isinstance(stored, dict) else "something"
            if other:
                raise ValueError(
                    f"The checkpoint {self.folder} was written by a fit with {other}. Remove it or "
                    "choose another path."
                )
        elif others:
            raise ValueError(
                f"checkpoint={str(self.folder)!r} is a folder with other things in it, such as "
                f"{others[0]!r}. A checkpoint is a folder of its own: choose another path."
            )
        else:
            self._unwritten[FIT] = fingerprint
            self._write()

    def _others(self) -> list[str]:
        """Return the names of the files beside that of the fit, if there are any."""
        path = self._path(FIT)
        own = {path, *leftovers(path)}
        return sorted(other.name for other in self.folder.iterdir() if other not in own)

    def _remove(self) -> None:
        """Remove the files of this fit and, if nothing else is there, the folder."""
        # The fit's own file comes last, so that what is left if we are killed is a checkpoint.
        try:
            for name in sorted(self._names, key=FIT.__eq__):
                path = self._path(name)
                for file in (*leftovers(path), path):
                    file.unlink(missing_ok=True)
            with suppress(OSError):
                self.folder.rmdir()
        except OSError as error:
            warnings.warn(
                f"The fit has succeeded, but its checkpoint {self.folder} could not be removed "
                f"({error.strerror}): remove it by hand.",
                stacklevel=5,
            )

    def _path(self, name: str) -> Path:
        # Names are for people; the code makes them differ where the words do not.
        words = re.sub(r"[^A-Za-z0-9.]+", "-", name)[:60].strip("-.")
        code = hashlib.sha256(name.encode()).hexdigest()[:8]
        return self.folder / f"{words}-{code}.safetensors"


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Make the folder if it is not there, and keep other fits out of it during the block."""
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        raise ValueError(
            f"checkpoint={str(folder)!r} is a file. A checkpoint is a folder of its own: choose "
            "another path."
        ) from None
    except OSError as error:
        raise OSError(
            error.errno, f"The checkpoint's folder cannot be made ({error.strerror})", str(folder)
        ) from error
    with _locked(folder):
        yield


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    if sys.platform == "win32":  # where a folder cannot be opened
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        if not take(handle):
            raise BlockingIOError(
                f"The checkpoint {folder} is in use by another fit. Wait for that, or choose "
                "another path."
            )
        yield
    finally:
        os.close(handle)
