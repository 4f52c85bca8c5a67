"""Max-margin matrix factorisation of discrete matrices: star ratings and label sets.

The parts live in submodules that are imported when they are first asked for, so that
``import marginmf`` costs next to nothing:

>>> import marginmf
>>> marginmf.ratings.HMF(n_factors=20)
HMF(n_factors=20)
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_SUBMODULES = (
    "checkpoints",
    "datasets",
    "backends",
    "labels",
    "losses",
    "metrics",
    "penalties",
    "persistence",
    "plots",
    "protocols",
    "ratings",
    "solvers",
    "stats",
    "thresholds",
    "tuning",
)

# Functions that are so much used that they stand here too, and where they live.
_FUNCTIONS = {"load": "persistence"}

__all__ = ["__version__", *_FUNCTIONS, *_SUBMODULES]


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        return getattr(import_module(f"{__name__}.{_FUNCTIONS[name]}"), name)
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
