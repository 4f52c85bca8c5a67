"""Fits that survive being killed: the same call goes on, and ends at the same answer.

An `OpenCheckpoint` runs the minimisations of a fit by name.  Opened for a `Checkpoint`, it keeps
finished ones and the state of running ones in a folder, for when the same fit is called again.
"""

from marginmf.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointLike,
    OpenCheckpoint,
    RunStore,
    open_checkpoint,
)

__all__ = ["Checkpoint", "CheckpointLike", "OpenCheckpoint", "RunStore", "open_checkpoint"]
