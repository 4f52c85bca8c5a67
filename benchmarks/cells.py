"""The order in which methods are measured, and when one has been measured enough."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.methods import Method

Place = tuple[str, str]
Group = tuple[str, str, str, int]


@dataclass(frozen=True)
class Cell:
    """One measurement: a method on a split of a data set, with so many threads, once more."""

    method: Method
    data: str
    split: str
    threads: int
    repetition: int

    @property
    def group(self) -> Group:
        """What repetitions have in common."""
        return self.method.name, self.data, self.split, self.threads

    def __str__(self) -> str:
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"{self.method.name} on {self.data}, {self.split}, {threads}, no. {self.repetition}"


def interleaved(
    methods: Sequence[Method], places: Sequence[Place], threads: Sequence[int], repeats: int
) -> Iterator[Cell]:
    """Yield all cells: in every repetition each method has its turn.

    What else the machine does then hits all methods alike.  Methods that cannot use threads are
    run with one, whatever is asked for.
    """
    for repetition in range(1, repeats + 1):
        for data, split in places:
            for n_threads in threads:
                for method in methods:
                    if method.threaded:
                        yield Cell(method, data, split, n_threads, repetition)
                    elif n_threads == min(threads):
                        yield Cell(method, data, split, 1, repetition)


class Allowance:
    """Who may go on: not who has used up the seconds for repetitions, nor who has failed."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._spent: dict[Group, float] = {}
        self._failed: set[Group] = set()

    def permits(self, cell: Cell) -> bool:
        return cell.group not in self._failed and self._spent.get(cell.group, 0.0) <= self.seconds

    def charge(self, cell: Cell, seconds: float, failed: bool) -> None:
        self._spent[cell.group] = self._spent.get(cell.group, 0.0) + seconds
        if failed:
            self._failed.add(cell.group)
