"""Faults of every sort that the sieve looks for, to see that it finds them."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from fuzz.judging import attempt, in_proportion


def _dies() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _hangs() -> None:
    time.sleep(3_600)


def _takes_memory() -> None:
    with in_proportion(1_000):
        np.ones(1 << 24).sum()


def _takes_time() -> None:
    with in_proportion(1_000):
        time.sleep(2.5)


def _reads_beyond() -> None:
    attempt(lambda: np.arange(3)[3])


def _leaves_it_to_others() -> None:
    attempt(lambda: np.ones(3) + np.ones(4))


def _says_too_much() -> None:
    def read() -> None:
        raise ValueError("a" * 10_000)

    attempt(read)


FAULTS: tuple[Callable[[], None], ...] = (
    *(_dies, _hangs, _takes_memory, _takes_time),
    *(_reads_beyond, _leaves_it_to_others, _says_too_much),
)
TITLE = "Planted faults"
#: A process that has not answered after this hangs.
SECONDS = 10.0
N = len(FAULTS) + 1


def prepare(folder: Path) -> None:
    """Nothing comes before."""


def attack(seed: int, number: int, folder: Path) -> str:
    """Commit one fault; the last attack commits none."""
    if number < len(FAULTS):
        FAULTS[number]()
    return "no fault"
