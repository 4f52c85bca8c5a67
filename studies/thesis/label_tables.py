"""What chapters 5 and 6 share: candidates on label sets, their tables, tests and diagrams."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

from marginmf.metrics import metric
from marginmf.stats import friedman_test, nemenyi_critical_difference, wilcoxon_holm
from studies.harness import Cell, Store, make_splits
from studies.harness.markdown import Block, Entry, Figure, Outcome, Table, Text, Verdict
from studies.thesis.exhibit import Exhibit, Scale
from studies.thesis.figures import critical_difference_figure
from studies.thesis.published import PublishedTable, published, published_friedman
from studies.thesis.samples import (
    Sample,
    are_different,
    compare_entries,
    find_sample,
    format_difference,
    judge,
    make_entry,
    make_verdict,
    pick,
)

SIGN = {"decision": "sign"}
GLOBAL = {"decision": "global"}

#: Printed statistics have three digits; tables that they follow from give them to this.
ROUNDING = 0.02

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

    def cells_at(self, scale: Scale, title: str, name: str) -> list[Cell]:
        skipped = (name, title) in self.skipped
        return [] if skipped else self.folds(scale, title, self.candidates[name])

    def folds(self, scale: Scale, title: str, one: Candidate) -> list[Cell]:
        """Return the folds of a method on one data set; the quick version keeps its defaults."""
        if (source := self.data[title]) is None:
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
        points = product(self.quick if scale == "quick" else self.data, self.candidates)
        return [cell for point in points for cell in self.cells_at(scale, *point)]

    def sample(
        self, store: Store, scale: Scale, measure: str, title: str, name: str
    ) -> Sample | None:
        return find_sample(store, self.cells_at(scale, title, name), pick(measure))

    def compare(self, measure: str, title: str, ours: Sample | None) -> tuple[Outcome, str] | None:
        """Return whether the own method reaches what was published, and by how much, if known."""
        there = self.published.at(measure, title, self.own)
        if ours is None or there is None:
            return None
        higher = bool(metric(measure).higher_is_better)
        outcome = judge(ours, there, higher_is_better=higher, digits=3)
        return outcome, format_difference(ours.mean, there.mean, 3)

    def table(self, store: Store, scale: Scale, measure: str) -> Table:
        """Return one measure: for every method the published figure, ours, and the difference."""
        there = self.published
        names = [*there.methods, *(name for name in self.candidates if name not in there.methods)]
        rows = []
        for title in self.data:
            ours = {n: self.sample(store, scale, measure, title, n) for n in self.candidates}
            means = {name: round(one.mean, 3) for name, one in ours.items() if one is not None}
            best = means.get(metric(measure).best(means) or "")
            row = [Entry(title)]
            for name in names:
                shown = self._entry(ours, name, means.get(name, math.nan) == best, title)
                printed = there.at(measure, title, name) if name in there.methods else None
                three = compare_entries(shown, ours.get(name), printed, 3)
                row += three if name in there.methods else three[1:2]
            rows.append(row)
        headings = []
        for name in names:
            three = [f"{name} published", f"{name} ours", "diff."]
            headings += three if name in there.methods else three[1:2]
        direction = "higher" if metric(measure).higher_is_better else "lower"
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

    def scores(self, store: Store, scale: Scale, measure: str) -> dict[str, dict[str, float]]:
        """Return means by candidate and data set, where every candidate has been run."""
        scores: dict[str, dict[str, float]] = {name: {} for name in self.candidates}
        for title in self.data:
            row = [self.sample(store, scale, measure, title, name) for name in self.candidates]
            if None not in row:
                for own, sample in zip(scores.values(), row, strict=True):
                    own[title] = sample.mean  # type: ignore[union-attr]
        return scores


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
        reached, name = [], metric(self.measure).heading
        for title in self.titles if scale == "full" else ():
            ours = find_sample(store, self._folds(title), pick(self.measure))
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
    kind = "table"

    def cells(self, scale: Scale) -> list[Cell]:
        return [*super().cells(scale), *self.retuned.cells(scale)]

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        blocks: list[Block] = [self._verdict(store, scale), Text(self.protocol)]
        if scale == "quick":
            blocks.append(Text("This quick version: one fold of three, default parameters."))
        blocks += [self.table.table(store, scale, measure) for measure in self.measures]
        return blocks + self.retuned.blocks(store, scale)

    def _verdict(self, store: Store, scale: Scale) -> Verdict:
        own, outcomes, short = self.table.own, Counter[Outcome](), []
        for measure, dataset in product(self.measures, self.table.data):
            ours = self.table.sample(store, scale, measure, dataset, own)
            if (found := self.table.compare(measure, dataset, ours)) is not None:
                outcomes[found[0]] += 1
                if found[0] == "not reproduced":
                    short.append(f"{metric(measure).heading} on {dataset} ({found[1]})")
        n_figures = outcomes.total()
        if not n_figures:
            return Verdict("not run", f"{own} has not been run.")
        reached = [one for one in ("reproduced", "within noise") if outcomes[one]]
        words = ", ".join(f"{outcomes[one]} {one}" for one in reached)
        if not short:
            return Verdict(reached[-1], f"{own}: of {n_figures} figures, {words}.")
        return Verdict(
            "not reproduced",
            f"{own}: of {n_figures} figures, {words or 'none reached'}; short of the published "
            f"figure by more than noise in {len(short)}: {'; '.join(short)}."
            + self.retuned.describe(store, scale),
            f"tuned for accuracy, {own} is short in {len(short)} of {n_figures} figures",
        )


def run_friedman(measure: str, scores: dict[str, dict[str, float]]) -> Any:
    """Return Friedman's test of a measure; None with less than two data sets."""
    if len(next(iter(scores.values()))) < 2:
        return None
    return friedman_test(scores, higher_is_better=bool(metric(measure).higher_is_better))


@dataclass(frozen=True)
class LabelFriedman(LabelExhibit):
    """Friedman's statistics: as printed, from the published figures, and from ours."""

    kind = "table"

    @property
    def title(self) -> str:  # type: ignore[override]
        return f"Friedman's test over the label sets of chapter {self.chapter}"

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        table, printed = self.table, published_friedman(self.table.source)
        rows, agree, reject = [], [], []
        for measure in table.published.measures:
            again = run_friedman(measure, table.published.scores(measure, printed.left_out))
            agree.append(abs(again.f - printed.f[measure]) <= ROUNDING)
            reject.append(again.differ)
            rows.append(
                [
                    metric(measure).heading,
                    f"{printed.f[measure]:.3f}",
                    Entry(f"{again.f:.3f}", mark="" if agree[-1] else "!"),
                    f"{printed.critical_value:.3f}",
                    f"{again.f_critical:.3f}",
                    *self._ours(store, scale, measure),
                ]
            )
        conclusion = (
            "the methods differ in every measure, as the thesis says"
            if all(reject)
            else "not in every measure do the methods differ"
        )
        count = f"{agree.count(False)} of the {len(agree)} printed F"
        wrong = f"{count} do not follow from the thesis's own table"
        headings = ["measure", "F printed", "F from the published table"]
        headings += ["critical value printed", "critical value", "F of ours", "sets", "p of ours"]
        return [
            make_verdict(
                all(agree),
                f"all printed F follow from the published table; {conclusion}."
                if all(agree)
                else f"{wrong}, whose figures give others; {conclusion} all the same.",
                wrong,
            ),
            Text(
                f"Iman and Davenport's F over {printed.n_datasets} data sets and "
                f"{printed.n_methods} methods, by Demšar's formula, without a correction for ties. "
                f"Ours: {', '.join(table.candidates)}, on the sets where all of them have been run."
            ),
            Table(headings, rows, "Friedman's test", notes=["! differs from what is printed."]),
            *self._pairs(store, scale),
        ]

    def _ours(self, store: Store, scale: Scale, measure: str) -> list[str]:
        test = run_friedman(measure, self.table.scores(store, scale, measure))
        if test is None:
            return ["not run", "", ""]
        return [f"{test.f:.3f}", str(test.n_datasets), f"{test.f_p:.2g}"]

    def _pairs(self, store: Store, scale: Scale) -> list[Block]:
        """Compare the candidates in pairs, by accuracy."""
        scores = self.table.scores(store, scale, "accuracy")
        n_datasets = len(next(iter(scores.values())))
        if n_datasets < 2:
            return []
        rows: list[list[Entry | str]] = [
            [
                f"{one.first}, {one.second}",
                f"{one.wins}/{one.ties}/{one.losses}",
                f"{one.p_value:.3g}",
                Entry(f"{one.adjusted_p:.3g}", mark="*" if one.differ else ""),
                f"{one.rank_biserial:+.2f}",
            ]
            for one in wilcoxon_holm(scores, higher_is_better=True)
        ]
        return [
            Table(
                ["pair", "wins/ties/losses", "p", "p after Holm", "rank-biserial correlation"],
                rows,
                f"Wilcoxon's signed ranks of our accuracies on {n_datasets} sets, in pairs",
                notes=["* the pair differs at 0.05."],
            )
        ]


@dataclass(frozen=True)
class LabelCriticalDifference(LabelExhibit):
    """Critical-difference diagrams: of the published figures, and of ours."""

    @property
    def title(self) -> str:  # type: ignore[override]
        return f"Critical differences of chapter {self.chapter}"

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        table, printed, own = self.table, published_friedman(self.table.source), self.table.own
        again = nemenyi_critical_difference(printed.n_methods, printed.n_datasets)
        ranks, ours, n_datasets = {}, {}, 0
        for measure in table.published.measures:
            title = metric(measure).heading
            scores = table.published.scores(measure, printed.left_out)
            ranks[title] = run_friedman(measure, scores).average_ranks
            if test := run_friedman(measure, table.scores(store, scale, measure)):
                ours[title], n_datasets = test.average_ranks, test.n_datasets
        behind = [title for title, one in ranks.items() if min(one, key=one.__getitem__) != own]
        blocks: list[Block] = [
            make_verdict(
                abs(again - printed.critical_difference) < 0.01 and not behind,
                f"the critical difference is {again:.3f} (printed "
                f"{printed.critical_difference:.3f}); {own} has the best average rank of the "
                f"published figures in {len(ranks) - len(behind)} of {len(ranks)} measures"
                + (f", and not in {', '.join(behind)}." if behind else "."),
                f"{own} does not have the best average rank of the published figures everywhere",
            ),
            Figure(
                lambda: critical_difference_figure(ranks, again),
                "Average ranks from the published figures",
                "A diagram for each measure: methods by their average rank, the best to the left; "
                "bars join those that do not differ by Nemenyi's test at 0.05.",
            ),
        ]
        if ours:
            difference = nemenyi_critical_difference(len(table.candidates), n_datasets)
            blocks.append(
                Figure(
                    partial(critical_difference_figure, ours, difference),
                    f"Average ranks from our figures, over {n_datasets} data sets",
                    "The same for the methods that we have run.",
                )
            )
        return blocks
