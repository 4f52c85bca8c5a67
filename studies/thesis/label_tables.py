"""The tables of chapters 5 and 6: candidates on label sets, by cross-validation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from marginmf.metrics import metric
from studies.harness import Cell, Store
from studies.harness.cell import make_splits
from studies.harness.markdown import Block, Entry, Outcome, Table
from studies.thesis.exhibit import Scale
from studies.thesis.published import PublishedTable, published
from studies.thesis.samples import (
    Sample,
    are_different,
    compare_entries,
    find_sample,
    format_difference,
    judge,
    make_entry,
    pick,
)

SIGN = {"decision": "sign"}
GLOBAL = {"decision": "global"}

Grid = dict[str, list[Any]]


@dataclass(frozen=True)
class Candidate:
    """A method with its parameters, the rule that it decides by, and how both are searched."""

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    rule: Mapping[str, Any] = field(default_factory=lambda: SIGN)
    #: From the number of labels to the grids that are searched one after the other.
    search: Callable[[int], list[Grid]] = lambda n_labels: []


@dataclass(frozen=True)
class LabelTable:
    """One of the tables: candidates by name, on data sets, by cross-validation."""

    #: The published table.
    source: str
    #: By its name in the thesis, the data set that we have and its number of labels, or None.
    data: Mapping[str, tuple[str, int] | None]
    #: Those that we run, by their names in the report.
    candidates: Mapping[str, Candidate]
    #: The method that the chapter proposes.
    own: str
    n_folds: int
    #: The data sets of the quick version: small ones.
    quick: Sequence[str]
    #: Pairs of candidate and data set that would take too long.
    skipped: frozenset[tuple[str, str]] = frozenset()

    @property
    def published(self) -> PublishedTable:
        return published(self.source)

    @property
    def measures(self) -> Sequence[str]:
        return self.published.measures

    def higher_is_better(self, measure: str) -> bool:
        return self.published.higher_is_better[measure]

    def cells_at(self, scale: Scale, title: str, name: str) -> list[Cell]:
        if (name, title) in self.skipped:
            return []
        return self.folds(scale, title, self.candidates[name])

    def folds(self, scale: Scale, title: str, one: Candidate) -> list[Cell]:
        """Return the folds of a method on one data set; the quick version keeps its defaults."""
        source = self.data[title]
        if source is None:
            return []
        data, n_labels = source
        grids = one.search(n_labels) if scale == "full" else []
        return make_splits(
            "label_measures",
            1 if scale == "quick" else self.n_folds,
            data=data,
            protocol={"folds": 3 if scale == "quick" else self.n_folds},
            method=one.method,
            params=dict(one.params),
            rule=dict(one.rule),
            **({"search": grids} if grids else {}),
        )

    def cells(self, scale: Scale) -> list[Cell]:
        """Return every candidate on every data set of a scale."""
        return [
            cell
            for title in (self.quick if scale == "quick" else self.data)
            for name in self.candidates
            for cell in self.cells_at(scale, title, name)
        ]

    def sample(
        self, store: Store, scale: Scale, measure: str, title: str, name: str
    ) -> Sample | None:
        return find_sample(store, self.cells_at(scale, title, name), pick(measure))

    def compare(self, measure: str, title: str, ours: Sample | None) -> tuple[Outcome, str] | None:
        """Return whether the chapter's own method reaches what was published, and by how much.

        None where one of the two is not known.
        """
        there = self.published.at(measure, title, self.own)
        if ours is None or there is None:
            return None
        higher = self.higher_is_better(measure)
        return (
            judge(ours, there, higher_is_better=higher, digits=3),
            format_difference(ours.mean, there.mean, 3),
        )

    def table(self, store: Store, scale: Scale, measure: str) -> Table:
        """Return one measure: for every method the published figure, ours, and the difference."""
        there = self.published
        names = [*there.methods, *(name for name in self.candidates if name not in there.methods)]
        rows = []
        for title in self.data:
            ours = {n: self.sample(store, scale, measure, title, n) for n in self.candidates}
            best = self._best(measure, ours)
            row = [Entry(title)]
            for name in names:
                shown = self._entry(ours, name, name in best, title)
                if name in there.methods:
                    row += compare_entries(shown, ours.get(name), there.at(measure, title, name), 3)
                else:
                    row.append(shown)
            rows.append(row)
        headings = []
        for name in names:
            printed = [f"{name} published"] if name in there.methods else []
            headings += [*printed, f"{name} ours", *(["diff."] if printed else [])]
        direction = "higher" if self.higher_is_better(measure) else "lower"
        notes = [
            f"Bold: the best of ours. * differs from ours of {self.own} at 0.05, by the t-test "
            "over folds that allows for training sets in common.",
            "Not yet: the library does not have this method. No data: we do not have this set.",
        ]
        caption = f"{metric(measure).heading} ({direction} is better)"
        return Table(["data set", *headings], rows, caption, notes=notes)

    def _entry(self, ours: Mapping[str, Sample | None], name: str, best: bool, title: str) -> Entry:
        if name not in self.candidates:
            return Entry("not yet")
        if self.data[title] is None:
            return Entry("no data")
        if (name, title) in self.skipped:
            return Entry("too long")
        other = are_different(ours[name], ours[self.own], 1 / self.n_folds)
        return make_entry(ours[name], digits=3, best=best, mark="*" if other else "")

    def _best(self, measure: str, ours: Mapping[str, Sample | None]) -> set[str]:
        means = {name: round(one.mean, 3) for name, one in ours.items() if one is not None}
        if not means:
            return set()
        best = max(means.values()) if self.higher_is_better(measure) else min(means.values())
        return {name for name, mean in means.items() if mean == best}

    def scores(self, store: Store, scale: Scale, measure: str) -> dict[str, dict[str, float]]:
        """Return means by candidate and data set, where every candidate has been run."""
        rows = {
            title: [self.sample(store, scale, measure, title, name) for name in self.candidates]
            for title in self.data
        }
        whole = {title: row for title, row in rows.items() if None not in row}
        return {
            name: {title: row[k].mean for title, row in whole.items()}  # type: ignore[union-attr]
            for k, name in enumerate(self.candidates)
        }


@dataclass(frozen=True)
class Retuned:
    """A table's own method once more, its parameters chosen for a measure in which it falls short.

    The table chooses them for accuracy: this tells whether the choice is the reason.
    """

    table: LabelTable
    #: The measure that parameters and thresholds are chosen for.
    measure: str
    #: The data sets of the table, by the names in the thesis.
    titles: Sequence[str]
    #: Why these, if not all.
    note: str = ""

    def cells(self, scale: Scale) -> list[Cell]:
        """Return the folds of all data sets; the quick version, which tunes nothing, has none."""
        titles = self.titles if scale == "full" else ()
        return [cell for title in titles for cell in self._folds(title)]

    def describe(self, store: Store, scale: Scale) -> str:
        """Return in words on how many sets the published figure is reached now, if any were run."""
        outcomes = []
        for title in self.titles if scale == "full" else ():
            ours = find_sample(store, self._folds(title), pick(self.measure))
            if (found := self.table.compare(self.measure, title, ours)) is not None:
                outcomes.append(found[0])
        if not outcomes:
            return ""
        name, reached = (
            metric(self.measure).heading,
            len(outcomes) - outcomes.count("not reproduced"),
        )
        return (
            f" Tuned for {name} instead of accuracy, it is short of the published {name} by no "
            f"more than noise on {reached} of {len(outcomes)} sets: see the last table, "
            "also for what this costs in accuracy."
        )

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        """Compare both choices with the published figure, and what they cost in accuracy."""
        if scale == "quick":
            return []
        name = metric(self.measure).heading
        headings = ["published", "for accuracy", "diff.", f"for {name}", "diff."]
        headings += ["accuracy, for accuracy", f"accuracy, for {name}"]
        return [
            Table(
                ["data set", *headings],
                [self._row(store, title) for title in self.titles],
                f"{name} of {self.table.own} when it is tuned for {name} instead of accuracy",
                notes=[self.note] if self.note else [],
            )
        ]

    def _folds(self, title: str) -> list[Cell]:
        own = self.table.candidates[self.table.own]
        tuned = replace(own, rule={**own.rule, "tune_for": self.measure})
        return self.table.folds("full", title, tuned)

    def _row(self, store: Store, title: str) -> list[Entry]:
        there = self.table.published.at(self.measure, title, self.table.own)
        row, accuracies = [Entry(title)], []
        for cells in (self.table.cells_at("full", title, self.table.own), self._folds(title)):
            ours = find_sample(store, cells, pick(self.measure))
            printed, *rest = compare_entries(make_entry(ours, 3), ours, there, 3)
            row += rest if accuracies else [printed, *rest]
            accuracies.append(make_entry(find_sample(store, cells, pick("accuracy")), 3))
        return row + accuracies
