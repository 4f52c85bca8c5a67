"""Docstrings of classes that inherit parameters: each parameter is described once, in a base."""

import inspect
import re
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type[Any])


def inherit_docs(kind: Kind) -> Kind:
    r"""Add the parameters and attributes that the docstrings of its bases describe to a class.

    What a class says of a parameter replaces what its bases say.  Parameters are in the order of
    the constructor.  For classes that users see: `help` and the API reference then show them all.

    Examples
    --------
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
