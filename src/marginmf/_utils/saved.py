"""How classes declare what a model file holds of them, and the registries of methods.

A class that model files may name is decorated with `saved`, a method with `Methods.register`.  Its
attribute ``_saved`` maps the attributes that a file holds to demands: one of the classes here, a
type, or the name of a class that a file may have.  Its method ``_flaws``, if it has one, yields
what else is wrong with a loaded object, as words that follow its name.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from marginmf._utils.types import Array, BoolArray

Kind = TypeVar("Kind", bound=type[Any])

#: Every class that declares what is saved of it, by the name that files have for it.  Under "ids"
#: is the class of vocabularies, which files hold in a form of their own.
SAVED: dict[str, type[Any]] = {}


def saved(kind: Kind) -> Kind:
    """Let model files name a class; no two classes may have the same name there."""
    if SAVED.setdefault(kind.__name__, kind) is not kind:
        raise ValueError(f"Model files have another class that is called {kind.__name__!r}.")
    return kind


class Methods(dict[str, type[Any]]):
    """The methods of one family by their names on the command line.

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
        """Register a method under its name on the command line, and let model files name it.

        The first line of its docstring is its ``summary``; parameters that its bases describe are
        added to the docstring.
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


#: The largest number of a model: squares of larger ones, summed, would be infinite.
LARGEST_SAVED = 1e100
#: Whatever a file can hold: it has no part in predictions.
ANYTHING = object


@dataclass(frozen=True)
class Shaped:
    """An array of that kind of number, with these axes.

    Axes such as ``users``, ``levels`` or ``labels`` have the length that an attribute of the model
    gives them (`Sized`, `Scale`, `Length`).  Others may be of any length, the same wherever they
    occur in the object; ``rows + 1`` is one longer than ``rows``, and ``2`` is two.  Numbers that
    are an ``index`` must lie within that axis.  Floats must be finite and not above ``most``,
    unless that is None.
    """

    kinds: tuple[str, ...]
    axes: tuple[str, ...]
    index: str | None = None
    most: float | None = LARGEST_SAVED


class Stored(NamedTuple):
    """A dense array or a `csr_array` of finite floats with two axes: rows that are looked up."""

    axes: tuple[str, str]


class Names(NamedTuple):
    """An array of names along that axis: text, or numbers, or objects that are text."""

    axis: str


class Sized(NamedTuple):
    """An object of that class, as long as that axis."""

    kind: Any
    axis: str


class Length(NamedTuple):
    """A whole number: the length of that axis."""

    axis: str


class Scale(NamedTuple):
    """Two or more levels in rising order along that axis; there is one of ``stages`` fewer."""

    axis: str


class Optional(NamedTuple):
    """What may be absent, or else is like this."""

    wanted: Any


class Either(NamedTuple):
    """What is like the first, or else like the second."""

    first: Any
    second: Any


class ListOf(NamedTuple):
    """A list with at least one part, each of which is like this."""

    wanted: Any


def floats(*axes: str, most: float | None = LARGEST_SAVED) -> Shaped:
    """Return the demand for an array of floats with these axes."""
    return Shaped(("float32", "float64"), axes, most=most)


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


def are_within(numbers: Array, most: float) -> bool:
    """Whether no number is NaN, above the most or below minus the most."""
    return numbers.size == 0 or (float(numbers.max()) <= most and float(numbers.min()) >= -most)


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


def inherit_docs(kind: Kind) -> Kind:
    r"""Add the parameters and attributes that its bases describe to the docstring of a class.

    What a class says of a parameter replaces what its bases say.  Parameters are in the order of
    the constructor.

    >>> class Base:
    ...     "A base.\n\nParameters\n----------\nreg : float\n    The strength."
    >>> @inherit_docs
    ... class Method(Base):
    ...     "A method."
    ...
    ...     def __init__(self, reg): ...
    >>> Method.__doc__.splitlines()[-2:]
    ['reg : float', '    The strength.']
    """
    text = inspect.cleandoc(kind.__doc__ or "")
    order = {name: k for k, name in enumerate(inspect.signature(kind).parameters)}
    for section in ("Attributes", "Parameters"):
        entries: dict[str, str] = {}
        for base in reversed(kind.__mro__):
            entries.update(_entries(inspect.cleandoc(vars(base).get("__doc__") or ""), section))
        if section == "Parameters":
            names = (name for name in entries if name.partition(",")[0] in order)
            ordered = sorted(names, key=lambda name: order[name.partition(",")[0]])
            entries = {name: entries[name] for name in ordered}
        if entries:
            text = _with_section(text, section, "\n".join(entries.values()))
    kind.__doc__ = text
    return kind


def _section(title: str) -> re.Pattern[str]:
    """Return what finds a section of a docstring: its heading, and all up to the next heading."""
    return re.compile(rf"^{title}\n-+\n(.*?)(?=^\w+\n---|\Z)", re.MULTILINE | re.DOTALL)


def _entries(text: str, title: str) -> dict[str, str]:
    """Return the entries of a section by the names that they describe."""
    found = _section(title).search(text)
    entries = re.split(r"^(?=\S)", found[1], flags=re.MULTILINE) if found else []
    return {entry.partition("\n")[0].partition(" :")[0]: entry.rstrip() for entry in entries[1:]}


def _with_section(text: str, title: str, body: str) -> str:
    """Return a docstring whose section is this; a new one comes before attributes and examples."""
    section = f"{title}\n{'-' * len(title)}\n{body}\n\n"
    if _section(title).search(text):
        return _section(title).sub(lambda _: section, text).rstrip()
    later = re.search(r"^(Attributes|Examples)\n---", text, re.MULTILINE)
    before, after = (text[: later.start()], text[later.start() :]) if later else (text, "")
    return f"{before.rstrip()}\n\n{section}{after}".rstrip()
