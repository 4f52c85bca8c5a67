"""What cells measure: functions from settings, all of them values that JSON has, to findings.

Each is found by its name when it is first needed, so that a list of exhibits is quick.  Functions
of other packages are named as ``"package.module:function"``.
"""

from collections.abc import Callable
from importlib import import_module

from marginmf.experiments.cell import Cell, Values

#: Where each function lives.
HOMES = {
    "rating_errors": "ratings",
    "fit_time": "ratings",
    "stage_error": "stages",
    "convergence": "examples",
    "user_view": "views",
    "label_measures": "labels",
    "group_pattern": "labels",
}


def measure(cell: Cell) -> Values:
    """Run one cell in this process, on one thread unless it says otherwise."""
    from threadpoolctl import threadpool_limits

    function = find_measure(cell.measure)
    with threadpool_limits(1):
        return function(**cell.settings)


def find_measure(name: str) -> Callable[..., Values]:
    """Return the function of a name, which every process that runs cells finds in the same way.

    >>> find_measure("statistics:NormalDist")(mu=0.0).mean
    0.0
    """
    if name in HOMES:
        module, function = f"{__name__}.{HOMES[name]}", name
    else:
        module, _, function = name.partition(":")
        if not function:
            raise ValueError(
                f"There is no measure {name!r}; there are {', '.join(sorted(HOMES))}, and any "
                "function of yours as 'package.module:function'."
            )
    found: Callable[..., Values] = getattr(import_module(module), function)
    return found
