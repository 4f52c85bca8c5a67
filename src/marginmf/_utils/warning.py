"""Warnings that point at the caller's own line."""

import sys
import warnings


def warn(message: str) -> None:
    """Warn at the innermost line of the stack that is outside this package."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "marginmf":
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(message, UserWarning, stacklevel=level)
