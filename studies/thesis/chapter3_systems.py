"""Chapter 3's table of all systems: NMAE, weak and strong generalisation."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from studies.harness import Cell, Store, make_splits
from studies.harness.markdown import Block, Details, Entry, Table, Text, Verdict
from studies.thesis.exhibit import Exhibit, Scale
from studies.thesis.published import PublishedFigure, published
from studies.thesis.report import format_value
from studies.thesis.samples import (
    OUTCOMES,
    STOPPING,
    Sample,
    are_different,
    compare_entries,
    count_outcomes,
    find_lead,
    find_sample,
    format_figure,
    format_lead,
    join_words,
    judge_lead,
    make_entry,
    pick,
    worst_verdict,
)
from studies.thesis.settings import (
    CANDIDATES,
    PROTOCOLS,
    SEARCHED_ONCE,
    chosen_params,
    protocol_of,
)
from studies.thesis.system_verdicts import (
    Found,
    Judgement,
    describe_outcome,
    judge_row,
    pick_if_any,
    standard_error,
)

#: The systems of ours beside each row of the thesis's table.  Two rows stand for two models each,
#: and the thesis does not say for which.
ROWS: Mapping[str, tuple[str, ...]] = {
    "URP": ("URP",),
    "Attitude": ("Attitude",),
    "MMMF": ("MMMF",),
    "E-MMMF": ("E-MMMF votes", "E-MMMF"),
    "PMF": ("PMF",),
    "BPMF": ("BPMF",),
    "GP-LVM": ("GP-LVM",),
    "iPMMMF and iBPMMMF": ("iPMMMF", "iBPMMMF published", "iBPMMMF"),
    "Gibbs MMMF and iPMMMF": ("Gibbs MMMF published", "Gibbs iPMMMF", "Gibbs MMMF"),
    "HMF": ("HMF",),
}
#: Of these, what goes beyond the published model and is not judged as it.
BEYOND = ("E-MMMF", "iBPMMMF", "Gibbs MMMF")
#: Of the others, the one that the thesis does not claim to be ahead of, by protocol.
NOT_CLAIMED = {"weak": "", "strong": "GP-LVM"}
#: What the thesis's table lacks.
ADDED = ("Margin ensemble", "PMMMF", "SVD", "NMF", "Imputed SVD", "Biases")
#: In the order in which they are run, the quickest first.
SYSTEMS = (
    *("Biases", "PMF", "NMF", "MMMF", "HMF", "PMMMF", "Imputed SVD", "SVD", "URP", "E-MMMF"),
    *("BPMF", "Gibbs MMMF", "Attitude", "Margin ensemble", "E-MMMF votes", "GP-LVM"),
    *("Gibbs iPMMMF", "iPMMMF", "iBPMMMF published", "iBPMMMF", "Gibbs MMMF published"),
)
#: Not run on the sample of EachMovie, of which nothing is judged.
SLOW = ("Gibbs MMMF published",)
#: Settings that nobody has to choose: of systems that choose the strength for themselves.
FIXED: Mapping[str, dict[str, Any]] = {
    **{key: {"n_factors": 100} for key in ("MMMF", "PMF", "PMMMF")},
    "HMF": {"n_factors": 100, **STOPPING},
    "E-MMMF": {"members": ["mmmf"]},
}
LABELS = {
    "E-MMMF": "E-MMMF (calibrated)",
    "E-MMMF votes": "E-MMMF (votes)",
    "Gibbs MMMF": "Gibbs MMMF (learned priors)",
    "Gibbs MMMF published": "Gibbs MMMF",
    "iBPMMMF": "iBPMMMF (firmer prior)",
    "iBPMMMF published": "iBPMMMF",
}

#: Of the tables that have published figures, and of all.
LEAKS = (
    "Published figures may know more than ours: the authors' scripts for GP-LVM can standardise "
    "films by their ratings in training and test together, and the programs of the iP and Gibbs "
    "models stop at, and report, the best iteration on the set they evaluate, by default the test "
    "set. Whether these figures were made so is not known. Ours learn from training ratings alone.",
    "The thesis does not say which of its two models a row with two names shows: both are judged.",
)
VERDICTS = (
    "Better: below the published figure by more than two standard errors of the difference, which "
    "counts as reproduced. Reproduced: above it by no more than one. Within noise: by no more than "
    "two. As many ratings are assumed behind a published figure as one draw tests on. Without a "
    "verdict: what goes beyond the published model.",
)
NOTES = (
    "Bold: the best of ours. * differs from ours of HMF at 0.05, by the paired t-test over splits. "
    "CPU seconds come from machines of different speed (see the end of this page), so that only "
    "large differences mean anything.",
    "Ours differ from what was published: BPMF learns the noise (published: a precision of 2) and "
    "has at most 32 factors, where the error was still falling; Attitude is a derivation of our "
    "own, with a proposal of the item itself; the cost of iBPMMMF is chosen (published: 1). "
    "E-MMMF (votes) is 30 MMMFs that differ by random starts or by bags of ratings, whichever was "
    "chosen; they vote with whole stars. Gibbs MMMF keeps one of its sweeps in four.",
    "Beyond the published models: E-MMMF (calibrated) has 30 bags of MMMFs of up to 32 factors, "
    "combined by calibration. Gibbs MMMF with learned priors learns the means of factors and the "
    "distribution of thresholds, and needs fewer factors. iBPMMMF with a firmer prior learns the "
    "covariance of the items' factors under a prior that is worth as many items as there are; this "
    "form was found by looking at held-out ratings of MovieLens 100K and 1M, some of which are "
    "tested on here, its cost was not.",
)
SAMPLE_NOTES = (
    "EachMovie has been withdrawn: this sample has 1,009,402 of its 2,811,983 ratings, by 5,055 "
    "users with at least 121 each. Its figures are not those of the whole, so none is judged, and "
    "the published Gibbs MMMF, which takes longest, is not run.",
)
CHOICE = (
    "The strengths of MMMF, HMF, PMMMF and PMF are chosen on ratings held out of each training "
    "part; all stop by one rule (`tol=1e-4`). Settings of the others are chosen once for all "
    "splits of a protocol: candidates learn from ratings that are in all its training parts, but "
    "for five of each user's, on which they are compared by mean absolute error. On a million "
    f"ratings {join_words([LABELS.get(name, name) for name in SEARCHED_ONCE])} are searched once, "
    "on ratings that are in all training parts of both protocols."
)


class Source(NamedTuple):
    """A data set: its title, the name of its published column, and notes."""

    title: str
    column: str | None = None
    #: Only what was measured on the same ratings can be compared with the thesis.
    judged: bool = False
    notes: tuple[str, ...] = ()


class Nmae(Exhibit):
    name, chapter, kind = "nmae", 3, "table"
    title = "NMAE of all methods, weak and strong generalisation"
    protocols = PROTOCOLS
    pick = staticmethod(pick("test", "nmae"))
    n_draws = 10
    #: About the share of the ratings that a split tests on: one for each user.
    share = 0.01
    sources = {
        "ml-1m": Source("MovieLens 1M", "MovieLens", True),
        "eachmovie-sample": Source("a sample of EachMovie", "EachMovie", notes=SAMPLE_NOTES),
        "ml-100k": Source("MovieLens 100K (not in the thesis)"),
    }
    #: Which systems are run on which data, in this order.
    runs: dict[Scale, dict[str, tuple[str, ...]]] = {
        "quick": {"ml-1m": ("Biases", "NMF", "MMMF", "HMF", "URP"), "ml-100k": SYSTEMS},
        "full": {
            **dict.fromkeys(("ml-1m", "ml-100k"), SYSTEMS),
            "eachmovie-sample": tuple(name for name in SYSTEMS if name not in SLOW),
        },
    }

    def points(self, scale: Scale) -> Iterator[tuple[str, str, str]]:
        for data, methods in self.runs[scale].items():
            yield from ((data, protocol, method) for method in methods for protocol in PROTOCOLS)

    def cells_at(self, scale: Scale, data: str, protocol: str, method: str) -> list[Cell]:
        return make_splits(
            "system_errors",
            self.n_splits[scale],
            data=data,
            protocol=protocol_of(data, protocol),
            method=method,
            params=FIXED.get(method) or chosen_params(data, protocol, method),
            **({"draws": self.n_draws} if protocol == "strong" else {}),
        )

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        sources = [data for data in self.sources if data in self.runs[scale]]
        blocks: list[Block] = [
            self._verdict(store, scale),
            Text(
                "Weak: one rating of every user is held out. Strong: new users, folded in from all "
                f"but one of their ratings, {self.n_draws} times after one fit, each time with "
                "another rating held out. Splits have the seeds 1, 2, 3; ± is the standard "
                "deviation over them. Predictions are whole stars by each method's own rule, which "
                "is the median where it has a distribution. CPU seconds are those of a fit and of "
                "folding in once, choosing apart, unless a method chooses for itself."
            ),
            *(Text(words) for words in (self._describe_judgements(store, scale),) if words),
            Text(f"{CHOICE} {self._describe_noise(store, scale)}".strip()),
            *map(Text, NOTES),
            *self._leads(store, scale),
        ]
        for data, protocol in product(sources, PROTOCOLS):
            blocks.append(self._table(store, scale, data, protocol))
        others = [self._others(store, scale, *one) for one in product(sources, PROTOCOLS)]
        return [
            *blocks,
            Details("Other errors", others),
            Details("Settings that were chosen", [self._settings(sources)]),
        ]

    def find(self, store: Store, scale: Scale, *point: str) -> Found | None:
        """Return what the splits that were run found, or None."""
        cells = self.cells_at(scale, *point)
        nmae = find_sample(store, cells, self.pick)
        noise = find_sample(store, cells, pick("standard_error"))
        of_draw = find_sample(store, cells, standard_error)
        if nmae is None or noise is None or of_draw is None:
            return None
        return Found(nmae, noise.mean, of_draw.mean)

    def _published(self, data: str, protocol: str, row: str) -> PublishedFigure | None:
        column = self.sources[data].column
        return published("nmae").at(protocol, column, row) if column and row in ROWS else None

    def _rows(self, scale: Scale, data: str) -> Iterator[tuple[str, str]]:
        """Yield the thesis's name and ours of every row; ours alone where the thesis has none."""
        if self.sources[data].column:
            yield from ((row, name) for row, names in ROWS.items() for name in names)
            yield from (("", name) for name in ADDED)
        else:
            names = (*(name for names in ROWS.values() for name in names), *ADDED)
            yield from (("", name) for name in names)

    def _table(self, store: Store, scale: Scale, data: str, protocol: str) -> Table:
        source, rows = self.sources[data], []
        found = {
            name: self.find(store, scale, data, protocol, name) for name in self.runs[scale][data]
        }
        best = min((one.nmae.mean for one in found.values() if one), default=math.nan)
        reference = found["HMF"] and found["HMF"].nmae
        for row, name in self._rows(scale, data):
            one, there = found.get(name), self._published(data, protocol, row)
            ours = one and one.nmae
            mark = "*" if are_different(ours, reference, self.share) else ""
            shown = make_entry(ours, best=ours is not None and ours.mean == best, mark=mark)
            costs = [
                self._format_seconds(store, self.cells_at(scale, data, protocol, name), key)
                for key in self._costs(protocol)
            ]
            line: list[Entry | str] = [LABELS.get(name, name)]
            if source.column:
                judged = source.judged and name not in BEYOND and one and there
                verdict = describe_outcome(*judge_row(one, there)) if judged else ""
                line = [row, *line, verdict, *compare_entries(shown, ours, there)]
            else:
                line.append(shown)
            rows.append([*line, *costs])
        three = ["published", "ours", "difference"] if source.column else ["NMAE"]
        words = ["thesis", "here", "verdict"] if source.column else ["method"]
        seconds = ["fit, CPU s", "fold-in, CPU s"][: len(self._costs(protocol))]
        notes = (
            *(VERDICTS if source.judged else ()),
            *(LEAKS if source.column else ()),
            *source.notes,
        )
        headings = [*words, *three, *seconds]
        caption = f"NMAE on {source.title}, {protocol}"
        return Table(headings, rows, caption, words=len(words), notes=notes)

    @staticmethod
    def _costs(protocol: str) -> tuple[str, ...]:
        return ("fit_cpu_seconds", "fold_in_cpu_seconds")[: 1 + (protocol == "strong")]

    @staticmethod
    def _format_seconds(store: Store, cells: list[Cell], key: str) -> Entry:
        found = find_sample(store, cells, pick(key))
        return Entry("" if found is None else f"{found.mean:.1f}")

    def _others(self, store: Store, scale: Scale, data: str, protocol: str) -> Table:
        """Return the table of errors that the thesis does not have."""
        picks = {
            "MAE": ("test", "mae"),
            "zero-one": ("test", "zero_one"),
            "RMSE": ("test", "rmse"),
            "zero-one, mode": ("test", "zero_one_mode"),
            "RMSE, mean": ("test", "rmse_mean"),
            "log loss": ("test", "log_loss"),
            "standard error of NMAE": ("standard_error",),
        }
        rows = []
        for _, name in self._rows(scale, data):
            cells = self.cells_at(scale, data, protocol, name)
            row = [Entry(LABELS.get(name, name))]
            for keys in picks.values():
                one = find_sample(store, cells, pick_if_any(*keys))
                there = one is not None and not math.isnan(one.mean)
                row.append(make_entry(one) if there else Entry("not run" if one is None else ""))
            rows.append(row)
        return Table(
            ["method", *picks],
            rows,
            f"Other errors on {self.sources[data].title}, {protocol}",
            notes=[
                "Without a further word by the method's own rule. Mode, mean and log loss are of "
                "the distribution, where a method has one without another fit. Standard error: "
                "what the finite test set leaves in the NMAE of one split."
            ],
        )

    def _settings(self, sources: list[str]) -> Table:
        points = list(product(sources, PROTOCOLS))
        rows = [
            [
                LABELS.get(name, name),
                *(format_value(chosen_params(*point, name) or "defaults") for point in points),
                str(len(candidates)),
            ]
            for name, candidates in CANDIDATES.items()
        ]
        headings = ["method", *(f"{data}, {protocol}" for data, protocol in points), "candidates"]
        notes = [
            "`python -m studies thesis-settings` chooses; with `--show` it prints the errors of "
            "all candidates."
        ]
        return Table(headings, rows, "Settings", words=len(headings) - 1, notes=notes)

    def _describe_noise(self, store: Store, scale: Scale) -> str:
        """Return a sentence on what the finite test sets leave of chance."""
        words = []
        for data, protocol in product(self.runs[scale], PROTOCOLS):
            found = self.find(store, scale, data, protocol, "HMF")
            if found is not None:
                title = self.sources[data].title.partition(" (")[0]
                words.append(f"{format_figure(found.noise)} ({title}, {protocol})")
        if not words:
            return ""
        return f"The test ratings of one split leave a standard error of {', '.join(words)}."

    def _judgements(self, store: Store, scale: Scale) -> Iterator["Judgement"]:
        """Yield the verdicts on what can be compared with the thesis and has been run."""
        for protocol, row, name in self._judged():
            ours = self.find(store, scale, self._judged_data(), protocol, name)
            there = self._published(self._judged_data(), protocol, row)
            if ours is not None and there is not None:
                yield Judgement(f"{LABELS.get(name, name)} {protocol}", ours, there)

    def _judged_data(self) -> str:
        return next(data for data, source in self.sources.items() if source.judged)

    @staticmethod
    def _judged() -> Iterator[tuple[str, str, str]]:
        """Yield protocol, row and system of what can be compared with the thesis."""
        for protocol, (row, names) in product(PROTOCOLS, ROWS.items()):
            yield from ((protocol, row, name) for name in names if name not in BEYOND)

    def _lead(self, store: Store, scale: Scale, data: str, protocol: str, name: str) -> Any:
        """Return by how much the error of HMF is smaller, on the splits that both have."""
        cells = (self.cells_at(scale, data, protocol, one) for one in ("HMF", name))
        return find_lead(store, *cells, self.pick)

    def _claimed_leads(self, store: Store, scale: Scale) -> dict[tuple[str, str], Sample]:
        """Return the leads of HMF that the thesis claims, by protocol and system."""
        data, leads = self._judged_data(), {}
        for protocol, _, name in self._judged():
            lead = self._lead(store, scale, data, protocol, name)
            if name not in ("HMF", NOT_CLAIMED[protocol]) and lead is not None:
                leads[protocol, name] = lead
        return leads

    def _leads(self, store: Store, scale: Scale) -> list[Block]:
        """Return how far HMF is ahead of every other system on all data sets."""
        points = list(product(self.runs[scale], PROTOCOLS))
        rows = []
        for name in (*(name for names in ROWS.values() for name in names), *ADDED):
            leads = [self._lead(store, scale, *point, name) for point in points]
            if name != "HMF" and any(leads):
                shown = (format_lead(lead) if lead else "not run" for lead in leads)
                rows.append([LABELS.get(name, name), *shown])
        titles = (f"{self.sources[data].title.partition(' (')[0]}, {one}" for data, one in points)
        note = (
            "Positive: the error of HMF is smaller. Means over splits, ± the standard error of the "
            "paired difference."
        )
        caption = "NMAE of other systems minus that of HMF"
        return [Table(["system", *titles], rows, caption, notes=[note])] if rows else []

    def _verdict(self, store: Store, scale: Scale) -> Verdict:
        judged = list(self._judgements(store, scale))
        if not any(one.name.startswith("HMF") for one in judged):
            return Verdict("not run", "HMF on MovieLens 1M has not been run.")
        leads = self._claimed_leads(store, scale)
        claims = {point: judge_lead(lead) for point, lead in leads.items()}
        behind = [
            f"{LABELS.get(name, name)} {protocol} ({format_lead(leads[protocol, name])})"
            for (protocol, name), outcome in claims.items()
            if outcome == "not reproduced"
        ]
        counts = Counter(one.outcome for one in judged)
        parts = [f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome]]
        words = [
            "the thesis has HMF ahead of all others on MovieLens 1M, but for GP-LVM at strong "
            f"generalisation; here it is {count_outcomes(claims.values())}"
            + (f": behind {join_words(behind)}" if behind else ""),
            f"of {len(judged)} published figures on MovieLens 1M, {', '.join(parts)}",
            *(one.words for one in judged if one.name.startswith("HMF")),
        ]
        worse = [one.name for one in judged if one.outcome == "not reproduced"]
        causes = [f"HMF is behind in {len(behind)} of {len(claims)} comparisons"] if behind else []
        causes += [f"NMAE larger than printed for {join_words(worse)}"] if worse else []
        return worst_verdict(
            [*claims.values(), *(one.outcome for one in judged)],
            f"{'; '.join(words)}.",
            f"on MovieLens 1M {' and '.join(causes)}" if causes else "",
        )

    def _describe_judgements(self, store: Store, scale: Scale) -> str:
        """Say what is far better than published, and which verdicts rest on an assumption."""
        judged, sentences = list(self._judgements(store, scale)), []
        if better := [one.words for one in judged if one.better]:
            sentences.append(f"Far below what is published: {join_words(better)}.")
        if assumed := [one for one in judged if one.as_printed != one.outcome]:
            words = join_words([f"{one.name} would be {one.as_printed}" for one in assumed])
            sentences.append(
                "Deviations over splits are taken to be at least what finite test sets leave, "
                f"because three splits may agree by luck; by the deviations alone, {words}."
            )
        return " ".join(sentences)


NMAE = Nmae()
