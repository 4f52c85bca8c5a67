"""Fits that survive being killed: the same call goes on, and ends at the same answer.

A fit is a sequence of minimisations with names, and an `OpenCheckpoint` runs them.  Opened for a
`Checkpoint`, it keeps the finished ones and the state of the running ones in a folder; when the
same fit is called again, it takes up what is there.
"""

from marginmf.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointLike,
    OpenCheckpoint,
    RunStore,
    open_checkpoint,
)

__all__ = ["Checkpoint", "CheckpointLike", "OpenCheckpoint", "RunStore", "open_checkpoint"]
