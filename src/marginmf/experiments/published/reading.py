"""The files, and what is wrong in print."""

import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

Content = dict[str, Any]


@dataclass(frozen=True)
class Slip:
    """One number, or group of numbers, that is printed wrong.

    Parameters
    ----------
    where : tuple of str and int
        The way to it in the file: keys of mappings, and places in lists, from 0.
    printed : object
        What is printed, and what the file has there.
    right : object
        What it should be; None if that cannot be told.
    why : str
        How one knows.
    """

    where: tuple[str | int, ...]
    printed: Any
    right: Any
    why: str


def read(name: str, known: Sequence[str], suffix: str = "") -> tuple[Content, tuple[Slip, ...]]:
    """Return the content of a file of the package, and its slips."""
    if name not in known:
        raise ValueError(f"{name!r} is not known. Choose one of {', '.join(map(repr, known))}.")
    text = files(__package__).joinpath(f"{name}{suffix}.json").read_text(encoding="utf-8")
    content: Content = json.loads(text)
    slips = tuple(Slip(tuple(slip.pop("where")), **slip) for slip in content.pop("slips"))
    return content, slips


def mended(content: Content, slips: Sequence[Slip]) -> Content:
    """Return a copy with what is right in place of what is printed, where that is known.

    >>> mended({"ranks": [1, 3]}, [Slip(("ranks", 1), 3, 2, "There are two.")])
    {'ranks': [1, 2]}
    """
    content = deepcopy(content)
    for slip in slips:
        if slip.right is not None:
            *way, last = slip.where
            holder: Any = content
            for step in way:
                holder = holder[step]
            holder[last] = slip.right
    return content
