"""What the cells of one place in a table found: mean, spread, and how they compare."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

from marginmf.experiments.blocks import Block, Entry, Outcome, Verdict
from marginmf.experiments.cell import Cell, Values
from marginmf.experiments.published import PublishedFigure
from marginmf.experiments.store import Store
from marginmf.stats import paired_comparison

#: From what a cell found to the number that is shown.
Pick = Callable[[Values], float]


@dataclass(frozen=True)
class Sample:
    """The values of repetitions: splits, folds or starts.

    >>> Sample((0.25, 0.75)).mean, round(Sample((0.25, 0.75)).spread, 3)
    (0.5, 0.354)
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(np.mean(self.values))

    @property
    def spread(self) -> float:
        """Their standard deviation, as of a sample; 0 where there is only one."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else 0.0


def sampled(store: Store, cells: Iterable[Cell], pick: Pick) -> Sample | None:
    """Return what these cells found, or None if none of them has been run."""
    found = [values for cell in cells if (values := store.values(cell)) is not None]
    return Sample(tuple(pick(values) for values in found)) if found else None


class NotRunError(LookupError):
    """A cell that is needed has not been run."""


def needed(store: Store, cell: Cell) -> Values:
    """Return what a cell found; raise `NotRunError` if it has not been run."""
    values = store.values(cell)
    if values is None:
        raise NotRunError(f"{cell} has not been run.")
    return values


def measured(store: Store, cells: Iterable[Cell], pick: Pick) -> Sample:
    """Return what all these cells found; raise `NotRunError` if one has not been run."""
    return Sample(tuple(pick(needed(store, cell)) for cell in cells))


def once_run(show: Callable[..., Sequence[Block]]) -> Callable[..., Sequence[Block]]:
    """Let an exhibit that needs all its cells say so when some have not been run."""

    @wraps(show)
    def shown(*args: Any, **kwargs: Any) -> Sequence[Block]:
        try:
            return show(*args, **kwargs)
        except NotRunError as missing:
            return [Verdict("not run", str(missing))]

    return shown


def at(*keys: str) -> Pick:
    """Return a function that picks a number by its way in what a cell found.

    >>> at("test", "mae")({"test": {"mae": 0.7}})
    0.7
    """

    def pick(values: Values) -> float:
        found: Any = values
        for key in keys:
            found = found[key]
        return float(found)

    return pick


def differ(first: Sample | None, second: Sample | None, test_size: float) -> bool:
    """Whether two methods differ over the splits that both were judged on, at 0.05.

    By the t-test for splits whose training sets overlap; see `paired_comparison`.

    >>> differ(Sample((0.1, 0.2, 0.3)), Sample((0.5, 0.6, 0.71)), 1 / 3)
    True
    """
    if first is None or second is None or len(first.values) != len(second.values):
        return False
    if len(first.values) < 2 or first.values == second.values:
        return False
    return paired_comparison(first.values, second.values, test_size=test_size).p_value < 0.05


def figure(mean: float, spread: float | None = None, places: int = 4) -> str:
    """Write a figure with its spread, as the thesis does.

    >>> figure(0.40191, 0.0044), figure(0.5, None, 2)
    ('.4019 ± .0044', '.50')
    """
    text = _number(mean, places)
    return text if spread is None else f"{text} ± {_number(spread, places)}"


def entry(sample: Sample | None, places: int = 4, best: bool = False, mark: str = "") -> Entry:
    """Return a place of a table; faint where there is nothing yet."""
    if sample is None:
        return Entry("not run", faint=True)
    spread = sample.spread if len(sample.values) > 1 else None
    return Entry(figure(sample.mean, spread, places), best, mark)


def difference(ours: float, published: float, places: int = 4) -> str:
    """Write by how much ours is more than what was published.

    >>> difference(0.406, 0.4019), difference(0.4, 0.4156)
    ('+.0041', '-.0156')
    """
    off = ours - published
    return f"{'-' if off < 0 else '+'}{_number(abs(off), places)}"


def beside(
    ours: Entry, sample: Sample | None, there: PublishedFigure | None, places: int = 4
) -> list[Entry]:
    """Return three places of a table: the published figure, ours, and the difference."""
    printed = Entry("") if there is None else Entry(figure(there.mean, there.std, places))
    if there is None or sample is None:
        return [printed, ours, Entry("")]
    return [printed, ours, Entry(difference(sample.mean, there.mean, places))]


def judged(
    ours: Sample,
    there: PublishedFigure,
    *,
    higher_is_better: bool,
    places: int = 4,
    least_spread: float = 0.0,
) -> Outcome:
    """Return whether a published figure was reached.

    Reproduced: ours is as good, or worse by no more than the standard error of the difference.
    Within noise: by no more than twice that.  As many repetitions are taken to be behind the
    published figure as behind ours.

    Parameters
    ----------
    ours, there : Sample, PublishedFigure
        The two figures.
    higher_is_better : bool
        Whether more is better.
    places : int
        To how many places figures are printed: half of the last one is no difference.
    least_spread : float
        What repetitions must differ by at least, for want of test cases.  Three may agree by luck.

    Examples
    --------
    >>> there = PublishedFigure(0.4019, 0.0044)
    >>> judged(Sample((0.400, 0.405, 0.407)), there, higher_is_better=False)
    'reproduced'
    """
    worse = there.mean - ours.mean if higher_is_better else ours.mean - there.mean
    spreads = (max(spread, least_spread) for spread in (ours.spread, there.std))
    noise = math.hypot(*spreads) / math.sqrt(len(ours.values))
    rounding = 0.5 * 10.0**-places
    if worse <= noise + rounding:
        return "reproduced"
    return "within noise" if worse <= 2 * noise + rounding else "not reproduced"


def _number(value: float, places: int) -> str:
    text = f"{value:.{places}f}"
    return text[1:] if text.startswith("0.") else text
