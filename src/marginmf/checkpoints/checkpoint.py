"""What a user says about a checkpoint, and how a fit opens it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from marginmf._typing import Array
from marginmf.checkpoints.fingerprint import fingerprint
from marginmf.checkpoints.journal import Journal
from marginmf.checkpoints.store import Store


@dataclass(frozen=True)
class Checkpoint:
    """Where a fit keeps its state while it runs, and how often it writes.

    Parameters
    ----------
    path : path
        A folder of its own, new or left by the same fit.  It is removed when the fit succeeds.
    seconds : float
        So long at least between two writes.  A slow disk makes it longer: writing takes at most
        a twentieth of the time.  0 writes after every iteration, whatever that costs.

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


#: What ``fit`` takes as ``checkpoint``; a journal is that of a fit which this one is a part of.
CheckpointLike = str | os.PathLike[str] | Checkpoint | Journal | None


@contextmanager
def open_journal(
    checkpoint: CheckpointLike,
    estimator: Any,
    data: Mapping[str, Array],
) -> Iterator[Journal]:
    """Give the block the journal that a fit of this estimator to this data should use.

    When the block succeeds, the checkpoint is removed; when it fails or is interrupted, all that
    was done is written first.

    Parameters
    ----------
    checkpoint : path, Checkpoint, Journal or None
        None gives a journal that keeps nothing.  A journal is given back as it is: that of an
        outer fit, which opened it and will close it.
    estimator : estimator
        Whose class and parameters must be the same when the fit is called again.
    data : mapping of str to array
        What must also be the same, by the names used in messages.
    """
    if checkpoint is None or isinstance(checkpoint, Journal):
        yield checkpoint or Journal()
        return
    if not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(checkpoint)
    store = Store(Path(checkpoint.path), float(checkpoint.seconds))
    with store.opened(fingerprint(estimator, data)):
        yield Journal(store)
