"""Regularisation strengths that are chosen on rows held out, at little more than one fit's price.

Methods in closed form know what models of the other folds predict for the rows of each fold,
without a fit for each (see `marginmf.labels.algebra.kernels`).  The same predictions choose the
strength and the decision rule.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from marginmf._utils.parameters import check_number
from marginmf._utils.types import FloatArray, IntArray
from marginmf.labels.base import LabelsEstimator, batches

#: About how many predictions of rows held out are kept at most.
MOST_HELD_OUT = 2**26
#: Predictions of rows held out, near 1 for labels that they have and near 0 for others.
HeldOut = list[tuple[IntArray, FloatArray]]


class Trial(NamedTuple):
    """What was learned with a strength, how rows held out are predicted, and how good that is."""

    reg: float
    learned: Any
    held_out: HeldOut
    value: float


class ChosenStrength(LabelsEstimator):
    """A label estimator whose `_fit` predicts rows held out, and may choose ``reg`` with that."""

    reg: float | str

    def _check(self) -> None:
        if self.reg != "auto":
            check_number(self, "reg", float, 0)

    def _cross_fit(self, X: Any, Y: csr_array) -> Iterator[tuple[IntArray, FloatArray]]:
        self._held_out: HeldOut = []
        self._fit_in_order(X, Y)
        yield from self.__dict__.pop("_held_out")

    def _fold_parts(self, n_rows: int) -> list[IntArray]:
        """Return the rows of each fold, of rows that are in an order of their own already."""
        n_folds = min(int(self._rule["cv"]), n_rows)
        return [np.arange(k, n_rows, n_folds) for k in range(n_folds)] if n_rows > 1 else []

    def _score_some(
        self,
        parts: Sequence[IntArray],
        n_labels: int,
        score: Callable[[int, IntArray], FloatArray],
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield predictions of the rows of each part, batch by batch, in single precision.

        Of very many rows the first ones are enough: more would not make any choice surer.
        ``score`` is given the number of the part.
        """
        most = max(1, MOST_HELD_OUT // (max(1, n_labels) * max(1, len(parts))))
        for number, part in enumerate(parts):
            for rows in batches(part[:most], n_labels):
                yield rows, score(number, rows).astype(np.float32)

    def _keep_held_out(self, held_out: HeldOut) -> None:
        """Leave scores of rows held out for who asked for them, in the order of the data."""
        if hasattr(self, "_held_out"):
            rows, labels = self._seen.order.rows, np.argsort(self._seen.labels)
            self._held_out = [(rows[part], found[:, labels] - 0.5) for part, found in held_out]


@dataclass
class StrengthSearch:
    """Tries strengths for a method, and remembers the best.

    ``solve`` returns what is learned with a strength, and predictions of the rows held out.
    """

    model: ChosenStrength
    Y: csr_array
    solve: Callable[[float], tuple[Any, Iterable[tuple[IntArray, FloatArray]]]]

    def best(self, regs: Sequence[float], start: float, judged: bool = False) -> Trial:
        """Return the solution with the best strength, looking from the start on.

        A single strength has no value unless it is to be ``judged`` beside other solutions.
        """
        found: dict[float, float] = {}
        best: list[Trial] = []

        def value(reg: float) -> float:
            if reg not in found:
                solution = self._try(reg, judged or len(regs) > 1)
                found[reg] = solution.value
                if not best or solution.value > best[0].value:
                    best[:] = [solution]
            return found[reg]

        if self.Y.shape[0] < 2:  # nothing can be held out
            regs = (start,)
        value(start)
        climb(value, start, regs)
        return best[0]

    def _try(self, reg: float, judged: bool) -> Trial:
        learned, predictions = self.solve(reg)
        if not judged:
            wanted = hasattr(self.model, "_held_out")
            return Trial(reg, learned, list(predictions) if wanted else [], 0.0)
        held_out, tuner = list(predictions), self.model._make_tuner(self.Y)
        for rows, predicted in held_out:
            tuner.add(predicted - 0.5, self.Y[rows].toarray() > 0)
        return Trial(reg, learned, held_out, tuner.value())


def middle(values: Sequence[float]) -> float:
    """Return where a search begins."""
    return values[len(values) // 2]


def climb(value: Callable[[float], float], start: float, values: Sequence[float]) -> float:
    """Return where values stop rising, going from the start in steps along ascending numbers.

    >>> climb(lambda x: -abs(x - 7), 2, [1, 2, 4, 8, 16]), climb(lambda x: -x, 2, [1, 2, 4])
    (8, 1)
    """
    first = best = list(values).index(start)
    for step in (-1, 1):
        while 0 <= best + step < len(values) and value(values[best + step]) > value(values[best]):
            best += step
        if best != first:
            break
    return values[best]
