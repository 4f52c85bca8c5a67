"""What a user says about a checkpoint, and how a fit runs its minimisations with one."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from threading import Event
from typing import Any, Protocol, TypeVar

import numpy as np

from marginmf._utils.random import GeneratorState, as_generator
from marginmf._utils.types import Array
from marginmf.checkpoints.store import CheckpointStore, Content, fingerprint
from marginmf.solvers import (
    Callback,
    EarlyStopping,
    NumpyVectors,
    Paused,
    Progress,
    Result,
    Solver,
    State,
    Stopping,
    StopReason,
    Vectors,
    minimise,
)

Part = TypeVar("Part")
Done = TypeVar("Done")


@dataclass(frozen=True)
class Checkpoint:
    """The folder where a fit keeps its state while it runs, and how often it writes.

    Parameters
    ----------
    path : path
        A folder of its own, new or left by the same fit.  It is removed when the fit succeeds.
    seconds : float
        The minimum time between two writes, longer on a slow disk: writing takes at most 5 % of
        the time.  0 writes after every iteration, whatever that costs.

    Examples
    --------
    >>> import tempfile
    >>> from marginmf.ratings import HMF
    >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y"), ("cy", "x")]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint = Checkpoint(folder + "/movies", seconds=60)
    ...     model = HMF(n_factors=2, reg=0.1).fit(pairs, [5, 3, 4, 2, 5], checkpoint=checkpoint)
    """

    path: str | os.PathLike[str]
    seconds: float = 5.0

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike):
            raise ValueError(f"checkpoint={self.path!r} must be a path, a Checkpoint or None.")
        if not (isinstance(self.seconds, Real) and float(self.seconds) >= 0):
            raise ValueError(f"seconds={self.seconds!r} must be a number >= 0.")


class RunStore(Protocol):
    """Keeps minimisations by name: a `CheckpointStore` in a folder, or any other."""

    def find(self, name: str, vectors: Vectors) -> Content | None:
        """Return what was noted under this name before, if anything was."""

    def note(self, name: str, content: Content, vectors: Vectors) -> bool | None:
        """Take a run after an iteration (`keep` its vectors), or its result; True pauses it."""


@dataclass(frozen=True)
class OpenCheckpoint:
    """Runs minimisations by name; with a store, each only once over all calls of a fit.

    A fit must ask for the same names in each call, each once, in any order and any threads.

    Parameters
    ----------
    store : RunStore, optional
        Keeps results and unfinished runs; without one, nothing is kept.
    prefix : str
        Before every name.

    Examples
    --------
    >>> from marginmf.solvers import LBFGS
    >>> checkpoint = OpenCheckpoint()
    >>> square = lambda x: (float(x @ x), 2 * x)
    >>> checkpoint.minimise("stage 1", LBFGS(), square, np.array([3.0])).objective < 1e-9
    True
    """

    store: RunStore | None = None
    prefix: str = ""
    _given_up: Event = field(default_factory=Event, repr=False)

    def scope(self, name: str) -> "OpenCheckpoint":
        """Return one for a part of this fit, or for a fit inside it: its names begin with this."""
        return OpenCheckpoint(self.store, f"{self.prefix}{name}, ", self._given_up)

    def minimise(
        self,
        name: str,
        solver: Solver,
        objective: Any,
        start: Any,
        stopping: Stopping | None = None,
        callbacks: Sequence[Callback] = (),
        vectors: Vectors | None = None,
        early_stopping: EarlyStopping | None = None,
    ) -> Result:
        """Return the stored result of this name, or `minimise`, from the stored run if any.

        Callbacks see only the iterations that are made now.
        """
        store, name, vectors = self.store, self.prefix + name, vectors or NumpyVectors()
        found = None if store is None else store.find(name, vectors)
        if isinstance(found, GeneratorState | dict):
            raise _cannot_go_on(name, "it holds no minimisation")
        if found is not None:
            # Kernels do not check bounds: what a file holds must be like what a fit begins with.
            whole = isinstance(found, Result) and start is not None
            first = start if whole else next(iter(solver.steps(objective, start, vectors)))
            if not _resembles(found, first, vectors):
                raise _cannot_go_on(name, "its arrays are not those of this fit")
        if isinstance(found, Result):
            return found
        iterations: list[None] = []  # of a run that goes on, those that are made now
        noticed = [*callbacks, self._give_up]
        if found is not None:
            noticed.append(lambda progress: iterations.append(None))
        try:
            result = minimise(
                solver,
                objective,
                found if isinstance(found, Paused) else start,
                stopping=stopping,
                callbacks=noticed,
                vectors=vectors,
                early_stopping=early_stopping,
                save=None if store is None else lambda paused: store.note(name, paused, vectors),
            )
        except (ValueError, TypeError, LookupError, ArithmeticError) as error:
            if found is None or iterations:
                raise
            raise _cannot_go_on(name, error) from error
        if store is not None and result.reason is not StopReason.PAUSED:
            store.note(name, result, vectors)
        return result

    def generator(self, name: str, random_state: Any) -> np.random.Generator:
        """Return a random generator that yields the same numbers in every call of a fit.

        Unless ``random_state`` is a number, the generator of the first call is kept.
        """
        if self.store is None or isinstance(random_state, Integral):
            return as_generator(random_state)
        name = self.prefix + name
        found = self.store.find(name, NumpyVectors())
        if found is not None:
            if not isinstance(found, GeneratorState):
                raise _cannot_go_on(name, "it holds no random generator")
            return found.generator()
        generator = as_generator(random_state)
        self.store.note(name, GeneratorState.of(generator), NumpyVectors())
        return generator

    def side_by_side(
        self, work: Callable[[Part], Done], parts: Collection[Part], n_threads: int
    ) -> list[Done]:
        """Do some work for several parts of a fit in threads; return the results in order.

        If one part fails or the user interrupts the fit, the others end after their iteration.
        """
        with ThreadPoolExecutor(max(1, min(n_threads, len(parts)))) as pool:
            futures = [pool.submit(work, part) for part in parts]
            failed = True
            try:
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                failed = any(future.exception() for future in done)
            finally:
                if failed:
                    self._given_up.set()
                    pool.shutdown(wait=False, cancel_futures=True)
        errors = [future.exception() for future in futures if not future.cancelled()]
        # What went wrong, before the errors of those that gave up because of it.
        for error in sorted(filter(None, errors), key=lambda e: isinstance(e, CancelledError)):
            raise error
        return [future.result() for future in futures]

    def _give_up(self, progress: Progress) -> None:
        if self._given_up.is_set():
            raise CancelledError("Another part of the fit has failed.")


def _cannot_go_on(name: str, why: object) -> ValueError:
    return ValueError(
        f"The checkpoint cannot be used for {name!r} ({why}). Remove its folder and fit anew."
    )


def _resembles(found: Paused | Result, first: Any, vectors: Vectors) -> bool:
    """Whether a stored run is like the state it began with, or a stored result like the point."""

    def form(vector: Any) -> tuple[Any, Any]:
        array = vectors.to_host(vector)  # a file has an axis for single numbers too
        return array.shape or (1,), array.dtype

    point = form(first.point if isinstance(first, State) else first)
    if isinstance(found, Result):
        return form(found.point) == point
    state, best = found.state, found.best_point
    if form(state.point) != point or (best is not None and form(best) != point):
        return False
    pairs = zip(state.groups(), first.groups(), strict=True)
    if any(mine.keys() != begun.keys() for mine, begun in pairs):
        return False
    for name, group in state.vectors.items():
        # What is empty at first comes to hold vectors like the point.
        forms, begun = ([form(vector) for vector in one] for one in (group, first.vectors[name]))
        if forms != (begun or [point] * len(forms)):
            return False
    return True


#: What ``fit`` takes as ``checkpoint``; one that is open is that of a fit which holds this one.
CheckpointLike = str | os.PathLike[str] | Checkpoint | OpenCheckpoint | None


@contextmanager
def open_checkpoint(
    checkpoint: CheckpointLike, estimator: Any, data: Mapping[str, Array]
) -> Iterator[OpenCheckpoint]:
    """Open the checkpoint that a fit of this estimator to this data should use in the block.

    None gives one that keeps nothing; that of an outer fit is returned as it is.  Class, parameters
    and data, which messages name, must be the same when the fit is called again.  The checkpoint is
    removed when the block succeeds; all that was done is written when it does not.
    """
    if checkpoint is None or isinstance(checkpoint, OpenCheckpoint):
        yield checkpoint or OpenCheckpoint()
        return
    given = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    store = CheckpointStore(Path(given.path), float(given.seconds))
    with store.opened(fingerprint(estimator, data)):
        yield OpenCheckpoint(store)
