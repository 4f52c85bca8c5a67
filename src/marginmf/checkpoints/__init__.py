"""Fits that survive being killed: the same call goes on, and ends at the same answer.

A fit is a sequence of minimisations with names, and a `Journal` runs them.  Given a `Checkpoint`,
it keeps the finished ones and the state of the running ones in a folder; when the same fit is
called again, it takes up what is there.
"""

from marginmf.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointLike,
    Journal,
    RunStore,
    open_journal,
)

__all__ = ["Checkpoint", "CheckpointLike", "Journal", "RunStore", "open_journal"]
