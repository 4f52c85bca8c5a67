"""What the tables of chapters 5 and 6 have in common: methods, data sets, measures, folds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from marginmf.experiments.blocks import Entry, Outcome, Table
from marginmf.experiments.cell import Cell, splits
from marginmf.experiments.exhibit import Scale
from marginmf.experiments.published import PublishedTable, published
from marginmf.experiments.samples import (
    Sample,
    at,
    beside,
    differ,
    difference,
    entry,
    judged,
    sampled,
)
from marginmf.experiments.store import Store

#: The measures in words.
MEASURES = {
    "hamming": "Hamming loss",
    "accuracy": "Accuracy",
    "subset_accuracy": "Subset accuracy",
    "example_f1": "Example-based F1",
    "macro_f1": "Macro F1",
    "micro_f1": "Micro F1",
}
SIGN = {"decision": "sign"}
GLOBAL = {"decision": "global"}


@dataclass(frozen=True)
class Contender:
    """A method with its parameters, how they are searched, and the rule that it decides by."""

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    rule: Mapping[str, Any] = field(default_factory=lambda: SIGN)
    #: From the number of labels to the grids that are searched one after the other.
    search: Any = None

    def grids(self, n_labels: int) -> list[dict[str, list[Any]]]:
        """Return the grids that are searched."""
        return [] if self.search is None else self.search(n_labels)


@dataclass(frozen=True)
class LabelTable:
    """One of the tables: contenders by name, on data sets, by cross-validation.

    Parameters
    ----------
    source : str
        The published table.
    data : mapping
        The names of the data sets in the thesis; what we have for them, or None; and how many
        labels those have.
    contenders : mapping
        Those that we run, by the names in the report.
    own : str
        The method that the chapter proposes.
    n_folds : int
        How many folds.
    skipped : set
        Pairs of contender and data set that would take too long.
    """

    source: str
    data: Mapping[str, tuple[str, int] | None]
    contenders: Mapping[str, Contender]
    own: str
    n_folds: int
    skipped: frozenset[tuple[str, str]] = frozenset()

    @property
    def published(self) -> PublishedTable:
        """The figures of the thesis."""
        return published(self.source)

    @property
    def measures(self) -> Sequence[str]:
        """The measures of the table."""
        return self.published.measures

    def cells_for(self, title: str, name: str, scale: Scale) -> list[Cell]:
        """Return the folds of one contender on one data set."""
        if (name, title) in self.skipped:
            return []
        return self.folds(title, self.contenders[name], scale)

    def folds(self, title: str, one: Contender, scale: Scale) -> list[Cell]:
        """Return the folds of a method on one data set."""
        place = self.data[title]
        if place is None:
            return []
        data, n_labels = place
        # The quick version keeps each method's own defaults.
        grids = one.grids(n_labels) if scale == "full" else []
        return splits(
            "label_measures",
            1 if scale == "quick" else self.n_folds,
            data=data,
            protocol={"folds": 3 if scale == "quick" else self.n_folds},
            method=one.method,
            params=dict(one.params),
            rule=dict(one.rule),
            **({"search": grids} if grids else {}),
        )

    def cells(self, scale: Scale, titles: Sequence[str] = ()) -> list[Cell]:
        """Return every contender on every data set, or on these."""
        return [
            cell
            for title in titles or self.data
            for name in self.contenders
            for cell in self.cells_for(title, name, scale)
        ]

    def sample(
        self, store: Store, measure: str, title: str, name: str, scale: Scale
    ) -> Sample | None:
        """Return what a contender reached on a data set."""
        return sampled(store, self.cells_for(title, name, scale), at(measure))

    def compared(self, measure: str, title: str, ours: Sample | None) -> tuple[Outcome, str] | None:
        """Return whether the chapter's own method reaches what was published, and by how much.

        None where one of the two is not known.
        """
        there = self.published.at(measure, title, self.own)
        if ours is None or there is None:
            return None
        higher = self.higher_is_better(measure)
        return (
            judged(ours, there, higher_is_better=higher, places=3),
            difference(ours.mean, there.mean, 3),
        )

    def higher_is_better(self, measure: str) -> bool:
        """Whether more of a measure is better."""
        return self.published.higher_is_better[measure]

    def table(self, store: Store, measure: str, scale: Scale) -> Table:
        """Return one measure: for every method the published figure, ours, and the difference."""
        there = self.published
        names = [*there.methods, *(name for name in self.contenders if name not in there.methods)]
        rows = []
        for title in self.data:
            ours = {n: self.sample(store, measure, title, n, scale) for n in self.contenders}
            best = self._best(measure, ours)
            row = [Entry(title)]
            for name in names:
                shown = self._entry(ours, name, name in best, title)
                if name in there.methods:
                    row += beside(shown, ours.get(name), there.at(measure, title, name), 3)
                else:
                    row.append(shown)
            rows.append(row)
        headings = []
        for name in names:
            printed = [f"{name} published"] if name in there.methods else []
            headings += [*printed, f"{name} ours", *(["diff."] if printed else [])]
        arrow = "more is better" if self.higher_is_better(measure) else "less is better"
        notes = [
            f"Bold: the best of ours. * differs from ours of {self.own} at 0.05, by the t-test "
            "over folds that allows for training sets in common.",
            "Not yet: the library does not have this method. No data: we do not have this set.",
        ]
        return Table(["data set", *headings], rows, f"{MEASURES[measure]} ({arrow})", notes=notes)

    def _entry(self, ours: Mapping[str, Sample | None], name: str, best: bool, title: str) -> Entry:
        if name not in self.contenders:
            return Entry("not yet", faint=True)
        if self.data[title] is None:
            return Entry("no data", faint=True)
        if (name, title) in self.skipped:
            return Entry("too long", faint=True)
        other = differ(ours[name], ours[self.own], 1 / self.n_folds)
        return entry(ours[name], places=3, best=best, mark="*" if other else "")

    def _best(self, measure: str, ours: Mapping[str, Sample | None]) -> set[str]:
        means = {name: round(one.mean, 3) for name, one in ours.items() if one is not None}
        if not means:
            return set()
        best = max(means.values()) if self.higher_is_better(measure) else min(means.values())
        return {name for name, mean in means.items() if mean == best}

    def scores(
        self, store: Store, measure: str, scale: Scale
    ) -> tuple[list[str], list[str], np.ndarray]:
        """Return data sets, contenders and means where every contender has been run."""
        names = list(self.contenders)
        rows = {
            title: [self.sample(store, measure, title, name, scale) for name in names]
            for title in self.data
        }
        whole = {title: row for title, row in rows.items() if None not in row}
        means = np.array([[one.mean for one in row if one] for row in whole.values()])
        return list(whole), names, means.reshape(len(whole), len(names))
