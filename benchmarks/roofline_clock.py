"""How long one call takes, in CPU seconds: what else the machine does counts less."""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

REPEATS = 5
#: A repetition calls as often as fills so many seconds.
LEAST_SECONDS = 0.1


def seconds_each(call: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Return the median over some repetitions of the CPU seconds of one call."""
    call()  # compiles, and brings the data near
    calls = max(1, round(LEAST_SECONDS / max(_clocked(call, 1), 1e-6)))
    return median(_clocked(call, calls) / calls for _ in range(repeats))


def _clocked(call: Callable[[], Any], calls: int) -> float:
    begin = time.process_time()
    for _ in range(calls):
        call()
    return time.process_time() - begin
