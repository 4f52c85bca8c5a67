"""Write a file whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_write(destination: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside `destination` that takes its name when the block succeeds.

    On any exception, an interruption from the keyboard included, the temporary file is removed and
    what was under the name before stays as it was.
    """
    destination.parent.mkdir(parents=True, exist_ok=True)
    # Opened by hand rather than by tempfile, whose files nobody else may read.
    temporary = destination.with_name(f".{destination.name}.{secrets.token_hex(6)}.part")
    try:
        with open(temporary, "xb") as file:
            yield file
        os.replace(temporary, destination)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
