"""The kinds of attacks: each is a module that prepares once and then attacks by numbers.

A module has ``N``, how many attacks there are; ``TITLE``; ``prepare(folder)``, which comes before
them; and ``attack(seed, number, folder)``, which returns what happened in a few words, and raises
`FailedAttackError` or anything else if that must not happen.
"""

from importlib import import_module
from typing import Any

KINDS = {
    "models": "model_files",
    "data": "data_files",
    "checkpoints": "checkpoint_files",
    "targeted": "targeted",
    "kills": "kills",
    "calls": "concurrency",
    "numbers": "extremes",
}


def module_of(kind: str) -> Any:
    """Return the module of a kind: imported when it is needed, as some import much."""
    return import_module(f"fuzz.{KINDS.get(kind, kind)}")
