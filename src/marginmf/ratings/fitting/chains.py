"""Markov chains: a sampler is a solver whose states are sweeps, and a fit keeps some of them.

So progress, interruption and resuming are those of every other fit.  Random numbers come from a
generator of their own for every sweep and every part of it: threads cannot change them, and a chain
that goes on after a kill draws what it would have drawn.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from math import prod
from numbers import Real
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from marginmf._utils.parameters import check_callbacks, check_number, check_option
from marginmf._utils.random import as_generator
from marginmf._utils.saved import TRAINING
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends.rows import SIDES, Rows, Side
from marginmf.progress import progress_bar
from marginmf.ratings.base import Unknown
from marginmf.ratings.data import Ratings
from marginmf.ratings.estimator import Distributional
from marginmf.ratings.fitting.calibration import make_possible
from marginmf.ratings.fitting.fallback import LevelFrequencies
from marginmf.solvers import Callback, Progress, State, Stopping, Vectors

#: How many pairs are looked at together where each has a number for every sample.
PAIRS_AT_A_TIME = 1 << 14

#: The arrays that a sweep changes, by name.
Sample = Mapping[str, FloatArray]
#: Numbers of 64 bits, one for each row.
Keys = npt.NDArray[np.uint64]
#: What the states of `Sweep.row_uniforms` are apart: 2^64 by the golden ratio.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Sweep:
    """One sweep of a chain, and where its random numbers come from.

    >>> Sweep(seed=7, number=3).normals(0, 2).round(2).tolist()
    [-1.97, 0.3]
    """

    seed: int
    number: int

    def generator(self, step: int, block: int = 0) -> np.random.Generator:
        """Return a generator for one step of the sweep, and for one block of that step."""
        seeds = np.random.SeedSequence(self.seed, spawn_key=(self.number, step, block))
        return np.random.Generator(np.random.SFC64(seeds))

    def normals(self, step: int, shape: int | tuple[int, ...]) -> Float64Array:
        """Return standard normal numbers for one step of the sweep."""
        return self.generator(step).standard_normal(shape)

    def row_uniforms(self, keys: Keys, step: int, n: int) -> Float64Array:
        """Return n uniform numbers for the key of every row, whichever other rows there are.

        They are those of the generator SplitMix64 (Steele, Lea and Flood, 2014).
        """
        seed = self.generator(step).integers(1 << 64, dtype=np.uint64)
        starts = scramble(keys ^ seed)
        states = starts[:, None] + GOLDEN * np.arange(1, n + 1, dtype=np.uint64)
        return ((scramble(states) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52

    def row_normals(self, keys: Keys, step: int, n: int) -> Float64Array:
        """Return n standard normal numbers for the key of every row."""
        normals: Float64Array = ndtri(self.row_uniforms(keys, step, n))
        return normals


def scramble(numbers: Keys) -> Keys:
    """Return numbers of 64 bits in which each bit depends on all of the given ones."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def row_keys(rows: Rows) -> Keys:
    """Return a number for each row that follows from its entries, in any order."""
    entries = scramble(scramble(rows.indices.astype(np.uint64)) + rows.codes.astype(np.uint64))
    sums = np.concatenate([np.zeros(1, np.uint64), entries.cumsum(dtype=np.uint64)])
    return sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]


class Sampler(Protocol):
    """What a method says of its chain."""

    #: The shapes of the arrays of a sample that are kept, in float32.
    kept: Mapping[str, tuple[int, ...]]

    def start(self, sweep: Sweep) -> tuple[Sample, float]:
        """Return where the chain begins, and a number that tells how well it fits."""

    def sweep(self, current: Sample, sweep: Sweep) -> tuple[Sample, float]:
        """Return the next sample as new arrays of float32 or float64, and the number of it."""


def split_samples(
    point: FloatArray, n_samples: int, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, FloatArray]:
    """Return views of a vector that holds samples: an axis for those, then the array's own.

    >>> split_samples(np.arange(6.0), 2, {"noise": (), "means": (2,)})["means"]
    array([[2., 3.],
           [4., 5.]])
    """
    views, end = {}, 0
    for name, shape in shapes.items():
        first, end = end, end + n_samples * prod(shape)
        views[name] = point[first:end].reshape(n_samples, *shape)
    return views


def copy_views(model: Any) -> None:
    """Copy the arrays of a model that are parts of larger ones, so that the rest is let go of."""
    for name, array in list(vars(model).items()):
        base = getattr(array, "base", None)
        if isinstance(base, np.ndarray) and base.nbytes > array.nbytes:
            setattr(model, name, array.copy())


@dataclass(frozen=True)
class Chain:
    """A sampler as a solver; the point is a vector of what is kept, zero where that is to come.

    The first ``n_burn`` sweeps are forgotten; every ``thin``-th after them is kept.
    """

    sampler: Sampler
    seed: int
    n_burn: int
    n_samples: int
    thin: int

    @property
    def n_sweeps(self) -> int:
        """How many sweeps there are."""
        return self.n_burn + self.n_samples * self.thin

    def steps(self, objective: Any, start: Any, vectors: Vectors) -> Iterator[State]:
        """Yield a state after every sweep; the first is the start of the chain, if not a state."""
        if isinstance(start, State):
            point, number = np.array(start.point), int(start.numbers["sweep"][0])
            current: Sample = {
                # A checkpoint has an axis for single numbers too.
                name: array.reshape(self.sampler.kept.get(name, array.shape))
                for name, (array,) in start.vectors.items()
            }
        else:
            point, number = self._nothing_kept(), 0
            current, value = self.sampler.start(Sweep(self.seed, 0))
            yield self._state(point, current, 0, value)
        kept = split_samples(point, self.n_samples, self.sampler.kept)
        while True:
            number += 1
            current, value = self.sampler.sweep(current, Sweep(self.seed, number))
            n_after, left = divmod(number - self.n_burn, self.thin)
            if left == 0 and 0 < n_after <= self.n_samples:
                # In the point itself: what follows a state's own samples is of no account to it.
                for name, samples in kept.items():
                    samples[n_after - 1] = current[name]
            yield self._state(point, current, number, value)

    def _nothing_kept(self) -> FloatArray:
        size = sum(map(prod, self.sampler.kept.values()))
        try:
            return np.zeros(self.n_samples * size, np.float32)
        except (MemoryError, ValueError):
            gigabytes = 4 * self.n_samples * size / 2**30
            raise MemoryError(
                f"The samples take {gigabytes:,.1f} GiB, which is more than there is: "
                f"{self.n_samples:,} of {size:,} numbers. Lower n_samples or the number of factors."
            ) from None

    @staticmethod
    def _state(point: FloatArray, current: Sample, number: int, value: float) -> State:
        vectors = {name: [array] for name, array in current.items()}
        return State(point, value, np.nan, number, vectors=vectors, numbers={"sweep": [number]})


def _watch(callbacks: Sequence[Callback], progress: Progress) -> bool:
    """Call the callbacks; raise ValueError if one stops the chain while there are sweeps to come.

    The error keeps the chain from ending: in a checkpoint it stays one that can go on.
    """
    answers = [callback(progress) for callback in callbacks]
    stops = any(answers)
    n_done, n_sweeps = progress.record.iteration, progress.max_iter
    if stops and n_done < n_sweeps:
        raise ValueError(
            f"The chain was stopped after {n_done} of {n_sweeps} sweeps, so there are no samples "
            "to predict from: let it end, or ask for fewer with n_burn, n_samples and thin."
        )
    return stops


@dataclass(eq=False, repr=False)
class Sampled(Distributional):
    """A method whose answers are averages over samples from its posterior distribution.

    Subclasses say how sweeps are made (`_sampler`) and what samples say of pairs
    (`_mean_distribution`).  What is kept of samples is stored in attributes of the same names.

    Parameters
    ----------
    n_burn : int
        How many sweeps are forgotten: those before the chain has found the likely values.
    n_samples : int
        How many samples are kept, and averaged by predictions.
    thin : int
        One sweep in this many is kept, because neighbouring ones are alike.
    random_state : int, Generator or None
        Seeds the chain.
    callbacks : sequence of callable
        Called with a `marginmf.solvers.Progress` after every sweep; returning True stops the chain,
        which is an error while there are samples to come; with a checkpoint, a later fit goes on.

    Attributes
    ----------
    history_ : list of Record
        For every sweep a measure of how well it fits the ratings, and the seconds.
    n_iter_, n_evaluations_ : int
        How many sweeps there were.
    stop_reason_ : str
        Why the chain ended.
    """

    _: KW_ONLY
    n_burn: int = 20
    n_samples: int = 50
    thin: int = 4
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    callbacks: Sequence[Callback] = ()

    _saved: ClassVar[dict[str, Any]] = TRAINING

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        # A solver that looks for the most probable factors keeps one.
        if lengths["samples"] not in (1, self.n_samples):
            yield f".n_samples is {self.n_samples!r:.60}, but the model has {lengths['samples']}"

    @abstractmethod
    def _sampler(self, data: Ratings) -> Sampler:
        """Return what makes the sweeps."""

    @abstractmethod
    def _mean_distribution(self, users: IntArray, items: IntArray, which: slice) -> Float64Array:
        """Return the probabilities of levels, on average over some of the samples."""

    def _distribution(self, users: IntArray, items: IntArray) -> Float64Array:
        return self._mean_distribution(users, items, slice(None))

    def _expected(self, users: IntArray, items: IntArray) -> Float64Array:
        """Return the mean rating of pairs, a row each, by every sample, a column each."""
        found = np.empty((len(users), len(self.user_factors_)))
        for k in range(found.shape[1]):
            distribution = make_possible(self._mean_distribution(users, items, slice(k, k + 1)))
            np.einsum("nv,v->n", distribution, self.levels_, out=found[:, k])
        return found

    def _fit(self, data: Ratings) -> None:
        generator = self._checkpoint.generator("seed", self.random_state)
        seed = int(generator.integers(2**63))
        sampler = self._sampler(data)
        chain = Chain(sampler, seed, self.n_burn, self.n_samples, self.thin)
        stopping = Stopping(chain.n_sweeps, tol=-np.inf)
        with progress_bar(type(self).__name__, 1, bool(self.verbose)) as report:
            watch = partial(_watch, [*self.callbacks, *report("sweeps")])
            result = self._checkpoint.minimise("chain", chain, None, None, stopping, [watch])
        for name, samples in split_samples(result.point, self.n_samples, sampler.kept).items():
            setattr(self, name, samples)  # a view: a copy would take as much memory again
        self.history_, self.n_iter_ = result.history, result.n_iter
        self.n_evaluations_, self.stop_reason_ = result.n_iter, str(result.reason)

    def _joined(
        self, folded: Self, side: Side, data: Ratings, frequencies: LevelFrequencies | None = None
    ) -> Self:
        joined = super()._joined(folded, side, data, frequencies)
        copy_views(joined)
        return joined

    def _new_row_sweep(self, side: Side, number: int) -> Sweep:
        """Return a source of random numbers for new rows: the same again after loading.

        New users and new items must not share any: their factors would be alike.
        """
        return Sweep(self._calibration_seed, len(SIDES) * number + SIDES.index(side))

    def credible_interval(
        self, pairs: Any, level: float = 0.9, unknown: Unknown = "nan"
    ) -> Float64Array:
        """Return where the expected rating of every pair is with that probability.

        The expected rating is what many users and items like these would average; a single rating
        varies more, as `predict_proba` says.  A model of one sample, as EM finds, has no interval.

        Parameters
        ----------
        pairs : pairs
            (user, item) pairs.
        level : float
            The probability of the interval, between 0 and 1; it leaves out as much on either side.
        unknown : {"nan", "raise"}
            What to do with users or items that training did not see: answer NaN, or raise an error.

        Returns
        -------
        array of shape (n_pairs, 2)
            The lower and the upper end.
        """
        check_option("unknown", unknown, ("nan", "raise"))
        if not (isinstance(level, Real) and 0 < level < 1):
            raise ValueError(f"level={level!r} must be a number between 0 and 1, such as 0.9.")
        users, items, known = self._encoded(pairs, unknown)
        if len(self.user_factors_) == 1:
            raise ValueError(
                "There is one sample, so no interval: fit with n_samples > 1, and not by EM."
            )
        interval = np.full((len(known), 2), np.nan)
        tails = [(1 - level) / 2, (1 + level) / 2]
        rows = np.flatnonzero(known)
        for first in range(0, len(rows), PAIRS_AT_A_TIME):
            own = rows[first : first + PAIRS_AT_A_TIME]
            interval[own] = np.quantile(self._expected(users[own], items[own]), tails, axis=1).T
        return interval

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "n_burn", int, 0)
        check_number(self, "n_samples", int, 1)
        check_number(self, "thin", int, 1)
        check_callbacks(self)
        as_generator(self.random_state)
