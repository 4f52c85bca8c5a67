"""What may happen when something hostile is read: an answer, or a sentence."""

import linecache
import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import marginmf

#: Errors that a library may raise about what it was given.
POLITE = (ValueError, TypeError, OSError, ImportError, AttributeError, KeyError, FloatingPointError)
#: Some of them are bugs all the same, whoever raises them.
BUGS = (IndexError, RecursionError, UnicodeError, MemoryError)
#: A sentence is not a page; it may name two paths.
LONGEST_SENTENCE = 1_000
#: Ours, and the check of scikit-learn that a model is fitted.
OWN = (str(Path(marginmf.__file__).parent), f"sklearn{os.sep}utils{os.sep}validation.py")
#: What loading may cost: so many times the file, and so much on top of it.
BYTES_PER_BYTE, BYTES_MORE = 4, 50 << 20
SECONDS_PER_BYTE, SECONDS_MORE = 2 / 100e6, 2.0


class FailedAttackError(Exception):
    """Something that must not happen: the words say what."""


def refusal(error: BaseException) -> str:
    """Return the sentence of a refusal; anything else is a failure."""
    words = str(error)
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    line = linecache.getline(last.filename, last.lineno or 0).strip()
    raised = line.startswith("raise") and any(part in last.filename for part in OWN)
    if isinstance(error, BUGS) or not isinstance(error, POLITE) or not raised:
        told = "".join(traceback.format_exception(error)[-6:])
        raise FailedAttackError(f"no sentence, but {type(error).__name__}: {told:.3000}") from None
    if len(words) > LONGEST_SENTENCE:
        raise FailedAttackError(f"a refusal of {len(words):,} characters: {words:.500}") from None
    if any(ord(one) < 32 and one != "\n" for one in words):
        raise FailedAttackError(f"a refusal with control characters: {words!r:.500}") from None
    return words


def attempt(call: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, str]:
    """Call something; return its answer, or None and the sentence with which it refused."""
    try:
        return call(*args, **options), ""
    except Exception as error:
        return None, refusal(error)


@contextmanager
def in_proportion(
    size: int, more: int = BYTES_MORE, seconds: float = SECONDS_MORE
) -> Iterator[None]:
    """Fail if the block takes more memory or time than a file of so many bytes is worth."""
    before = _restart_peak()
    start = time.perf_counter()
    try:
        yield
    finally:
        spent = time.perf_counter() - start
        taken = _peak() - before
    if taken > BYTES_PER_BYTE * size + more:
        raise FailedAttackError(f"{taken >> 20} MiB for a file of {size:,} bytes")
    if spent > seconds + SECONDS_PER_BYTE * size:
        raise FailedAttackError(f"{spent:.1f} seconds for a file of {size:,} bytes")


def _restart_peak() -> int:
    """Let the peak of this process's memory begin anew, and return what is in use."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0  # elsewhere, time alone is measured
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])
