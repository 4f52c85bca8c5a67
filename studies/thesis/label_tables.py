"""What chapters 5 and 6 share: candidates on label sets, and their tables."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from marginmf.metrics import metric
from studies.harness import Cell, Store, make_splits
from studies.harness.markdown import Block, Entry, Outcome, Table, Text, Verdict
from studies.thesis.exhibit import Exhibit, Scale
from studies.thesis.published import PublishedTable, published
from studies.thesis.samples import (
    Pick,
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


#: The two ways in which methods decide: each as its authors (or the thesis) have it, and all by
#: one threshold that is chosen inside the training folds.
AS_PUBLISHED, SHARED = "as published", "with the shared rule"
GROUPS = (AS_PUBLISHED, SHARED)
FORMS = ["scaled", "raw"]


@dataclass(frozen=True)
class Candidate:
    """A method with its parameters, the rule that it decides by, and how both are searched."""

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    rule: Mapping[str, Any] = field(default_factory=lambda: SIGN)
    #: From the number of labels to the parameters that are searched, all combinations.
    search: Callable[[int], Grid] = lambda n_labels: {}
    #: What they are chosen for, each by itself; tables show the first.
    targets: Sequence[str] = ("accuracy",)
    #: Whether it takes minutes on a large set.
    slow: bool = False
    #: Whether raw features are a candidate where they are dense.
    forms: bool = True


@dataclass(frozen=True)
class LabelTable:
    """One of the tables: candidates by name, on data sets, by cross-validation."""

    #: The published table.
    source: str
    #: By its name in the thesis, the data set that we have and its number of labels, or None.
    data: Mapping[str, tuple[str, int] | None]
    #: Those that we run, by their names in the report: as published, and with the shared rule.
    candidates: Mapping[str, Candidate]
    shared: Mapping[str, Candidate]
    #: The method that the chapter proposes.
    own: str
    n_folds: int
    #: The data sets of the quick version: small ones.
    quick: Sequence[str]
    #: Sets with dense features, of which both forms, raw and scaled, are candidates.
    dense: frozenset[str] = frozenset()
    #: Sets on which slow methods are run on the first folds alone, and on how many.
    large: frozenset[str] = frozenset()
    n_slow: int = 3
    #: Pairs of candidate and data set that would take too long.
    skipped: frozenset[tuple[str, str]] = frozenset()

    @property
    def published(self) -> PublishedTable:
        return published(self.source)

    def group(self, which: str) -> Mapping[str, Candidate]:
        return self.candidates if which == AS_PUBLISHED else self.shared

    def cells_at(
        self, scale: Scale, title: str, name: str, which: str = AS_PUBLISHED
    ) -> list[Cell]:
        skipped = (name, title) in self.skipped
        return [] if skipped else self.folds(scale, title, self.group(which)[name])

    def folds(self, scale: Scale, title: str, one: Candidate) -> list[Cell]:
        """Return the folds of a method on one data set; the quick version keeps its defaults."""
        if (source := self.data[title]) is None:
            return []
        data, n_labels = source
        grid = one.search(n_labels)
        if title in self.dense and one.forms:
            grid = {"features": FORMS, **grid}
        n_splits = self.n_slow if one.slow and title in self.large else self.n_folds
        searched = {"search": [grid]} if grid and scale == "full" else {}
        if searched and len(one.targets) > 1:
            searched["targets"] = list(one.targets)
        return make_splits(
            "label_measures",
            1 if scale == "quick" else n_splits,
            data=data,
            protocol={"folds": 3 if scale == "quick" else self.n_folds},
            method=one.method,
            params=dict(one.params),
            rule=dict(one.rule),
            **searched,
        )

    def cells(self, scale: Scale) -> list[Cell]:
        """Return every candidate on every data set of a scale."""
        titles = self.quick if scale == "quick" else self.data
        points = (
            (title, name, which)
            for title in titles
            for which in GROUPS
            for name in self.group(which)
        )
        cells = (cell for point in points for cell in self.cells_at(scale, *point))
        return list({cell.key: cell for cell in cells}.values())

    def sample(
        self,
        store: Store,
        scale: Scale,
        measure: str,
        title: str,
        name: str,
        which: str = AS_PUBLISHED,
    ) -> Sample | None:
        return find_sample(store, self.cells_at(scale, title, name, which), pick(measure))

    def compare(self, measure: str, title: str, ours: Sample | None) -> tuple[Outcome, str] | None:
        """Return whether the own method reaches what was published, and by how much, if known."""
        there = self.published.at(measure, title, self.own)
        if ours is None or there is None:
            return None
        higher = bool(metric(measure).higher_is_better)
        outcome = judge(ours, there, higher_is_better=higher, digits=3)
        return outcome, format_difference(ours.mean, there.mean, 3)

    def tables(self, store: Store, scale: Scale, measure: str) -> list[Table]:
        """Return one measure: published figures beside ours, then ours with the shared rule."""
        there = self.published
        names = [*there.methods, *(name for name in self.candidates if name not in there.methods)]
        headings: list[str] = []
        for name in names:
            three = [f"{name} published", f"{name} ours", "diff."]
            headings += three if name in there.methods else three[1:2]
        rows = {which: self._rows(store, scale, measure, which) for which in GROUPS}
        direction = "higher" if metric(measure).higher_is_better else "lower"
        caption = f"{metric(measure).heading} ({direction} is better)"
        notes = [
            f"Bold: the best of ours. * differs from ours of {self.own} at 0.05, by the t-test "
            "over folds that allows for training sets in common.",
        ]
        if None in self.data.values():
            notes.append("No data: we do not have this set.")
        compared = [
            [Entry(title), *self._compare_all(store, scale, measure, title, names, own)]
            for title, own in rows[AS_PUBLISHED].items()
        ]
        return [
            Table(["data set", *headings], compared, f"{caption}, {AS_PUBLISHED}", notes=notes),
            Table(
                ["data set", *self.shared],
                [[Entry(title), *own.values()] for title, own in rows[SHARED].items()],
                f"{caption}, {SHARED}",
                notes=notes,
            ),
        ]

    def _compare_all(
        self,
        store: Store,
        scale: Scale,
        measure: str,
        title: str,
        names: Sequence[str],
        shown: Mapping[str, Entry],
    ) -> list[Entry]:
        """Return a row of published figures, ours, and the differences."""
        row: list[Entry] = []
        for name in names:
            entry = shown.get(name, Entry("not run"))
            if name not in self.published.methods:
                row.append(entry)
                continue
            known = name in self.candidates
            ours = self.sample(store, scale, measure, title, name) if known else None
            row += compare_entries(entry, ours, self.published.at(measure, title, name), 3)
        return row

    def _rows(
        self, store: Store, scale: Scale, measure: str, which: str
    ) -> dict[str, dict[str, Entry]]:
        """Return what ours reach, by data set and candidate."""
        rows = {}
        for title in self.data:
            ours = {
                name: self.sample(store, scale, measure, title, name, which)
                for name in self.group(which)
            }
            means = {name: round(one.mean, 3) for name, one in ours.items() if one is not None}
            best = means.get(metric(measure).best(means) or "")
            rows[title] = {
                name: self._entry(ours, name, means.get(name, math.nan) == best, title)
                for name in ours
            }
        return rows

    def _entry(self, ours: Mapping[str, Sample | None], name: str, best: bool, title: str) -> Entry:
        if self.data[title] is None:
            return Entry("no data")
        if (name, title) in self.skipped:
            return Entry("too long")
        other = are_different(ours[name], ours.get(self.own), 1 / self.n_folds)
        return make_entry(ours[name], digits=3, best=best, mark="*" if other else "")

    def scores(
        self, store: Store, scale: Scale, measure: str, which: str = AS_PUBLISHED
    ) -> dict[str, dict[str, float]]:
        """Return means by candidate and data set, where every candidate has been run.

        Candidates that have not been run at all are left out, and those with a rule of their own.
        """
        found: dict[str, dict[str, float]] = {}
        for name in (name for name, one in self.group(which).items() if one.rule):
            samples = {
                title: self.sample(store, scale, measure, title, name, which) for title in self.data
            }
            means = {title: one.mean for title, one in samples.items() if one is not None}
            if means:
                found[name] = means
        common = [title for title in self.data if all(title in one for one in found.values())]
        return {name: {title: means[title] for title in common} for name, means in found.items()}

    def describe_lead(self, store: Store, scale: Scale, first: str, second: str) -> str:
        """Say how far a method is ahead of another in accuracy, under both rules."""
        words = []
        for which in GROUPS:
            scores = self.scores(store, scale, "accuracy", which)
            if first in scores and second in scores and scores[first]:
                leads = [scores[first][title] - scores[second][title] for title in scores[first]]
                lead = sum(leads) / len(leads)
                words.append(f"{lead:+z.3f} {which} ({len(leads)} sets)")
        return f"{first} against {second}: {', '.join(words)}" if words else ""


@dataclass(frozen=True)
class Retuned:
    """A table's own method once more, its parameters chosen for a measure in which it falls short.

    The table chooses them for accuracy: this tells whether the choice is the reason.  Both choices
    are made in the same cells, for the candidate's targets.
    """

    table: LabelTable
    #: The measure that parameters and thresholds are chosen for.
    measure: str
    #: The data sets of the table, by the names in the thesis.
    titles: Sequence[str]
    #: Why these, if not all.
    note: str = ""

    def describe(self, store: Store, scale: Scale) -> str:
        """Return in words on how many sets the published figure is reached now, if any were run."""
        reached, name = [], metric(self.measure).heading
        for title in self.titles if scale == "full" else ():
            ours = find_sample(store, self._folds(title), self._pick(self.measure))
            if (found := self.table.compare(self.measure, title, ours)) is not None:
                reached.append(found[0] != "not reproduced")
        if not reached:
            return ""
        return (
            f" Tuned for {name} instead of accuracy, it is short of the published {name} by no "
            f"more than noise on {sum(reached)} of {len(reached)} sets: see the last table, "
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
        return self.table.cells_at("full", title, self.table.own)

    def _pick(self, measure: str) -> Pick:
        """Return what picks a measure of the candidates that were chosen for this one."""
        return pick("for", self.measure, measure)

    def _row(self, store: Store, title: str) -> list[Entry]:
        there = self.table.published.at(self.measure, title, self.table.own)
        row, accuracies, cells = [Entry(title)], [], self._folds(title)
        for choose in (pick, self._pick):
            ours = find_sample(store, cells, choose(self.measure))
            printed, *rest = compare_entries(make_entry(ours, 3), ours, there, 3)
            row += rest if accuracies else [printed, *rest]
            accuracies.append(make_entry(find_sample(store, cells, choose("accuracy")), 3))
        return row + accuracies


@dataclass(frozen=True)
class LabelExhibit(Exhibit):
    """An exhibit that shows a table of candidates on label sets."""

    name: str
    chapter: int
    table: LabelTable

    def cells(self, scale: Scale) -> list[Cell]:
        return self.table.cells(scale)


@dataclass(frozen=True)
class LabelMeasures(LabelExhibit):
    """A table of results: a table for every measure, published figures beside ours."""

    title: str
    measures: Sequence[str]
    protocol: str
    retuned: Retuned
    #: Methods whose published lead over another is their threshold, and what is said of it.
    leads: Sequence[tuple[str, str]]
    reading: str
    kind = "table"

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        blocks: list[Block] = [self._verdict(store, scale), Text(self.protocol)]
        if scale == "quick":
            blocks.append(Text("This quick version: one fold of three, default parameters."))
        found = [self.table.describe_lead(store, scale, *pair) for pair in self.leads]
        words = "; ".join(one for one in found if one)
        blocks.append(Text(f"{self.reading}{f' Mean accuracy here: {words}.' if words else ''}"))
        for measure in self.measures:
            blocks += self.table.tables(store, scale, measure)
        return blocks + self.retuned.blocks(store, scale)

    def _verdict(self, store: Store, scale: Scale) -> Verdict:
        own, outcomes, short = self.table.own, Counter[Outcome](), []
        wanted = self.table.quick if scale == "quick" else self.table.data
        left = {title for title in wanted if self.table.data[title] is not None}
        for measure, dataset in product(self.measures, self.table.data):
            ours = self.table.sample(store, scale, measure, dataset, own)
            left -= {dataset} if ours is not None else set()
            if (found := self.table.compare(measure, dataset, ours)) is not None:
                outcomes[found[0]] += 1
                if found[0] == "not reproduced":
                    short.append(f"{metric(measure).heading} on {dataset} ({found[1]})")
        n_figures = outcomes.total()
        if not n_figures:
            return Verdict("not run", f"{own} has not been run.")
        reached = [one for one in ("reproduced", "within noise") if outcomes[one]]
        words = ", ".join(f"{outcomes[one]} {one}" for one in reached)
        if left:
            return Verdict(
                "not run",
                f"{own} has yet to be run on {', '.join(sorted(left))}. Of {n_figures} figures so "
                f"far, {words or 'none reached'}, {len(short)} short by more than noise.",
            )
        if not short:
            return Verdict(reached[-1], f"{own}: of {n_figures} figures, {words}.")
        return Verdict(
            "not reproduced",
            f"{own}: of {n_figures} figures, {words or 'none reached'}; short of the published "
            f"figure by more than noise in {len(short)}: {'; '.join(short)}."
            + self.retuned.describe(store, scale),
            f"tuned for accuracy, {own} is short in {len(short)} of {n_figures} figures",
        )
