"""How an estimator runs its minimisations, so that a fit can be taken up where it was left."""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral
from threading import Event
from typing import Any, TypeVar

import numpy as np

from marginmf._random import as_generator
from marginmf.checkpoints.generators import Snapshot
from marginmf.checkpoints.store import Store
from marginmf.solvers import (
    Callback,
    Progress,
    Result,
    Solver,
    State,
    Stopping,
    VectorSpace,
    can_resume,
)

Part = TypeVar("Part")
Done = TypeVar("Done")


@dataclass(frozen=True)
class Journal:
    """Runs minimisations by name; with a store, each only once over all calls of a fit.

    A fit must ask for the same names in each call, and for each of them once; in which order, and
    in how many threads, does not matter.

    Parameters
    ----------
    store : Store, optional
        Where results and states are kept; without one, nothing is.
    prefix : str
        Before every name.

    Examples
    --------
    >>> from marginmf.solvers import LBFGS
    >>> journal = Journal()
    >>> square = lambda x: (float(x @ x), 2 * x)
    >>> journal.minimise("stage 1", LBFGS(), square, np.array([3.0])).objective < 1e-9
    True
    """

    store: Store | None = None
    prefix: str = ""
    _given_up: Event = field(default_factory=Event, repr=False)

    def scope(self, name: str) -> "Journal":
        """Return a journal of the same fit for a part of it, whose names begin with this one.

        It can be given as ``checkpoint`` to the fit of an estimator inside this fit.
        """
        return Journal(self.store, f"{self.prefix}{name}, ", self._given_up)

    def minimise(
        self,
        name: str,
        solver: Solver,
        objective: Any,
        start: Any,
        stopping: Stopping | None = None,
        callbacks: Sequence[Callback] = (),
        space: VectorSpace | None = None,
    ) -> Result:
        """Return the stored result of this name, or minimise, from the stored state if any.

        Callbacks see the iterations that are made now, not those of an earlier call.  A solver
        that cannot resume begins anew.  For the other parameters see `Descent.minimise`.
        """
        callbacks = [*callbacks, self._give_up]
        run = partial(solver.minimise, objective, start, stopping, callbacks, space)
        if self.store is None:
            return run()
        if getattr(start, "dtype", None) not in (np.float32, np.float64):
            raise TypeError(
                "A checkpoint holds NumPy arrays of float32 or float64, but the vectors of this "
                f"fit are of type {type(start).__name__}: fit without a checkpoint."
            )
        name = self.prefix + name
        found = self.store.find(name)
        if isinstance(found, Result):
            return found
        if can_resume(solver):
            state = found if isinstance(found, State) else None
            run = partial(run, resume=state, save=partial(self.store.note, name))
        result = run()
        self.store.note(name, result)
        return result

    def generator(self, name: str, random_state: Any) -> np.random.Generator:
        """Return a random generator that yields the same numbers in every call of a fit.

        That takes no storing where ``random_state`` is a number; otherwise the generator of the
        first call is kept as it was.
        """
        if self.store is None or isinstance(random_state, Integral):
            return as_generator(random_state)
        name = self.prefix + name
        found = self.store.find(name)
        if isinstance(found, Snapshot):
            return found.generator()
        generator = as_generator(random_state)
        self.store.note(name, Snapshot.of(generator))
        return generator

    def side_by_side(
        self, work: Callable[[Part], Done], parts: Collection[Part], n_threads: int
    ) -> list[Done]:
        """Do some work for several parts of a fit in threads; return what it gave, in order.

        If one part fails, or the user interrupts the fit, the others give up after the iteration
        that they are in: the error would otherwise wait until they are done.
        """
        with ThreadPoolExecutor(max(1, min(n_threads, len(parts)))) as pool:
            futures = [pool.submit(work, part) for part in parts]
            try:
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                failed = any(future.exception() for future in done)
            except BaseException:
                failed = True
                raise
            finally:
                if failed:
                    self._given_up.set()
                    pool.shutdown(wait=False, cancel_futures=True)
        errors = [future.exception() for future in futures if not future.cancelled()]
        # What went wrong, rather than that somebody gave up because of it.
        for error in sorted(filter(None, errors), key=lambda e: isinstance(e, CancelledError)):
            raise error
        return [future.result() for future in futures]

    def _give_up(self, progress: Progress) -> None:
        if self._given_up.is_set():
            raise CancelledError("Another part of the fit has failed.")
