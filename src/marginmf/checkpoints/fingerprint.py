"""Is it the same fit?  The class, the parameters, the data and the version as plain data."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from marginmf import __version__
from marginmf._utils.types import Array

#: Raised when files written before cannot be read any more.
FORMAT = 2

#: Parameters that do not change the answer.
WITHOUT_EFFECT = ("n_jobs", "verbose", "callbacks")


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
    if stored["format"] != now["format"] or stored["version"] != now["version"]:
        return f"another version of marginmf ({stored['version']}, this is {now['version']})"
    if stored["class"] != now["class"]:
        return f"another class ({stored['class']})"
    found = []
    before, after = stored["parameters"], now["parameters"]
    names = [name for name in after if name not in before or before[name] != after[name]]
    if names:
        changes = [f"{n} was {_short(before.get(n))} and is {_short(after[n])}" for n in names]
        found.append(f"other parameters ({', '.join(changes)})")
    parts = [name for name, code in now["data"].items() if stored["data"].get(name) != code]
    if parts:
        found.append(f"other data ({', '.join(parts)})")
    return " and ".join(found) or None


def plain(value: Any) -> Any:
    """Return a value as numbers, words, lists and dicts, the same in every process.

    >>> plain({"reg": np.array([1.0, 2.0]), "loss": np.exp})
    {'reg': [1.0, 2.0], 'loss': {'class': 'numpy.ufunc', 'name': 'exp'}}
    """
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
        parameters = value.get_params(deep=False)
        described["parameters"] = plain(
            {name: parameters[name] for name in parameters if name not in WITHOUT_EFFECT}
        )
    elif hasattr(value, "__code__"):  # a function: its name, and what it does
        code = value.__code__
        constants = [item for item in code.co_consts if isinstance(item, int | float | str)]
        closure = [cell.cell_contents for cell in value.__closure__ or ()]
        described["name"] = _full_name(value)
        described["code"] = plain([code.co_code.hex(), code.co_names, constants, closure])
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
        code.update(raw(np.ascontiguousarray(array)))
    return code.hexdigest()


def raw(array: Array) -> memoryview:
    """Return the bytes of a contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8).data


def _full_name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
