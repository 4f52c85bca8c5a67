"""The kinds of exhibits that chapters 5 and 6 have in common."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from marginmf.experiments.blocks import Block, Entry, Figure, Outcome, Table, Text, Verdict
from marginmf.experiments.cell import Cell
from marginmf.experiments.claims import ORDER
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import critical_difference_figure
from marginmf.experiments.label_tables import MEASURES, LabelTable
from marginmf.experiments.published import published_friedman
from marginmf.experiments.retuned import Retuned
from marginmf.experiments.store import Store
from marginmf.stats import friedman_test, nemenyi_critical_difference, wilcoxon_holm

#: Printed statistics have three places; tables that they follow from give them to this.
ROUNDING = 0.02


def measures_exhibit(
    name: str,
    chapter: int,
    title: str,
    table: LabelTable,
    measures: Sequence[str],
    *,
    quick: Sequence[str],
    protocol: str,
    retuned: Retuned | None = None,
) -> Exhibit:
    """Return a table of results: a table for every measure, published figures beside ours."""
    own = table.own

    def cells(scale: Scale) -> list[Cell]:
        return [*_cells(table, quick, scale), *(retuned.cells(scale) if retuned else ())]

    def show(store: Store, scale: Scale) -> list[Block]:
        outcomes: list[Outcome] = []
        short: list[str] = []
        for measure, dataset in product(measures, table.data):
            ours = table.sample(store, measure, dataset, own, scale)
            if (found := table.compared(measure, dataset, ours)) is None:
                continue
            outcome, off = found
            outcomes.append(outcome)
            if outcome == "not reproduced":
                short.append(f"{MEASURES[measure]} on {dataset} ({off})")
        verdict = _summary(own, outcomes, short)
        if short and retuned:
            verdict = replace(verdict, why=verdict.why + retuned.finding(store, scale))
        blocks: list[Block] = [verdict, Text(protocol)]
        if scale == "quick":
            blocks.append(Text("This quick version: one fold of three, default parameters."))
        blocks += [table.table(store, measure, scale) for measure in measures]
        return blocks + (retuned.show(store, scale) if retuned else [])

    return Exhibit(name, chapter, "table", title, cells, show)


def _summary(own: str, outcomes: Sequence[Outcome], short: Sequence[str]) -> Verdict:
    if not outcomes:
        return Verdict("not run", f"{own} has not been run.")
    counts = Counter(outcomes)
    reached = [one for one in ORDER[:2] if counts[one]]
    words = ", ".join(f"{counts[one]} {one}" for one in reached)
    if not short:
        outcome: Outcome = "within noise" if counts["within noise"] else "reproduced"
        return Verdict(outcome, f"{own}: of {len(outcomes)} figures, {words}.")
    return Verdict(
        "not reproduced",
        f"{own}: of {len(outcomes)} figures, {words or 'none reached'}; short of the published "
        f"figure by more than noise in {len(short)}: {'; '.join(short)}.",
    )


def friedman_exhibit(
    name: str, chapter: int, table: LabelTable, *, quick: Sequence[str]
) -> Exhibit:
    """Return Friedman's statistics: as printed, from the published figures, and from ours."""

    def show(store: Store, scale: Scale) -> list[Block]:
        printed = published_friedman(table.source)
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
                    MEASURES[measure],
                    f"{printed.f[measure]:.3f}",
                    Entry(f"{again.f:.3f}", mark="" if agree[-1] else "!"),
                    f"{printed.critical_value:.3f}",
                    f"{again.f_critical:.3f}",
                    *_ours(table, store, measure, scale),
                ]
            )
        conclusion = (
            "the methods differ in every measure, as the thesis says"
            if all(reject)
            else "not in every measure do the methods differ"
        )
        verdict = (
            Verdict("reproduced", f"all printed F follow from the published table; {conclusion}.")
            if all(agree)
            else Verdict(
                "not reproduced",
                f"{agree.count(False)} of the {len(agree)} printed F do not follow from the "
                f"thesis's own table, whose figures give others; {conclusion} all the same.",
            )
        )
        headings = ["measure", "F printed", "F from the published table"]
        headings += ["critical value printed", "critical value", "F of ours", "sets", "p of ours"]
        return [
            verdict,
            Text(
                f"Iman and Davenport's F over {printed.n_datasets} data sets and "
                f"{printed.n_methods} methods, by Demšar's formula, without a correction for ties. "
                f"Ours: {', '.join(table.contenders)}, on the sets where all of them have been run."
            ),
            Table(headings, rows, "Friedman's test", notes=["! differs from what is printed."]),
            *_pairs(table, store, scale),
        ]

    return Exhibit(
        name,
        chapter,
        "table",
        f"Friedman's test over the label sets of chapter {chapter}",
        partial(_cells, table, quick),
        show,
    )


def critical_difference_exhibit(
    name: str, chapter: int, table: LabelTable, *, quick: Sequence[str]
) -> Exhibit:
    """Return critical-difference diagrams: of the published figures, and of ours."""

    def show(store: Store, scale: Scale) -> list[Block]:
        printed, own = published_friedman(table.source), table.own
        again = nemenyi_critical_difference(printed.n_methods, printed.n_datasets)
        ranks, ours = {}, {}
        for measure in table.measures:
            higher, title = table.higher_is_better(measure), MEASURES[measure]
            scores = table.published.scores(measure, printed.left_out)
            ranks[title] = friedman_test(scores, higher_is_better=higher).average_ranks
            datasets, names, means = table.scores(store, measure, scale)
            if len(datasets) > 1:
                by_name = dict(zip(names, means.T, strict=True))
                ours[title] = friedman_test(by_name, higher_is_better=higher).average_ranks
        first = [title for title, one in ranks.items() if min(one, key=one.__getitem__) == own]
        behind = [title for title in ranks if title not in first]
        sound = abs(again - printed.critical_difference) < 0.01
        verdict = Verdict(
            "reproduced" if sound and not behind else "not reproduced",
            f"the critical difference is {again:.3f} (printed {printed.critical_difference:.3f}); "
            f"{own} has the best average rank of the published figures in {len(first)} of "
            f"{len(ranks)} measures" + (f", and not in {', '.join(behind)}." if behind else "."),
        )
        blocks: list[Block] = [
            verdict,
            Figure(
                lambda: critical_difference_figure(ranks, again),
                "Average ranks from the published figures",
                "A diagram for each measure: methods by their average rank, the best to the left; "
                "bars join those that do not differ by Nemenyi's test at 0.05.",
            ),
        ]
        if ours:
            datasets, names, _ = table.scores(store, table.measures[0], scale)
            blocks.append(
                Figure(
                    lambda: critical_difference_figure(
                        ours, nemenyi_critical_difference(len(names), len(datasets))
                    ),
                    f"Average ranks from our figures, over {len(datasets)} data sets",
                    "The same for the methods that we have run.",
                )
            )
        return blocks

    return Exhibit(
        name,
        chapter,
        "figure",
        f"Critical differences of chapter {chapter}",
        partial(_cells, table, quick),
        show,
    )


def _cells(table: LabelTable, quick: Sequence[str], scale: Scale) -> Sequence[Cell]:
    return table.cells(scale, quick if scale == "quick" else ())


def _ours(table: LabelTable, store: Store, measure: str, scale: Scale) -> list[Entry | str]:
    datasets, names, means = table.scores(store, measure, scale)
    if len(datasets) < 2:
        return [Entry("not run", faint=True), "", ""]
    test = friedman_test(
        dict(zip(names, means.T, strict=True)), higher_is_better=table.higher_is_better(measure)
    )
    return [f"{test.f:.3f}", str(len(datasets)), f"{test.f_p:.2g}"]


def _pairs(table: LabelTable, store: Store, scale: Scale) -> list[Block]:
    """Compare the contenders in pairs, by accuracy."""
    datasets, names, means = table.scores(store, "accuracy", scale)
    if len(datasets) < 2:
        return []
    found = wilcoxon_holm(dict(zip(names, means.T, strict=True)), higher_is_better=True)
    rows: list[list[Entry | str]] = [
        [
            f"{one.first}, {one.second}",
            f"{one.wins}/{one.ties}/{one.losses}",
            f"{one.p_value:.3g}",
            Entry(f"{one.adjusted_p:.3g}", mark="*" if one.differ else ""),
            f"{one.rank_biserial:+.2f}",
        ]
        for one in found
    ]
    headings = ["pair", "wins/ties/losses", "p", "p after Holm", "rank-biserial correlation"]
    return [
        Table(
            headings,
            rows,
            f"Wilcoxon's signed ranks of our accuracies on {len(datasets)} sets, in pairs",
            notes=["* the pair differs at 0.05."],
        )
    ]
