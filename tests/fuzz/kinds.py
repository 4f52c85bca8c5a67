"""The kinds of attacks by name: each prepares once, and then makes attacks by their numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fuzz import checkpoint_files, concurrency, data_files, extremes, kills, model_files, targeted


@dataclass(frozen=True)
class Kind:
    """A kind of attack: how many there are by default, what comes first, and one by its number.

    An attack returns what happened in a word, and raises `FailedAttackError` or anything else if
    that must not happen.  ``alone`` are those that need all processors.
    """

    title: str
    n: int
    prepare: Callable[[Path], None]
    attack: Callable[[int, int, Path], str]
    seconds: float = 60.0


KINDS = {
    "models": Kind("Mutated model files", 20_000, model_files.prepare, model_files.attack),
    "data": Kind("Mutated data files", 10_000, data_files.prepare, data_files.attack),
    "checkpoints": Kind(
        "Mutated checkpoints", 2_000, checkpoint_files.prepare, checkpoint_files.attack
    ),
    "targeted": Kind("Files made with a purpose", targeted.N, targeted.prepare, targeted.attack),
    "kills": Kind("Processes killed", 100, kills.prepare, kills.attack),
    "calls": Kind("Calls at the same time", 1_000, concurrency.prepare, concurrency.attack),
    "numbers": Kind("Extreme numbers", extremes.N, extremes.prepare, extremes.attack),
}
