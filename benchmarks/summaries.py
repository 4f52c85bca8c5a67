"""Repetitions in one row: medians and spread of what was spent, means of how wrong it was."""

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median, stdev

from benchmarks.cells import Group
from benchmarks.store import Record


@dataclass(frozen=True)
class Spread:
    """The median of some figures, the smallest and the largest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        found = sorted(values)
        return cls(median(found), found[0], found[-1])

    def __format__(self, digits: str) -> str:
        """Write the median, and the range where there is one."""
        middle, low, high = (format(x, digits) for x in (self.median, self.low, self.high))
        return middle if low == high else f"{middle} ({low}-{high})"


@dataclass(frozen=True)
class Row:
    """What the repetitions of one method on one split of one data set have in common."""

    method: str
    peer: str
    data: str
    split: str
    threads: int
    records: Sequence[Record] = field(repr=False)
    reason: str = ""

    @property
    def n(self) -> int:
        return len(self.records)

    def on(self, repetitions: Container[int]) -> "Row":
        """Return what is known from some repetitions alone, and so from some splits alone."""
        return replace(
            self, records=[one for one in self.records if one["repetition"] in repetitions]
        )

    def cost(self, figure: Callable[[Record], float]) -> Spread:
        return Spread.of(map(figure, self.records))

    def error(self, name: str) -> float | None:
        """Return the mean of an error, None where the method has no such answer."""
        values = self._errors(name)
        return fmean(values) if values else None

    def deviation(self, name: str) -> float | None:
        values = self._errors(name)
        return stdev(values) if len(values) > 1 else None

    def _errors(self, name: str) -> list[float]:
        return [one["errors"][name] for one in self.records if name in one["errors"]]


def summarised(records: Iterable[Record]) -> list[Row]:
    """Return a row for each group, in the order of first appearance, failures included."""
    groups: dict[Group, list[Record]] = {}
    for one in records:
        group = one["method"], one["data"], one["split"], one["threads"]
        groups.setdefault(group, []).append(one)
    rows = []
    for (method, data, split, threads), found in groups.items():
        good = [one for one in found if "error" not in one]
        reason = next((one["error"] for one in found if "error" in one), "")
        rows.append(Row(method, found[0]["peer"], data, split, threads, good, reason))
    return rows


def seconds(clock: str, *phases: str) -> Callable[[Record], float]:
    """Return a figure: the seconds of some phases together, by the ``cpu`` or ``wall`` clock."""
    return lambda record: sum(record["phases"][phase][clock] for phase in phases)


def megabytes(record: Record) -> float:
    """Return the peak memory."""
    return float(record["peak_bytes"]) / 2**20


LEARNING = ("prepare", "fit")
