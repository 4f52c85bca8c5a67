"""What the cells of one entry in a table found: mean, spread, and how they compare."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from operator import getitem
from typing import Any, NamedTuple, get_args

import numpy as np

from marginmf.stats import paired_comparison
from studies.harness import Cell, Store, Values, make_splits
from studies.harness.markdown import Entry, Outcome, Verdict
from studies.thesis.published import PublishedFigure

#: From what a cell found to the number that is shown.
Pick = Callable[[Values], float]

#: From best to worst.
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
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
    return "within noise" if worse <= 2 * noise + rounding else "not reproduced"


def make_verdict(holds: bool, why: str, cause: str = "") -> Verdict:
    """Return the verdict on a claim; the cause is for the report's opening if it does not hold."""
    return Verdict("reproduced", why) if holds else Verdict("not reproduced", why, cause)


def worst_verdict(outcomes: Iterable[Outcome], why: str, cause: str = "") -> Verdict:
    """Return the verdict on a whole: the worst of its parts."""
    return Verdict(max(outcomes, key=OUTCOMES.index, default="not run"), why, cause)


def paired_claim(
    store: Store, first: Sequence[Cell], second: Sequence[Cell], pick: Pick, name: str, other: str
) -> str:
    """Say whether a method has smaller errors than another on the splits that both have."""
    pairs = [(store.values(a), store.values(b)) for a, b in zip(first, second, strict=True)]
    differences = np.array([pick(a) - pick(b) for a, b in pairs if a and b])
    if len(differences) == 0:
        return f"{name} and {other} have no split in common yet"
    ahead = bool(differences.mean() <= 0)
    return (
        f"{name} is {'better' if ahead else 'worse'} than {other} by "
        f"{format_figure(abs(differences.mean()))} on average, better on "
        f"{int((differences < 0).sum())} of {len(differences)} splits"
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

    def cells_at(self, method: str, reg: float) -> list[Cell]:
        return make_splits(
            "rating_errors",
            self.n_splits,
            data=self.data,
            protocol=EIGHTY,
            method=method,
            params={**self.methods[method], "reg": reg},
        )

    def cells(self) -> list[Cell]:
        points = product(self.methods, self.regs)
        return [cell for point in points for cell in self.cells_at(*point)]

    def curve(self, store: Store, method: str) -> tuple[list[float], list[Sample]]:
        """Return training errors in ascending order, and the test errors that go with them."""
        points = []
        for reg in self.regs:
            cells = self.cells_at(method, reg)
            train = find_sample(store, cells, pick("train", self.error))
            test = find_sample(store, cells, pick("test", self.error))
            if train is not None and test is not None:
                points.append((train.mean, test))
        points.sort(key=lambda point: point[0])
        return [train for train, _ in points], [test for _, test in points]

    def gap(self, store: Store, method: str, other: str) -> float | None:
        """Return how much less a method's test error is than another's at equal training error.

        That is the mean over the range of training errors that both curves reach, interpolated
        linearly between the points; None where they have no such range.
        """
        (x, y), (other_x, other_y) = self.curve(store, method), self.curve(store, other)
        if len(x) < 2 or len(other_x) < 2:
            return None
        low, high = max(x[0], other_x[0]), min(x[-1], other_x[-1])
        if low >= high:
            return None
        where = np.linspace(low, high, 50)
        mine = np.interp(where, x, [one.mean for one in y])
        theirs = np.interp(where, other_x, [one.mean for one in other_y])
        return float((theirs - mine).mean())


def sixteenths(exponents: Iterable[int]) -> list[float]:
    """Return ``10^(i/16)`` for these i, the thesis's regularisation strengths for ratings."""
    return [round(10 ** (i / 16), 4) for i in exponents]
