"""What several baselines share: estimates by products of factors, and epochs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from marginmf._utils.random import GeneratorState
from marginmf._utils.saved import floats
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.ratings.data import Ratings
from marginmf.ratings.estimator import RealValued, above_midpoints
from marginmf.ratings.lists.relevance import Columns, MarginBlock, block_product
from marginmf.solvers import Counted, Result, State, Vectors


class FactorEstimates(RealValued):
    """A method whose estimates are products of factors, and what users and items add to them.

    Attributes
    ----------
    mean_ : float
        The mean rating.
    user_factors_, item_factors_ : array
        The factors, a row for each of ``users_.ids`` and ``items_.ids``.
    """

    _saved: ClassVar[dict[str, Any]] = {
        "mean_": float,
        "user_factors_": floats("users", "factors"),
        "item_factors_": floats("items", "factors"),
    }
    _user_arrays: ClassVar[tuple[str, ...]] = ("user_factors_",)
    _item_arrays: ClassVar[tuple[str, ...]] = ("item_factors_",)
    mean_: float
    user_factors_: FloatArray
    item_factors_: FloatArray

    def _user_part(self, users: IntArray) -> Float64Array:
        """Return what users add to all of their estimates."""
        return np.zeros(len(users))

    def _item_part(self, items: Columns) -> Float64Array:
        """Return what items add to all of their estimates."""
        return np.zeros(len(self.item_factors_[items]))

    def _estimates(self, users: IntArray, items: IntArray) -> FloatArray:
        backend = self._arithmetic(self.item_factors_.shape[1] * len(users))
        scores = backend.scores(users, items, self.user_factors_, self.item_factors_)
        return scores + self._user_part(users) + self._item_part(items)

    def _score_block(self, users: IntArray, items: Columns) -> FloatArray:
        """Return the estimates of a block in float32, without what the users add to them."""
        scores = block_product(self.user_factors_[users], self.item_factors_[items])
        scores += self._item_part(items).astype(np.float32)
        return scores

    def _margin_block(self, users: IntArray, items: Columns) -> MarginBlock:
        offsets = above_midpoints(self._user_part(users), self.levels_)
        return MarginBlock(self._score_block(users, items)[None], offsets)

    def _record(self, result: Result) -> None:
        self.history_, self.n_iter_ = result.history, result.n_iter
        self.n_evaluations_, self.stop_reason_ = result.n_evaluations, str(result.reason)


def mean_of(data: Ratings) -> float:
    """Return the mean rating; of none, as where all are held out, the middle of the levels."""
    return float((data.values if len(data) else data.levels).mean())


def star_unit(levels: Float64Array) -> float:
    """Return what is one star on the scale that these levels would be if it went from 1 to 5.

    Priors and steps of fixed size are meant for that scale.

    >>> star_unit(np.array([0.0, 50.0, 100.0]))
    25.0
    """
    return float(np.ptp(levels)) / 4.0 or 1.0


@dataclass(frozen=True)
class Epochs:
    """A solver that passes over examples in random order, a state after every epoch.

    Parameters
    ----------
    n_examples : int
        How many there are to shuffle.
    epoch : callable
        From the order, the point, further vectors and the number of epochs before this one to the
        objective; it changes the point and the vectors in place.
    generator : Generator
        Shuffles; a run that is resumed has one of its own.
    memory : sequence of array
        The further vectors at the start.
    """

    n_examples: int
    epoch: Callable[[IntArray, Any, Any, int], float]
    generator: np.random.Generator
    memory: Sequence[FloatArray] = ()

    def steps(self, objective: Any, start: Any, vectors: Vectors) -> Iterator[State]:
        """Yield a state after every epoch; the first state is that of the start."""
        counted, generator = Counted.of(objective, start), self.generator
        if isinstance(start, State):
            point, memory = start.point, start.vectors["memory"]
            n_epochs = int(start.numbers["epochs"][0])
            generator = start.generators["order"].generator()
        else:
            point, memory, n_epochs = start, self.memory, 0
            value = counted(point)[0]
            yield self._state(point, value, memory, n_epochs, generator)
        while True:
            # Copies, because whoever watches may keep the state.
            point, memory = point.copy(), [vector.copy() for vector in memory]
            order = generator.permutation(self.n_examples)
            value = self.epoch(order, point, memory, n_epochs)
            n_epochs += 1
            yield self._state(point, value, memory, n_epochs, generator)

    @staticmethod
    def _state(
        point: FloatArray,
        value: float,
        memory: Sequence[FloatArray],
        n_epochs: int,
        generator: np.random.Generator,
    ) -> State:
        return State(
            *(point, value, np.nan, n_epochs + 1),
            vectors={"memory": memory},
            numbers={"epochs": [n_epochs]},
            generators={"order": GeneratorState.of(generator)},
        )
