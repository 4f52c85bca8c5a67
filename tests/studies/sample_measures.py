"""Measures made up for tests, which processes of their own find by the name of this module."""

import os
import time
from pathlib import Path
from typing import Any

from joblib import effective_n_jobs


def square(number: int, log: str | None = None, pause: float = 0.0) -> dict[str, Any]:
    """Return a square, and the process that found it; note in a file that it was asked for."""
    time.sleep(pause)
    if log is not None:
        with open(log, "a") as file:
            file.write(f"{number}\n")
    return {"square": number**2}


def process(number: int) -> dict[str, Any]:
    return {"process": os.getpid(), "time": time.time()}


def cores(number: int) -> dict[str, Any]:
    return {"cores": effective_n_jobs(7)}


def odd_fails(number: int) -> dict[str, Any]:
    if number % 2:
        raise LookupError("no data for odd numbers")
    return {"number": number}


def strange(number: int) -> dict[str, Any]:
    return {"path": Path("x")}


def crash(number: int) -> dict[str, Any]:
    os._exit(3)
