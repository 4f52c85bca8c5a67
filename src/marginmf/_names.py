"""Help for a name that is not known."""

from collections.abc import Iterable
from difflib import get_close_matches


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return ``" Did you mean ...?"`` with the known name that is nearest, or nothing.

    >>> suggestion("macro_f", ["micro_f1", "macro_f1"])
    ' Did you mean macro_f1?'
    >>> suggestion("xyz", ["micro_f1", "macro_f1"])
    ''
    """
    close = get_close_matches(name.lower(), list(known), n=1)
    return f" Did you mean {close[0]}?" if close else ""
