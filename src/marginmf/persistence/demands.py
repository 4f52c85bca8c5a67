"""What a file must hold where: the words in which `marginmf.persistence.state` says it.

A demand is one of the classes here, a type, or the name of a class that a file may have.
"""

from dataclasses import dataclass
from typing import Any

#: Whatever a file can hold: it has no part in predictions.
ANYTHING = object


@dataclass(frozen=True)
class Shaped:
    """An array of that kind of number, with these axes.

    Some axes have a length that the model gives them: ``users``, ``items``, ``levels`` and
    ``stages`` (one less than levels) of ratings, ``labels`` and ``features`` of label models.
    Other names may be of any length, the same wherever they occur in the object; ``rows + 1`` is
    one longer than ``rows``.  Numbers that are ``places`` must lie along that axis.
    """

    kinds: tuple[str, ...]
    axes: tuple[str, ...]
    places: str | None = None


@dataclass(frozen=True)
class Stored:
    """A dense array or a `csr_array` of finite floats with two axes: rows that are looked up."""

    axes: tuple[str, str]


@dataclass(frozen=True)
class Names:
    """An array of names along that axis: text, or numbers, or objects that are text."""

    axis: str


@dataclass(frozen=True)
class Optional:
    """What may be absent, or else is like this."""

    wanted: Any


@dataclass(frozen=True)
class Either:
    """What is like the first, or else like the second."""

    first: Any
    second: Any


@dataclass(frozen=True)
class ListOf:
    """A list with at least one part, each of which is like this."""

    wanted: Any


def floats(*axes: str) -> Shaped:
    """Return the demand for an array of floats with these axes."""
    return Shaped(("float32", "float64"), axes)


def counts(*axes: str) -> Shaped:
    """Return the demand for an array of int64 with these axes."""
    return Shaped(("int64",), axes)


def flags(*axes: str) -> Shaped:
    """Return the demand for an array of booleans with these axes."""
    return Shaped(("bool",), axes)


def places(*axes: str, along: str) -> Shaped:
    """Return the demand for an array of places along another axis."""
    return Shaped(("int32", "int64"), axes, along)


#: How something was learned, step by step.
HISTORY: dict[str, Any] = {"history_": list, "n_iter_": ANYTHING, "stop_reason_": ANYTHING}
