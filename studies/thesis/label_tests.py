"""Tests and diagrams over the label sets of chapters 5 and 6: published figures, and ours."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from marginmf.metrics import metric
from marginmf.stats import friedman_test, nemenyi_critical_difference, wilcoxon_holm
from studies.harness import Store
from studies.harness.markdown import Block, Entry, Figure, Table, Text, Verdict
from studies.thesis.exhibit import Scale
from studies.thesis.figures import critical_difference_figure
from studies.thesis.label_tables import AS_PUBLISHED, GROUPS, SHARED, LabelExhibit
from studies.thesis.published import published_friedman
from studies.thesis.samples import make_verdict

#: Printed statistics have three digits; tables that they follow from give them to this.
ROUNDING = 0.02


def run_friedman(measure: str, scores: dict[str, dict[str, float]]) -> Any:
    """Return Friedman's test of a measure; None with less than two data sets."""
    if len(scores) < 2 or len(next(iter(scores.values()))) < 2:
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
                    *self._ours(store, scale, measure, AS_PUBLISHED),
                    *self._ours(store, scale, measure, SHARED),
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
        headings += ["critical value printed", "critical value"]
        for which in GROUPS:
            headings += [f"F of ours, {which}", "sets", "p"]
        return [
            Verdict(
                "reproduced" if all(agree) else "slip in the thesis",
                f"all printed F follow from the published table; {conclusion}."
                if all(agree)
                else f"{wrong}, whose figures give others; {conclusion} all the same.",
                wrong,
            ),
            Text(
                f"Iman and Davenport's F over {printed.n_datasets} data sets and "
                f"{printed.n_methods} methods, by Demšar's formula, without a correction for ties. "
                f"Ours, {AS_PUBLISHED}: {', '.join(table.candidates)}; {SHARED}: "
                f"{', '.join(table.shared)}; on the sets where all that have been run were run."
            ),
            Table(headings, rows, "Friedman's test", notes=["! differs from what is printed."]),
            *(block for which in GROUPS for block in self._pairs(store, scale, which)),
        ]

    def _ours(self, store: Store, scale: Scale, measure: str, which: str) -> list[str]:
        test = run_friedman(measure, self.table.scores(store, scale, measure, which))
        if test is None:
            return ["not run", "", ""]
        return [f"{test.f:.3f}", str(test.n_datasets), f"{test.f_p:.2g}"]

    def _pairs(self, store: Store, scale: Scale, which: str) -> list[Block]:
        """Compare the candidates in pairs, by accuracy."""
        scores = self.table.scores(store, scale, "accuracy", which)
        n_datasets = len(next(iter(scores.values()), ()))
        if len(scores) < 2 or n_datasets < 2:
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
                f"Wilcoxon's signed ranks of accuracies {which}, on {n_datasets} sets, in pairs",
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
        ranks = {
            metric(measure).heading: run_friedman(
                measure, table.published.scores(measure, printed.left_out)
            ).average_ranks
            for measure in table.published.measures
        }
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
        for which in GROUPS:
            blocks += self._ours(store, scale, which)
        return blocks

    def _ours(self, store: Store, scale: Scale, which: str) -> list[Block]:
        """Draw the diagrams of our figures, if they have been run."""
        tests = {
            metric(measure).heading: run_friedman(
                measure, self.table.scores(store, scale, measure, which)
            )
            for measure in self.table.published.measures
        }
        found = {title: test for title, test in tests.items() if test is not None}
        if not found:
            return []
        any_test = next(iter(found.values()))
        n_methods, n_datasets = len(any_test.average_ranks), any_test.n_datasets
        ranks = {title: test.average_ranks for title, test in found.items()}
        difference = nemenyi_critical_difference(n_methods, n_datasets)
        return [
            Figure(
                partial(critical_difference_figure, ranks, difference),
                f"Average ranks from our figures {which}, over {n_datasets} data sets",
                "The same for the methods that we have run.",
            )
        ]
