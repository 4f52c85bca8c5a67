"""Chapter 3's table of all systems: NMAE, weak and strong generalisation."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from studies.harness import Cell, Store, Values, make_splits
from studies.harness.markdown import Block, Details, Entry, Outcome, Table, Text, Verdict
from studies.thesis.exhibit import Exhibit, Scale
from studies.thesis.published import PublishedFigure, published
from studies.thesis.report import format_value
from studies.thesis.samples import (
    OUTCOMES,
    Sample,
    are_different,
    compare_entries,
    find_sample,
    format_figure,
    judge,
    make_entry,
    paired_claim,
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

#: The systems of ours beside each row of the thesis's table; two rows stand for two models each.
ROWS: Mapping[str, tuple[str, ...]] = {
    "URP": ("URP",),
    "Attitude": ("Attitude",),
    "MMMF": ("MMMF",),
    "E-MMMF": ("E-MMMF votes", "E-MMMF"),
    "PMF": ("PMF",),
    "BPMF": ("BPMF",),
    "GP-LVM": ("GP-LVM",),
    "iPMMMF and iBPMMMF": ("iPMMMF", "iBPMMMF"),
    "Gibbs MMMF and iPMMMF": ("Gibbs MMMF", "Gibbs iPMMMF"),
    "HMF": ("HMF",),
}
#: Of these, what goes beyond the published model and is not judged with it.
BEYOND = ("E-MMMF",)
#: What the thesis's table lacks.
ADDED = ("Margin ensemble", "PMMMF", "SVD", "NMF", "Imputed SVD", "Biases")
#: In the order in which they are run, the quickest first.
SYSTEMS = (
    *("Biases", "PMF", "NMF", "MMMF", "HMF", "PMMMF", "Imputed SVD", "SVD", "URP", "E-MMMF"),
    *("BPMF", "Gibbs MMMF", "Attitude", "Margin ensemble", "E-MMMF votes", "GP-LVM"),
    *("Gibbs iPMMMF", "iPMMMF", "iBPMMMF"),
)
#: Settings that nobody has to choose: of systems that choose the strength for themselves.
FIXED: Mapping[str, dict[str, Any]] = {
    **{key: {"n_factors": 100} for key in ("HMF", "MMMF", "PMF", "PMMMF")},
    "E-MMMF": {"members": ["mmmf"]},
}
LABELS = {"E-MMMF": "E-MMMF, calibrated", "E-MMMF votes": "E-MMMF, votes"}

#: Of the tables that have published figures, and of all.
LEAKS = (
    "Published figures may know more than ours: the authors' scripts for GP-LVM can standardise "
    "films by their ratings in training and test together, and the programs of the iP and Gibbs "
    "models stop at, and report, the best iteration on the set they evaluate, by default the test "
    "set. Whether these figures were made so is not known. Ours learn from training ratings alone.",
    "The thesis does not say which of its two models a row with two names shows; both of ours "
    "stand beside it, and the better one is judged.",
)
VERDICTS = (
    "Better: below the published figure by more than two standard errors of the difference, which "
    "counts as reproduced. Reproduced: above it by no more than one. Within noise: by no more than "
    "two. As many ratings are assumed behind a published figure as one draw tests on.",
)
NOTES = (
    "Bold: the best of ours. * differs from ours of HMF at 0.05, by the t-test over splits that "
    "allows for training sets in common; with three splits it seldom can.",
    "E-MMMF, votes, is the published one: MMMFs from 30 random starts vote with whole stars. "
    "E-MMMF, calibrated: 30 bags of MMMFs of up to 32 factors, combined by calibration.",
    "Gibbs MMMF has learned means of factors and scales of thresholds, which the published one has "
    "not, and needs fewer factors.",
)
SAMPLE_NOTES = (
    "EachMovie has been withdrawn: this sample has 1,009,402 of its 2,811,983 ratings, by 5,055 "
    "users with at least 121 each. Its figures are not those of the whole, so none is judged.",
)
CHOICE = (
    "The strengths of MMMF, HMF, PMMMF and PMF are chosen on ratings held out of each training "
    "part. Settings of the others are chosen once for all splits of a protocol: candidates learn "
    "from ratings that are in all its training parts, but for five of each user's, on which they "
    f"are compared by mean absolute error. On a million ratings {', '.join(SEARCHED_ONCE[:-1])} "
    f"and {SEARCHED_ONCE[-1]} have for new users what was chosen for known ones, some of whom are "
    "the new ones of strong splits."
)


class Source(NamedTuple):
    """A data set: its title, the name of its published column, and notes."""

    title: str
    column: str | None = None
    #: Only what was measured on the same ratings can be compared with the thesis.
    judged: bool = False
    notes: tuple[str, ...] = ()


class Found(NamedTuple):
    """What the splits of one system found under one protocol."""

    nmae: Sample
    #: The standard error of a split's NMAE that its finite test set leaves, and of one draw's.
    noise: float
    noise_of_draw: float


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
        "full": dict.fromkeys(("ml-1m", "ml-100k", "eachmovie-sample"), SYSTEMS),
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
            Text(f"{CHOICE} {self._describe_noise(store, scale)}".strip()),
            *map(Text, NOTES),
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
                judged = source.judged and one and there
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
            "Defaults: nothing was chosen yet. `python -m studies thesis-settings` chooses; with "
            "`--show` it prints the errors of all candidates."
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
        data = next(data for data, source in self.sources.items() if source.judged)
        for protocol, (row, names) in product(PROTOCOLS, ROWS.items()):
            own = [name for name in names if name not in BEYOND]
            every = [self.find(store, scale, data, protocol, name) for name in own]
            there = self._published(data, protocol, row)
            # It is not known which of two models a row shows: ours is the better one then.
            ours = min((one for one in every if one), key=lambda one: one.nmae.mean, default=None)
            if ours is not None and there is not None:
                yield Judgement(f"{row} {protocol}", *judge_row(ours, there), ours, there)

    def _verdict(self, store: Store, scale: Scale) -> Verdict:
        judged = list(self._judgements(store, scale))
        if not any(one.name.startswith("HMF") for one in judged):
            return Verdict("not run", "HMF on MovieLens 1M has not been run.")
        counts = Counter(one.outcome for one in judged)
        parts = [f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome]]
        words = [f"of {len(judged)} published figures on MovieLens 1M, {', '.join(parts)}"]
        words += [
            f"{one.name} {format_figure(one.ours.nmae.mean)} "
            f"(published {format_figure(one.there.mean)}, {one.word})"
            for one in judged
            if one.name.startswith("HMF")
        ]
        for data, protocol in product(self.runs[scale], PROTOCOLS):
            cells = [self.cells_at(scale, data, protocol, name) for name in ("HMF", "MMMF")]
            claim = paired_claim(store, *cells, self.pick, "HMF", "MMMF")
            words.append(f"{self.sources[data].title}, {protocol}: {claim}")
        better = [
            f"{one.name} {format_figure(one.there.mean)} (ours {format_figure(one.ours.nmae.mean)})"
            for one in judged
            if one.better
        ]
        if better:
            words.append(f"published far weaker than the same methods are here: {_join(better)}")
        behind = _join([one.name for one in judged if one.outcome == "not reproduced"])
        cause = f"NMAE on MovieLens 1M larger than printed for {behind}"
        return worst_verdict((one.outcome for one in judged), "; ".join(words) + ".", cause)


class Judgement(NamedTuple):
    """The verdict on a published figure."""

    name: str
    outcome: Outcome
    #: Whether ours is below it by more than two standard errors.
    better: bool
    ours: Found
    there: PublishedFigure

    @property
    def word(self) -> str:
        return describe_outcome(self.outcome, self.better)


def judge_row(ours: Found, there: PublishedFigure) -> tuple[Outcome, bool]:
    """Return whether a published figure was reached, and whether ours is far better.

    As few ratings are assumed behind the published figure as one draw tests on.

    >>> found = Found(Sample((0.39, 0.39, 0.39)), noise=0.006, noise_of_draw=0.006)
    >>> [judge_row(found, PublishedFigure(mean, 0.003)) for mean in (0.41, 0.395, 0.37)]
    [('reproduced', True), ('reproduced', False), ('not reproduced', False)]
    """
    noisy = there._replace(std=max(there.std, ours.noise_of_draw))
    outcome = judge(ours.nmae, noisy, higher_is_better=False, least_spread=ours.noise)
    # If more were better, ours would be behind by more than two standard errors.
    reverse = judge(ours.nmae, noisy, higher_is_better=True, least_spread=ours.noise)
    return outcome, reverse == "not reproduced"


def describe_outcome(outcome: Outcome, better: bool) -> str:
    return "better" if better else outcome


def _join(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def pick_if_any(*keys: str) -> Any:
    """Return a function that picks a number by its path, NaN where there is none."""

    def picked(values: Values) -> float:
        value: Any = values
        for key in keys:
            value = value.get(key, math.nan)
        return float(value)

    return picked


def standard_error(values: Values) -> float:
    """Return the standard error of one draw's NMAE that its finite number of ratings leaves.

    >>> round(standard_error({"test": {"mae": 0.6, "rmse": 1.0, "nmae": 0.375}, "n_test": 100}), 6)
    0.05
    """
    errors = values["test"]
    scatter = math.sqrt(errors["rmse"] ** 2 - errors["mae"] ** 2)
    return float(scatter * errors["nmae"] / errors["mae"] / math.sqrt(values["n_test"]))


NMAE = Nmae()
