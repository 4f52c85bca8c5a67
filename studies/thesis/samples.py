"""What the cells of one entry in a table found: mean, spread, and how they compare.

Claims are judged by standard errors.  That one method is ahead of another is *reproduced* if its
mean lead over the repetitions that both have is more than `NOISE` standard errors of the paired
difference, *not reproduced* if it is behind by more than that, and *within noise* otherwise
(`judge_lead`).  That something is no worse, or that a printed figure is reached, is reproduced up
to one standard error and within noise up to `NOISE` (`judge_cost`, `judge`).  Repetitions are
random splits or folds of the same data, so these are errors of the split and not of the data; two
standard errors of three splits leave a level method ahead by chance in about one case of eleven.
A *slip in the thesis* is what contradicts its own tables: nothing measured can reproduce it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from typing import Any, NamedTuple, get_args

import numpy as np

from marginmf.stats import paired_comparison
from studies.harness import Cell, Store, Values, make_splits
from studies.harness.markdown import Entry, Outcome, Verdict
from studies.thesis.published import PublishedFigure

#: From what a cell found to the number that is shown.
Pick = Callable[[Values], float]

#: How many standard errors a difference must have to be more than noise.
NOISE = 2.0
#: From best to worst.
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
JUDGED: tuple[Outcome, ...] = ("reproduced", "within noise", "not reproduced")
#: One rule for all that chapters 3 and 4 compare.  The default of HMF, 2e-3, stops up to two per
#: cent above the minimum.
STOPPING: dict[str, Any] = {"tol": 1e-4, "max_iter": 200}
#: The thesis's most frequent protocol: 80 % of the ratings to learn from.
EIGHTY = {"name": "share", "train": 0.8}


class NotRunError(LookupError):
    """A cell that is needed has not been run."""


class Sample(NamedTuple):
    """The values of repetitions: splits, folds or starts."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def spread(self) -> float:
        """The sample standard deviation; 0 where there is only one value."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else 0.0

    @property
    def error(self) -> float:
        """The standard error of the mean; infinite where there is only one value."""
        n = len(self.values)
        return self.spread / math.sqrt(n) if n > 1 else math.inf

    def minus(self, other: "Sample") -> "Sample":
        """Return the paired differences; samples must be of the same repetitions.

        >>> Sample((0.5, 0.75)).minus(Sample((0.25, 0.25))).values
        (0.25, 0.5)
        """
        return Sample(tuple(a - b for a, b in zip(self.values, other.values, strict=True)))


def find_sample(store: Store, cells: Iterable[Cell], pick: Pick) -> Sample | None:
    """Return what these cells found, or None if none of them has been run."""
    found = [values for cell in cells if (values := store.values(cell)) is not None]
    return Sample(tuple(pick(values) for values in found)) if found else None


def require_sample(store: Store, cells: Iterable[Cell], pick: Pick) -> Sample:
    """Return what all these cells found; raise `NotRunError` if one has not been run."""
    return Sample(tuple(pick(require_values(store, cell)) for cell in cells))


def require_values(store: Store, cell: Cell) -> Values:
    """Return what a cell found; raise `NotRunError` if it has not been run."""
    values = store.values(cell)
    if values is None:
        raise NotRunError(f"{cell} has not been run.")
    return values


def pick(*keys: str) -> Pick:
    """Return a function that picks a number by its path in what a cell found."""

    return lambda values: float(reduce(getitem, keys, values))


def are_different(first: Sample | None, second: Sample | None, test_size: float) -> bool:
    """Whether two methods differ over the splits that both were tested on, at 0.05.

    By the t-test for splits whose training sets overlap; see `paired_comparison`.

    >>> are_different(Sample((0.1, 0.2, 0.3)), Sample((0.5, 0.6, 0.71)), 1 / 3)
    True
    """
    if first is None or second is None or first == second:
        return False
    if not len(first.values) == len(second.values) > 1:
        return False
    return paired_comparison(first.values, second.values, test_size=test_size).p_value < 0.05


def format_figure(mean: float, spread: float | None = None, digits: int = 4) -> str:
    """Write a figure with its spread, as the thesis does.

    >>> format_figure(0.40191, 0.0044), format_figure(0.5, None, 2)
    ('.4019 ± .0044', '.50')
    """
    figures = [mean] if spread is None else [mean, spread]
    return " ± ".join(f"{one:.{digits}f}".removeprefix("0") for one in figures)


def make_entry(sample: Sample | None, digits: int = 4, best: bool = False, mark: str = "") -> Entry:
    if sample is None:
        return Entry("not run")
    spread = sample.spread if len(sample.values) > 1 else None
    return Entry(format_figure(sample.mean, spread, digits), best, mark)


def format_difference(ours: float, published: float, digits: int = 4) -> str:
    """Write by how much ours is more than what was published."""
    off = ours - published
    return f"{'-' if off < 0 else '+'}{format_figure(abs(off), None, digits)}"


def compare_entries(
    ours: Entry, sample: Sample | None, there: PublishedFigure | None, digits: int = 4
) -> list[Entry]:
    """Return three entries of a table: the published figure, ours, and the difference."""
    if there is None:
        return [Entry(""), ours, Entry("")]
    off = "" if sample is None else format_difference(sample.mean, there.mean, digits)
    return [Entry(format_figure(there.mean, there.std, digits)), ours, Entry(off)]


def judge(
    ours: Sample,
    there: PublishedFigure,
    *,
    higher_is_better: bool,
    digits: int = 4,
    least_spread: float = 0.0,
) -> Outcome:
    """Return whether a published figure was reached.

    Reproduced: ours is as good, or worse by no more than the standard error of the difference.
    Within noise: by no more than twice that.  As many repetitions are assumed to be behind the
    published figure as behind ours.  Half of the last of the printed digits is no difference.
    ``least_spread`` is what repetitions must differ by at least, because test sets are finite:
    three may agree by luck.
    """
    worse = there.mean - ours.mean if higher_is_better else ours.mean - there.mean
    spreads = (max(spread, least_spread) for spread in (ours.spread, there.std))
    noise = math.hypot(*spreads) / math.sqrt(len(ours.values))
    rounding = 0.5 * 10.0**-digits
    if worse <= noise + rounding:
        return "reproduced"
    return "within noise" if worse <= NOISE * noise + rounding else "not reproduced"


def judge_lead(lead: Sample) -> Outcome:
    """Return whether a method is ahead, from its paired lead over another on every repetition.

    >>> judge_lead(Sample((0.010, 0.012))), judge_lead(Sample((-0.1, 0.2)))
    ('reproduced', 'within noise')
    """
    if abs(lead.mean) <= NOISE * lead.error:
        return "within noise"
    return "reproduced" if lead.mean > 0 else "not reproduced"


def judge_cost(cost: Sample, negligible: float = 0.0) -> Outcome:
    """Return whether something costs nothing, from what it costs on every repetition.

    >>> judge_cost(Sample((0.1, -0.1))), judge_cost(Sample((0.010, 0.012)))
    ('reproduced', 'not reproduced')
    """
    if cost.mean <= max(negligible, cost.error):
        return "reproduced"
    return "within noise" if cost.mean <= NOISE * cost.error else "not reproduced"


def format_lead(lead: Sample, digits: int = 4) -> str:
    """Write a paired difference with its standard error.

    >>> format_lead(Sample((-0.02, -0.03, -0.04)))
    '-.0300 ± .0058'
    """
    words = format_difference(lead.mean, 0, digits)
    return f"{words} ± {format_figure(lead.error, None, digits)}" if len(lead.values) > 1 else words


def count_outcomes(outcomes: Iterable[Outcome]) -> str:
    """Say in how many comparisons a method is ahead, level and behind.

    >>> count_outcomes(["reproduced", "within noise", "reproduced"])
    'ahead in 2, within noise in 1 and behind in 0 of 3'
    """
    found = list(outcomes)
    ahead, level, behind = (found.count(one) for one in JUDGED)
    return f"ahead in {ahead}, within noise in {level} and behind in {behind} of {len(found)}"


def join_words(words: Sequence[str]) -> str:
    """Write a list as one does in a sentence.

    >>> join_words(["BPMF", "URP", "NMF"]), join_words(["BPMF"])
    ('BPMF, URP and NMF', 'BPMF')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def make_verdict(holds: bool, why: str, cause: str = "") -> Verdict:
    """Return the verdict on a claim; the cause is for the report's opening if it does not hold."""
    return Verdict("reproduced", why) if holds else Verdict("not reproduced", why, cause)


def worst_verdict(outcomes: Iterable[Outcome], why: str, cause: str = "") -> Verdict:
    """Return the verdict on a whole: the worst of its parts."""
    return Verdict(max(outcomes, key=OUTCOMES.index, default="not run"), why, cause)


def find_lead(
    store: Store, first: Sequence[Cell], second: Sequence[Cell], pick: Pick
) -> Sample | None:
    """Return by how much less the first's errors are, on the repetitions that both have."""
    pairs = [(store.values(a), store.values(b)) for a, b in zip(first, second, strict=True)]
    leads = tuple(pick(b) - pick(a) for a, b in pairs if a and b)
    return Sample(leads) if leads else None


def paired_claim(
    store: Store, first: Sequence[Cell], second: Sequence[Cell], pick: Pick, name: str, other: str
) -> str:
    """Say whether a method has smaller errors than another on the splits that both have."""
    lead = find_lead(store, first, second, pick)
    if lead is None:
        return f"{name} and {other} have no split in common yet"
    n_splits = len(lead.values)
    size = format_figure(abs(lead.mean), lead.error if n_splits > 1 else None)
    noise = ", within noise" if judge_lead(lead) == "within noise" else ""
    return (
        f"{name} is {'better' if lead.mean >= 0 else 'worse'} than {other} by {size} on average"
        f"{noise}, better on {sum(one > 0 for one in lead.values)} of {n_splits} splits"
    )


@dataclass(frozen=True)
class TradeOff:
    """Test error against training error of several methods on one data set.

    Each point of a curve is a regularisation strength, and the mean of some random splits with
    80 % of the ratings to learn from.
    """

    data: Any
    #: Names, and parameters.
    methods: Mapping[str, Mapping[str, Any]]
    regs: Sequence[float]
    n_splits: int
    #: Which error.
    error: str
    #: By method: what the strengths are multiplied with that are chosen for its stages.
    scales: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def points(self, method: str) -> Sequence[float]:
        """Return the strengths along a method's curve, or the multiples of those chosen."""
        return self.scales.get(method, self.regs)

    def cells_at(self, method: str, strength: float) -> list[Cell]:
        fixed: dict[str, Any] = {"data": self.data, "protocol": EIGHTY, "method": method}
        params = dict(self.methods[method])
        if method in self.scales:
            fixed |= {"base": "auto", "scale": strength}
        else:
            params["reg"] = strength
        return make_splits("rating_errors", self.n_splits, **fixed, params=params)

    def cells(self) -> list[Cell]:
        points = ((method, one) for method in self.methods for one in self.points(method))
        return [cell for point in points for cell in self.cells_at(*point)]

    def curve(self, store: Store, method: str) -> tuple[list[float], list[Sample]]:
        """Return training errors in ascending order, and the test errors that go with them."""
        points = []
        for strength in self.points(method):
            cells = self.cells_at(method, strength)
            train = find_sample(store, cells, pick("train", self.error))
            test = find_sample(store, cells, pick("test", self.error))
            if train is not None and test is not None:
                points.append((train.mean, test))
        points.sort(key=lambda point: point[0])
        return [train for train, _ in points], [test for _, test in points]

    def split_curves(self, store: Store, method: str) -> list[np.ndarray] | None:
        """Return a curve for each split: training errors, ascending, above their test errors."""
        along = [self.cells_at(method, strength) for strength in self.points(method)]
        if not all(cell in store for cells in along for cell in cells):
            return None
        curves = []
        for k in range(self.n_splits):
            parts = [
                [require_sample(store, [cells[k]], pick(part, self.error)).mean for cells in along]
                for part in ("train", "test")
            ]
            curve = np.array(parts)
            curves.append(curve[:, curve[0].argsort(kind="stable")])
        return curves

    def lead(self, store: Store, method: str, other: str) -> Sample | None:
        """Return how much less a method's test error is than another's at equal training error.

        For each split that is the mean over the range of training errors that both curves reach,
        interpolated linearly between the points; None where they have no such range.
        """
        curves = self.split_curves(store, method), self.split_curves(store, other)
        if curves[0] is None or curves[1] is None:
            return None
        leads = []
        for mine, theirs in zip(*curves, strict=True):
            low, high = max(mine[0, 0], theirs[0, 0]), min(mine[0, -1], theirs[0, -1])
            if low >= high:
                return None
            where = np.linspace(low, high, 50)
            leads.append(float((np.interp(where, *theirs) - np.interp(where, *mine)).mean()))
        return Sample(tuple(leads))

    def worst(self, store: Store, method: str) -> Sample | None:
        """Return the largest test error along the curve of every split."""
        curves = self.split_curves(store, method)
        return None if curves is None else Sample(tuple(float(one[1].max()) for one in curves))


def sixteenths(exponents: Iterable[int]) -> list[float]:
    """Return ``10^(i/16)`` for these i, the thesis's regularisation strengths for ratings."""
    return [round(10 ** (i / 16), 4) for i in exponents]
