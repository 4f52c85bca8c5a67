"""A folder with a file for each minimisation of a fit: its result or, while it runs, its state.

The files are in the safetensors format, so reading one cannot run anything, with a checksum over
vectors and description.
"""

import hashlib
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from marginmf._utils.files import atomic_write, leftovers, try_lock
from marginmf._utils.random import GeneratorState
from marginmf._utils.types import Array
from marginmf.checkpoints.fingerprint import difference, raw
from marginmf.solvers import NumpyVectors, Paused, Record, Result, State, StopReason, Vectors

#: The fingerprint of a fit, an unfinished or a finished minimisation, or a random generator.
Content = dict[str, Any] | Paused | Result | GeneratorState

#: The name under which the fingerprint of the fit is kept.
FIT = "fit"

#: The largest share of the time that may go into writing.
LARGEST_SHARE = 0.05

NUMPY = NumpyVectors()


class Store:
    """Keeps what one fit has done, by name.  Any thread may call it.

    Contents wait in memory until it is time to write, then all are written in the order in which
    they came: what a file depends on is there before it.

    Parameters
    ----------
    folder : Path
        The folder of the files.
    seconds : float
        The minimum time between two writes; 0 writes at once.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder = folder
        self.seconds = seconds
        self._names: set[str] = {FIT}
        self._unwritten: dict[str, tuple[Content, Vectors]] = {}
        self._lock = RLock()
        self._next_write = time.monotonic() + seconds

    @contextmanager
    def opened(self, fingerprint: dict[str, Any]) -> Iterator[None]:
        """Make or reuse the folder; remove it after success, bring it up to date otherwise."""
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

    def find(self, name: str, vectors: Vectors = NUMPY) -> Content | None:
        """Return what an earlier call of the fit noted under this name, if anything."""
        with self._lock:
            if name in self._names:
                raise RuntimeError(f"Two parts of one fit have the same name, {name!r}.")
            self._names.add(name)
        path = self._path(name)
        return read_content(path, name, vectors) if path.exists() else None

    def note(self, name: str, content: Content, vectors: Vectors = NUMPY) -> None:
        """Keep a content instead of the one that has this name now."""
        if isinstance(content, Paused):
            content.keep()
            if len(content.history) == 1:  # refuse at once what could not be written later
                _storable(vectors.to_host(content.state.point))
        with self._lock:
            self._unwritten[name] = content, vectors
            if time.monotonic() >= self._next_write:
                self._write()

    def _write(self) -> None:
        with self._lock:
            began = time.monotonic()
            try:
                for name in list(self._unwritten):
                    write_content(self._path(name), name, *self._unwritten[name])
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
            stored = read_content(path, FIT)
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
            self._unwritten[FIT] = fingerprint, NUMPY
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
        if not try_lock(handle):
            raise BlockingIOError(
                f"The checkpoint {folder} is in use by another fit. Wait for that, or choose "
                "another path."
            )
        yield
    finally:
        os.close(handle)


def write_content(path: Path, name: str, content: Content, vectors: Vectors = NUMPY) -> None:
    """Write a content under a name; the file appears whole or not at all."""
    kind, details, device_arrays = _taken_apart(content)
    arrays = {key: _storable(vectors.to_host(array)) for key, array in device_arrays.items()}
    text = json.dumps({"name": name, "kind": kind, "details": details})
    # Written here and not by safetensors, which would copy all arrays first, or write to a
    # temporary file of its own that a killed process leaves behind.
    metadata = {"description": text, "checksum": _checksum(text, arrays)}
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for key, array in arrays.items():
        begin, end = end, end + array.nbytes
        dtype = f"F{8 * array.itemsize}"
        header[key] = {"dtype": dtype, "shape": array.shape, "data_offsets": [begin, end]}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with atomic_write(path) as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for array in arrays.values():
            file.write(raw(array))


def read_content(path: Path, name: str, vectors: Vectors = NUMPY) -> Content:
    """Read the content of a name; refuse what is not exactly as it was written."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        if _checksum(metadata["description"], arrays) != metadata["checksum"]:
            raise ValueError("its checksum is another")
        found = json.loads(metadata["description"])
        if found["name"] != name:
            raise ValueError("it belongs elsewhere")
        restored = {key: vectors.from_host(array) for key, array in arrays.items()}
        return _put_together(found["kind"], found["details"], restored)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"The checkpoint's file {path} is damaged ({error}). Remove the folder and fit anew."
        ) from error


def _taken_apart(content: Content) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return the kind of a content, what JSON can hold of it, and its vectors."""
    if isinstance(content, dict):
        return "fit", content, {}
    if isinstance(content, GeneratorState):
        return "generator", vars(content), {}
    details: dict[str, Any] = {
        "history": [list(map(float, record)) for record in content.history],
        "errors": list(content.errors),
    }
    if isinstance(content, Result):
        details |= {"reason": content.reason.name, "n_evaluations": content.n_evaluations}
        return "result", details, {"point": content.point}
    state = content.state
    groups = {"own " + name: group for name, group in state.vectors.items()}
    groups["point"] = [state.point]
    groups["best point"] = [] if content.best_point is None else [content.best_point]
    details |= {
        "state": [state.value, state.gradient_norm, state.n_evaluations, state.step_share],
        "groups": {name: len(group) for name, group in groups.items()},
        "numbers": {name: list(map(float, values)) for name, values in state.numbers.items()},
        "generators": {name: vars(one) for name, one in state.generators.items()},
    }
    vectors = {
        f"{name} {index}": vector
        for name, group in groups.items()
        for index, vector in enumerate(group)
    }
    return "run", details, vectors


def _put_together(kind: str, details: dict[str, Any], vectors: Mapping[str, Any]) -> Content:
    if kind == "fit":
        return details
    if kind == "generator":
        return GeneratorState(**details)
    history = [
        Record(int(iteration), objective, norm, int(n_evaluations), seconds)
        for iteration, objective, norm, n_evaluations, seconds in details["history"]
    ]
    if kind == "result":
        reason, n_evaluations = StopReason[details["reason"]], details["n_evaluations"]
        return Result(vectors["point"], history, reason, n_evaluations, details["errors"])
    groups = {
        name: [vectors[f"{name} {index}"] for index in range(size)]
        for name, size in details["groups"].items()
    }
    (point,), best_points = groups.pop("point"), groups.pop("best point")
    value, gradient_norm, n_evaluations, step_share = details["state"]
    state = State(
        point,
        value,
        gradient_norm,
        n_evaluations,
        step_share,
        vectors={name.removeprefix("own "): group for name, group in groups.items()},
        numbers=details["numbers"],
        generators={name: GeneratorState(**one) for name, one in details["generators"].items()},
    )
    return Paused(state, history, details["errors"], *best_points)


def _storable(array: Any) -> Array:
    """Return an array as the format wants it: contiguous, little-endian, float32 or float64."""
    dtype = getattr(array, "dtype", None)
    if dtype not in (np.float32, np.float64):
        raise TypeError(
            "A checkpoint holds vectors of float32 or float64, but those of this fit are of type "
            f"{dtype or type(array).__name__}: fit without a checkpoint."
        )
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


def _checksum(text: str, arrays: Mapping[str, Array]) -> str:
    code = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        code.update(f"{name} {array.dtype} {array.shape}".encode())
        code.update(raw(array))
    return code.hexdigest()
