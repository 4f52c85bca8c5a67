"""What the thesis prints: its tables and worked examples, as numbers, with the slips marked.

Files in ``data/`` keep the numbers as printed.  Where one is wrong, or cannot be right, the file
lists it as a `Slip`: where it stands, what is printed, what is right (if that is known), and why.
"""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

DATA = Path(__file__).with_name("data")
TABLES = ("nmae", "mae-rmse", "mlc-hmf", "grople")
EXAMPLES = ("likes", "stars", "hierarchy")
FRIEDMAN = ("mlc-hmf", "grople")

Content = dict[str, Any]


class Slip(NamedTuple):
    """One number, or group of numbers, that is printed wrong."""

    #: The path to it in the file: keys of mappings, and indices of lists.
    where: tuple[str | int, ...]
    #: What is printed, and what the file has there.
    printed: Any
    #: What it should be; None if that cannot be told.
    right: Any
    #: How one knows.
    why: str


def read(name: str, known: Sequence[str], suffix: str = "") -> tuple[Content, tuple[Slip, ...]]:
    """Return the content of a file, and its slips."""
    if name not in known:
        raise ValueError(f"{name!r} is not known. Choose one of {', '.join(map(repr, known))}.")
    content: Content = json.loads((DATA / f"{name}{suffix}.json").read_text(encoding="utf-8"))
    slips = tuple(Slip(tuple(slip.pop("where")), **slip) for slip in content.pop("slips"))
    return content, slips


def correct(content: Content, slips: Sequence[Slip]) -> Content:
    """Return a copy with what is right in place of what is printed, where that is known."""
    content = deepcopy(content)
    for slip in slips:
        if slip.right is not None:
            *path, last = slip.where
            holder: Any = content
            for step in path:
                holder = holder[step]
            holder[last] = slip.right
    return content


class PublishedFigure(NamedTuple):
    """One entry of a table, as printed: mean and standard deviation over the runs or folds."""

    mean: float
    std: float
    #: The printed rank among the methods, if the table has ranks.
    rank: float | None = None
    #: Whether it is printed as the best.
    bold: bool = False


@dataclass(frozen=True)
class PublishedTable:
    """A table of results: measures by data sets by methods, each in the order of the thesis."""

    name: str
    #: For each measure, whether higher is better.
    higher_is_better: Mapping[str, bool]
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    #: By measure, data set and method; without those that could not be run.
    figures: Mapping[tuple[str, str, str], PublishedFigure] = field(repr=False)
    slips: tuple[Slip, ...] = field(repr=False)

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(self.higher_is_better)

    def at(self, measure: str, dataset: str, method: str) -> PublishedFigure | None:
        """Return what is printed there; None if the method could not be run on the data set."""
        asked = measure, dataset, method
        known = {"measure": self.measures, "data set": self.datasets, "method": self.methods}
        for given, (what, names) in zip(asked, known.items(), strict=True):
            if given not in names:
                raise KeyError(
                    f"The table {self.name!r} has no {what} {given!r}, but: {', '.join(names)}."
                )
        return self.figures.get(asked)

    def scores(self, measure: str, leave_out: Sequence[str] = ()) -> dict[str, dict[str, float]]:
        """Return the means of one measure by method and data set, as `marginmf.stats` takes them.

        What could not be run is NaN; ``leave_out`` names data sets to leave out.
        """
        kept = [one for one in self.datasets if one not in leave_out]
        absent = PublishedFigure(np.nan, np.nan)
        return {
            method: {one: (self.at(measure, one, method) or absent).mean for one in kept}
            for method in self.methods
        }


@lru_cache
def published(name: str) -> PublishedTable:
    """Return a table of results of the thesis.

    ``"nmae"`` has ten methods under weak and strong generalisation, which are its "measures"
    (chapter 3), ``"mae-rmse"`` three methods (chapter 4), ``"mlc-hmf"`` six measures of seven
    methods on twelve label sets (chapter 5), ``"grople"`` four of eight on twelve (chapter 6).
    Measures of labels are named as in `marginmf.metrics.labels_report`.

    >>> published("nmae").at("weak", "MovieLens", "HMF")
    PublishedFigure(mean=0.4019, std=0.0044, rank=None, bold=True)
    """
    content, slips = read(name, TABLES)
    ranks, bold = content.get("rank"), content.get("bold")
    figures = {
        (measure, dataset, method): PublishedFigure(
            mean,
            content["std"][measure][dataset][k],
            ranks[measure][dataset][k] if ranks else None,
            bool(bold) and method in bold[measure][dataset],
        )
        for measure, by_dataset in content["mean"].items()
        for dataset, means in by_dataset.items()
        for k, (method, mean) in enumerate(zip(content["methods"], means, strict=True))
        if mean is not None
    }
    datasets, methods = (*next(iter(content["mean"].values())),), (*content["methods"],)
    return PublishedTable(name, content["higher_is_better"], datasets, methods, figures, slips)


@dataclass(frozen=True)
class PublishedFriedman:
    """The printed Friedman statistics of one table, at the level of significance `alpha`."""

    table: str
    n_methods: int
    n_datasets: int
    #: Data sets of the table that took no part, as not all methods could be run on them.
    left_out: tuple[str, ...]
    alpha: float
    #: Iman and Davenport's F for each measure, and its critical value.
    f: Mapping[str, float]
    critical_value: float
    #: Of Nemenyi's test.
    q: float
    critical_difference: float
    slips: tuple[Slip, ...] = field(repr=False)


def published_friedman(table: str) -> PublishedFriedman:
    """Return the Friedman statistics of the table ``"mlc-hmf"`` (chapter 5) or ``"grople"`` (6)."""
    content, slips = read(table, FRIEDMAN, "-friedman")
    del content["chapter"]
    content["left_out"] = tuple(content["left_out"])
    return PublishedFriedman(**content, slips=slips)


class WorkedExample(dict[str, Any]):
    """Matrices as arrays, and numbers; ``example["Y"]`` has 0 for what is not observed."""

    def __init__(self, name: str, values: Content, slips: tuple[Slip, ...]) -> None:
        super().__init__(values)
        self.name, self.slips = name, slips

    def __missing__(self, key: str) -> Any:
        raise KeyError(f"The example {self.name!r} has no {key!r}, but: {', '.join(self)}.")


def worked_example(name: str, *, corrected: bool = False) -> WorkedExample:
    """Return a worked example of chapter 3, with what is right in place of slips if wanted.

    ``"likes"``: two levels, 7 x 7, with ``Y``, ``U``, ``V``, ``threshold``, ``scores``, ``hinge``
    and ``smooth_hinge``.  ``"stars"``: five levels, 10 x 10, with ``Y``, ``U``, ``V``,
    ``thresholds``, ``scores`` and ``loss_of_y13``.  ``"hierarchy"``: HMF, 5 x 7, with ``Y``,
    ``completed`` and four ``stages``, each with ``Y``, ``U``, ``V``, ``predicted``, ``negative``
    (the entries predicted -1; 47 is row 4, column 7) and ``completed`` so far.
    """
    content, slips = read(name, EXAMPLES)
    if corrected:
        content = correct(content, slips)
    del content["chapter"]
    return WorkedExample(name, _make_arrays(content), slips)


def _make_arrays(value: Any) -> Any:
    """Return the value with lists of numbers, and lists of such lists, as arrays."""
    if isinstance(value, dict):
        return {key: _make_arrays(part) for key, part in value.items()}
    if isinstance(value, list):
        return list(map(_make_arrays, value)) if isinstance(value[0], dict) else np.array(value)
    return value
