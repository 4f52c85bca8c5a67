"""The kinds of exhibits that chapters 5 and 6 have in common."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

from marginmf.metrics import metric
from marginmf.stats import friedman_test, nemenyi_critical_difference, wilcoxon_holm
from studies.harness import Cell, Store
from studies.harness.markdown import Block, Entry, Figure, Outcome, Table, Text, Verdict
from studies.thesis.exhibit import Exhibit, Scale
from studies.thesis.figures import critical_difference_figure
from studies.thesis.label_tables import LabelTable, Retuned
from studies.thesis.published import published_friedman
from studies.thesis.samples import make_verdict

#: Printed statistics have three digits; tables that they follow from give them to this.
ROUNDING = 0.02


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
        reached: tuple[Outcome, ...] = ("reproduced", "within noise")
        words = ", ".join(f"{outcomes[one]} {one}" for one in reached if outcomes[one])
        if not short:
            outcome: Outcome = "within noise" if outcomes["within noise"] else "reproduced"
            return Verdict(outcome, f"{own}: of {n_figures} figures, {words}.")
        return Verdict(
            "not reproduced",
            f"{own}: of {n_figures} figures, {words or 'none reached'}; short of the published "
            f"figure by more than noise in {len(short)}: {'; '.join(short)}."
            + self.retuned.describe(store, scale),
            f"tuned for accuracy, {own} is short in {len(short)} of {n_figures} figures",
        )


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
        for measure in table.measures:
            again = friedman_test(
                table.published.scores(measure, printed.left_out),
                higher_is_better=table.higher_is_better(measure),
            )
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
        scores = self.table.scores(store, scale, measure)
        n_datasets = len(next(iter(scores.values())))
        if n_datasets < 2:
            return ["not run", "", ""]
        test = friedman_test(scores, higher_is_better=self.table.higher_is_better(measure))
        return [f"{test.f:.3f}", str(n_datasets), f"{test.f_p:.2g}"]

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
        for measure in table.measures:
            higher, title = table.higher_is_better(measure), metric(measure).heading
            scores = table.published.scores(measure, printed.left_out)
            ranks[title] = friedman_test(scores, higher_is_better=higher).average_ranks
            own_scores = table.scores(store, scale, measure)
            n_datasets = len(next(iter(own_scores.values())))
            if n_datasets > 1:
                ours[title] = friedman_test(own_scores, higher_is_better=higher).average_ranks
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
