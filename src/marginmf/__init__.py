"""Max-margin matrix factorisation of discrete matrices: star ratings and label sets.

The parts live in submodules that are imported when they are first asked for, so that
``import marginmf`` costs next to nothing:

>>> import marginmf
>>> marginmf.ratings.HMF(n_factors=20)
HMF(n_factors=20)
"""

from importlib import import_module
from types import ModuleType

__version__ = "0.1.0"

_SUBMODULES = (
    "checkpoints",
    "datasets",
    "kernels",
    "losses",
    "metrics",
    "penalties",
    "plots",
    "protocols",
    "ratings",
    "solvers",
    "thresholds",
    "tuning",
)

__all__ = ["__version__", *_SUBMODULES]


def __getattr__(name: str) -> ModuleType:
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
