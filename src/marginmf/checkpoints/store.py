"""A folder with a file for each minimisation of a fit: its result or, while it runs, its state.

The files are in the format of model files (`marginmf._utils.tensor_files`), so that reading one
cannot run anything and every changed byte is noticed.  One more file is the fingerprint of the fit:
its class, parameters, data and version, which must be the same for the fit to go on.
"""

import hashlib
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from math import isfinite
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from marginmf import __version__
from marginmf._utils.files import check_path, leftovers, try_lock
from marginmf._utils.parameters import warn
from marginmf._utils.random import GeneratorState
from marginmf._utils.tensor_files import as_bytes, read_header, read_tensors, write_tensor_file
from marginmf._utils.types import Array
from marginmf.solvers import NumpyVectors, Paused, Record, Result, State, StopReason, Vectors

#: The fingerprint of a fit, an unfinished or a finished minimisation, or a random generator.
Content = dict[str, Any] | Paused | Result | GeneratorState
#: The name under which the fingerprint of the fit is kept.
FIT = "fit"
#: The largest share of the time that may go into writing.
LARGEST_SHARE = 0.05
#: Raised when files written before cannot be read any more.
FORMAT = 3
#: Parameters that do not change the answer.
WITHOUT_EFFECT = ("n_jobs", "verbose", "callbacks")
NUMPY = NumpyVectors()


class CheckpointStore:
    """Keeps what one fit has done, by name.  Any thread may call it.

    Contents wait in memory until it is time to write, then all are written in the order in which
    they came: what a file depends on is there before it.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds
        self._names: set[str] = {FIT}
        self._unwritten: dict[str, tuple[Content, Vectors]] = {}
        self._lock = RLock()
        self._next_write = time.monotonic() + seconds

    @contextmanager
    def opened(self, fingerprint: dict[str, Any]) -> Iterator[None]:
        """Make or reuse the folder; remove it after success, bring it up to date otherwise."""
        with _claimed(self.folder):
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
                text = (
                    f"{error.strerror or error}. The checkpoint could not be written, but what was "
                    "written before is whole: fix that, and call fit again in the same way"
                )
                raise OSError(error.errno, text, str(self.folder)) from error
            ended = time.monotonic()
            pause = max(self.seconds, (ended - began) / LARGEST_SHARE) if self.seconds else 0.0
            self._next_write = ended + pause

    def _begin(self, fingerprint: dict[str, Any]) -> None:
        path, others = self._path(FIT), self._others()
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
        """Return the names of the files beside that of the fit."""
        own = {self._path(FIT), *leftovers(self._path(FIT))}
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
            warn(
                f"The checkpoint {self.folder} is no longer needed, but could not be removed "
                f"({error.strerror}): remove it by hand.",
            )

    def _path(self, name: str) -> Path:
        # Names are for people; the code makes them differ where the words do not.
        words = re.sub(r"[^A-Za-z0-9.]+", "-", name)[:60].strip("-.") or "run"
        return self.folder / f"{words}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.safetensors"


@contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Make the folder if it is not there, and keep other fits out of it during the block."""
    check_path(folder)
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
    kind, details, numbers, points = _take_apart(content)
    arrays = {f"numbers {key}": np.array(each, np.float64) for key, each in numbers.items()}
    arrays |= {f"vector {key}": _storable(vectors.to_host(each)) for key, each in points.items()}
    write_tensor_file(path, {"name": name, "kind": kind, "details": details}, arrays)


def read_content(path: Path, name: str, vectors: Vectors = NUMPY) -> Content:
    """Read the content of a name; refuse what is not exactly as it was written."""
    try:
        with open(path, "rb") as file:
            header = read_header(file)
            arrays = read_tensors(file, header)
        found, numbers, points = header.document, {}, {}
        if found["name"] != name:
            raise ValueError("it belongs elsewhere")
        for label, array in arrays.items():
            what, _, key = label.partition(" ")
            if what == "numbers":
                numbers[key] = array.tolist()
            else:
                points[key] = vectors.from_host(array)
        return _put_together(found["kind"], found["details"], numbers, points)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise ValueError(
            f"The checkpoint's file {path} is damaged ({error!s:.200}). Remove the folder and "
            "fit anew."
        ) from error


def _take_apart(content: Content) -> tuple[str, Any, dict[str, Any], dict[str, Any]]:
    """Return the kind of a content, what JSON holds of it, its numbers and its vectors."""
    if isinstance(content, dict):
        return "fit", content, {}, {}
    if isinstance(content, GeneratorState):
        return "generator", vars(content), {}, {}
    numbers: dict[str, Any] = {"history": content.history, "errors": content.errors}
    if isinstance(content, Result):
        details = {"reason": content.reason.name, "n_evaluations": content.n_evaluations}
        return "result", details, numbers, {"point": content.point}
    state = content.state
    best = [] if content.best_point is None else [content.best_point]
    groups = {f"own {name}": group for name, group in state.vectors.items()}
    groups |= {"point": [state.point], "best point": best}
    numbers |= {f"own {name}": values for name, values in state.numbers.items()}
    numbers["state"] = [state.value, state.gradient_norm, state.n_evaluations, state.step_share]
    sizes = {name: len(group) for name, group in groups.items()}
    generators = {name: vars(one) for name, one in state.generators.items()}
    vectors = {f"{name} {k}": group[k] for name, group in groups.items() for k in range(len(group))}
    return "run", {"groups": sizes, "generators": generators}, numbers, vectors


def _put_together(
    kind: str, details: dict[str, Any], numbers: dict[str, list[Any]], vectors: dict[str, Any]
) -> Content:
    if kind == "fit":
        return details
    if kind == "generator":
        return _checked(GeneratorState(**details))
    errors, history = numbers.pop("errors"), []
    for iteration, objective, norm, n_evaluations, seconds in numbers.pop("history"):
        history.append(Record(int(iteration), objective, norm, int(n_evaluations), seconds))
    if [record.iteration for record in history] != list(range(len(history))) or not history:
        raise ValueError("its iterations are not in order")
    if kind == "result":
        reason, n_evaluations = StopReason[details["reason"]], details["n_evaluations"]
        return Result(vectors["point"], history, reason, n_evaluations, errors)
    sizes = details["groups"].items()
    groups = {name: [vectors[f"{name} {k}"] for k in range(size)] for name, size in sizes}
    (point,), best_points = groups.pop("point"), groups.pop("best point")
    value, gradient_norm, n_evaluations, step_share = numbers.pop("state")
    own: dict[str, dict[str, Any]] = {
        "vectors": {name.removeprefix("own "): group for name, group in groups.items()},
        "numbers": {name.removeprefix("own "): values for name, values in numbers.items()},
        "generators": {
            name: _checked(GeneratorState(**one)) for name, one in details["generators"].items()
        },
    }
    state = State(point, value, gradient_norm, int(n_evaluations), step_share, **own)
    return Paused(state, history, errors, *best_points)


def _checked(state: GeneratorState) -> GeneratorState:
    """Return a state that a generator can have, or raise ValueError."""
    state.generator()
    return state


def _storable(array: Any) -> Array:
    """Return an array as the format wants it: contiguous, little-endian, float32 or float64."""
    dtype = getattr(array, "dtype", None)
    if dtype not in (np.float32, np.float64):
        raise TypeError(
            "A checkpoint holds vectors of float32 or float64, but those of this fit are of type "
            f"{dtype or type(array).__name__}: fit without a checkpoint."
        )
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


def fingerprint(estimator: Any, data: Mapping[str, Array]) -> dict[str, Any]:
    """Return what must be the same for a fit to go on."""
    return {
        "format": FORMAT,
        "version": __version__,
        **plain(estimator),
        "data": {name: digest(array) for name, array in data.items()},
    }


def difference(stored: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Return in words how two fingerprints differ, or None if they do not."""
    if {name: type(part) for name, part in stored.items()} != {n: type(now[n]) for n in now}:
        return "a fingerprint that cannot be understood"
    if stored["format"] != now["format"] or stored["version"] != now["version"]:
        return f"another version of marginmf ({stored['version']!r:.60}, this is {now['version']})"
    if stored["class"] != now["class"]:
        return f"another class ({stored['class']!r:.60})"
    before, after, found = stored["parameters"], now["parameters"], []
    names = [name for name in after if name not in before or before[name] != after[name]]
    if names:
        changes = [f"{n} was {before.get(n)!r:.60} and is {after[n]!r:.60}" for n in names]
        found.append(f"other parameters ({', '.join(changes)})")
    parts = [n for n in now["data"] | stored["data"] if stored["data"].get(n) != now["data"].get(n)]
    if parts:
        found.append(f"other data ({', '.join(parts)})")
    return " and ".join(found) or None


def plain(value: Any) -> Any:
    """Return a value as numbers, words, lists and dicts, the same in every process.

    >>> plain({"reg": np.array([1.0, 2.0]), "loss": np.exp})
    {'reg': [1.0, 2.0], 'loss': {'class': 'numpy.ufunc', 'name': 'exp'}}
    """
    if type(value) is float and not isfinite(value):
        return repr(value)  # JSON has no word for it
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, type):
        return _full_name(value)
    described: dict[str, Any] = {"class": _full_name(type(value))}
    if hasattr(value, "get_params"):
        parameters = value.get_params(deep=False).items()
        effective = {name: one for name, one in parameters if name not in WITHOUT_EFFECT}
        described["parameters"] = plain(effective)
    elif hasattr(value, "__code__"):  # a function: its name, and what it does
        code = value.__code__
        constants = [item for item in code.co_consts if isinstance(item, int | float | str)]
        closure = [cell.cell_contents for cell in value.__closure__ or ()]
        described["name"] = _full_name(value)
        defaults = [value.__defaults__, value.__kwdefaults__]
        described["code"] = plain([code.co_code.hex(), code.co_names, constants, closure, defaults])
    elif hasattr(value, "__name__"):
        described["name"] = value.__name__
    else:  # random generators, which have nothing here, are stored by themselves
        described |= plain(getattr(value, "__dict__", {}))
    return described


def digest(array: Array) -> str:
    """Return a code that two arrays share only if they hold the same."""
    code = hashlib.sha256(f"{array.dtype} {array.shape} ".encode())
    if array.dtype == object:
        code.update("\0".join(map(repr, array.tolist())).encode())
    else:
        code.update(as_bytes(np.ascontiguousarray(array)).data)
    return code.hexdigest()


def _full_name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"
