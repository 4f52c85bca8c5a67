"""What a model file must hold of a class: the words in which classes declare it themselves.

A class that model files may name is decorated with `saved`, a method with `Methods.register`.  Its
attribute ``_saved`` maps the attributes that a file holds to demands: one of the classes here, a
type, or the name of a class that a file may have.  Its method ``_flaws``, if it has one, tells what
shapes cannot: it yields what is wrong with a loaded object, as words that follow its name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from marginmf._utils.docstrings import inherit_docs
from marginmf._utils.types import Array, BoolArray

Kind = TypeVar("Kind", bound=type[Any])

#: Every class that declares what is saved of it, by the name that files have for it.  Under "ids"
#: is the class of vocabularies, which files hold in a form of their own.
SAVED: dict[str, type[Any]] = {}


def saved(kind: Kind) -> Kind:
    """Let model files name a class; no two classes may have the same name there.

    Examples
    --------
    >>> @saved
    ... class Slope:
    ...     _saved = {"value": float}
    >>> SAVED.pop("Slope").__name__
    'Slope'
    """
    if SAVED.setdefault(kind.__name__, kind) is not kind:
        raise ValueError(f"Model files have another class that is called {kind.__name__!r}.")
    return kind


class Methods(dict[str, type[Any]]):
    """The methods of one family by their names on the command line.

    Parameters
    ----------
    family : str
        What they are methods for, in messages.

    Examples
    --------
    >>> methods = Methods("ratings")
    >>> @methods.register("ones")
    ... class AllOnes:
    ...     "Predict one."
    ...     _saved = {}
    >>> methods["ones"].summary, SAVED.pop("AllOnes").__name__
    ('Predict one.', 'AllOnes')
    """

    def __init__(self, family: str) -> None:
        super().__init__()
        self.family = family

    def register(self, name: str) -> Callable[[Kind], Kind]:
        """Register a method: model files and the command line know it from then on.

        Parameters
        ----------
        name : str
            What the command line calls it.  The first line of the docstring is its ``summary``;
            parameters that its bases describe are added to the docstring.
        """

        def add(kind: Kind) -> Kind:
            if self.setdefault(name, kind) is not kind:
                raise ValueError(f"There is another {self.family} method that is called {name!r}.")
            kind.command_name, kind.summary = name, (kind.__doc__ or "").partition("\n")[0]
            return saved(inherit_docs(kind))

        return add


def declared(kind: Any) -> dict[str, Any]:
    """Return what a class and its bases declare to be saved."""
    attributes: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        attributes.update(vars(base).get("_saved", {}))
    return attributes


#: Whatever a file can hold: it has no part in predictions.
ANYTHING = object


@dataclass(frozen=True)
class Shaped:
    """An array of that kind of number, with these axes.

    Some axes have a length that an attribute of the model gives them (`Sized`, `Scale`, `Length`):
    ``users``, ``items``, ``levels`` and ``stages`` of ratings, ``labels`` and ``features`` of label
    models.  Other names may be of any length, the same wherever they occur in the object;
    ``rows + 1`` is one longer than ``rows``.  Numbers that are an ``index`` must lie within that
    axis.
    """

    kinds: tuple[str, ...]
    axes: tuple[str, ...]
    index: str | None = None


@dataclass(frozen=True)
class Stored:
    """A dense array or a `csr_array` of finite floats with two axes: rows that are looked up."""

    axes: tuple[str, str]


@dataclass(frozen=True)
class Names:
    """An array of names along that axis: text, or numbers, or objects that are text."""

    axis: str


@dataclass(frozen=True)
class Sized:
    """An object of that class, as long as that axis."""

    kind: Any
    axis: str


@dataclass(frozen=True)
class Length:
    """A whole number: the length of that axis."""

    axis: str


@dataclass(frozen=True)
class Scale:
    """Two or more levels in rising order along that axis; there is one of ``stages`` fewer."""

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


def indices(*axes: str, along: str) -> Shaped:
    """Return the demand for an array of indices into another axis."""
    return Shaped(("int32", "int64"), axes, along)


def within(codes: Array, n: int) -> bool:
    """Whether whole numbers are indices into something of that length."""
    return codes.size == 0 or (int(codes.min()) >= 0 and int(codes.max()) < n)


def are_row_ends(indptr: Array, n: int) -> bool:
    """Whether these are the ends of rows that n entries are divided among, after a first 0."""
    return bool(indptr[0] == 0 and indptr[-1] == n and (indptr[1:] >= indptr[:-1]).all())


def are_sorted_in_rows(indices: Array, indptr: Array) -> bool:
    """Whether the numbers in every row are ascending and distinct."""
    rises: BoolArray = indices[1:] > indices[:-1]
    starts = indptr[1:-1]
    rises[starts[(starts > 0) & (starts < len(indices))] - 1] = True  # the next row begins anywhere
    return bool(rises.all())


#: How something was learned, step by step.
HISTORY: dict[str, Any] = {"history_": list, "n_iter_": ANYTHING, "stop_reason_": ANYTHING}
#: The same, with how many gradients it took.
TRAINING: dict[str, Any] = {**HISTORY, "n_evaluations_": ANYTHING}
