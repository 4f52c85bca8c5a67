"""Test error against training error, as the weight of the penalty goes from strong to weak."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginmf.experiments.cell import Cell, splits
from marginmf.experiments.samples import Sample, sampled
from marginmf.experiments.store import Store

EIGHTY = {"name": "share", "train": 0.8}


@dataclass(frozen=True)
class TradeOff:
    """The curves of several methods on one data set, with 80 % of the ratings to learn from.

    Parameters
    ----------
    data : str or mapping
        What is learned from.
    methods : mapping
        Names, and parameters.
    regs : sequence of float
        The weights of the penalty.
    n_splits : int
        How many random splits each point is the mean of.
    error : str
        Which error is drawn.
    """

    data: Any
    methods: Mapping[str, Mapping[str, Any]]
    regs: Sequence[float]
    n_splits: int
    error: str

    def cells_for(self, method: str, reg: float) -> list[Cell]:
        """Return the splits of one point."""
        return splits(
            "rating_errors",
            self.n_splits,
            data=self.data,
            protocol=EIGHTY,
            method=method,
            params={**self.methods[method], "reg": reg},
        )

    def cells(self) -> list[Cell]:
        """Return the cells of all points."""
        return [
            cell
            for method in self.methods
            for reg in self.regs
            for cell in self.cells_for(method, reg)
        ]

    def curve(self, store: Store, method: str) -> tuple[list[float], list[Sample]]:
        """Return training errors in ascending order, and the test errors that go with them."""
        points = []
        for reg in self.regs:
            cells = self.cells_for(method, reg)
            train = sampled(store, cells, lambda values: values["train"][self.error])
            test = sampled(store, cells, lambda values: values["test"][self.error])
            if train is not None and test is not None:
                points.append((train.mean, test))
        points.sort(key=lambda point: point[0])
        return [train for train, _ in points], [test for _, test in points]

    def gap(self, store: Store, method: str, other: str) -> float | None:
        """Return how much less a method's test error is than another's at equal training error.

        That is the mean over the range of training errors that both curves reach, between the
        weights of the penalty by straight lines; None where they have no such range.
        """
        (x, y), (other_x, other_y) = self.curve(store, method), self.curve(store, other)
        if len(x) < 2 or len(other_x) < 2:
            return None
        low, high = max(x[0], other_x[0]), min(x[-1], other_x[-1])
        if low >= high:
            return None
        places = np.linspace(low, high, 50)
        mine = np.interp(places, x, [one.mean for one in y])
        theirs = np.interp(places, other_x, [one.mean for one in other_y])
        return float((theirs - mine).mean())
