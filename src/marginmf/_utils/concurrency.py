"""What other threads must not be caught in the middle of: by a copy, or by a forked child.

Of the threads of its parent, a child has only the one that forked, and a lock that another thread
held would be held for ever.  Where that thread may hold it for long, the child gets a new lock;
where it changes what the child needs whole, forking waits.
"""

import os
import sys
from collections.abc import Callable
from functools import cached_property
from threading import RLock
from typing import Any


class Snapshot:
    """An object that can be copied and pickled while other threads add what they derive of it."""

    def __getstate__(self) -> dict[str, Any]:
        return vars(self).copy()


def after_fork(function: Callable[[], Any]) -> Callable[[], Any]:
    """Call a function in every forked child before it goes on."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
    return function


def hold_at_fork(lock: Any) -> None:
    """Let every fork wait until no other thread holds a lock, so that what it guards is whole."""
    if hasattr(os, "register_at_fork"):
        after = {"after_in_parent": lock.release, "after_in_child": lock.release}
        os.register_at_fork(before=lock.acquire, **after)


@after_fork
def _free_cached_properties() -> None:
    """Give our cached properties new locks, one of which all instances share in Python 3.11."""
    if sys.version_info >= (3, 12):
        return
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "marginmf":
            for kind in list(vars(module).values()):
                for each in vars(kind).values() if isinstance(kind, type) else ():
                    if isinstance(each, cached_property):
                        each.lock = RLock()  # type: ignore[attr-defined]
