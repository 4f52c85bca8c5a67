"""Solvers, which know nothing of ratings, labels or where vectors live.

A solver yields states and needs the few operations of `Vectors`; `minimise` runs any of them.
"""

from marginmf.penalties import Penalty
from marginmf.solvers.apg import APG, Composite
from marginmf.solvers.descent import LBFGS, ConjugateGradient, Descent, GradientDescent
from marginmf.solvers.rowwise import minimise_rows
from marginmf.solvers.run import (
    Callback,
    Counted,
    EarlyStopping,
    Monitor,
    Objective,
    Paused,
    Progress,
    Record,
    Result,
    Save,
    Solver,
    State,
    Stopping,
    StopReason,
    minimise,
)
from marginmf.solvers.vectors import BufferPool, NumpyVectors, Vectors

__all__ = [
    "APG",
    "LBFGS",
    "SOLVERS",
    "BufferPool",
    "Callback",
    "Composite",
    "ConjugateGradient",
    "Counted",
    "Descent",
    "EarlyStopping",
    "GradientDescent",
    "Monitor",
    "NumpyVectors",
    "Objective",
    "Paused",
    "Penalty",
    "Progress",
    "Record",
    "Result",
    "Save",
    "Solver",
    "State",
    "StopReason",
    "Stopping",
    "Vectors",
    "get_solver",
    "minimise",
    "minimise_rows",
]

#: Every solver by the name that estimators take as ``solver="..."``.
SOLVERS = {"lbfgs": LBFGS, "cg": ConjugateGradient, "gd": GradientDescent}


def get_solver(solver: str | Solver) -> Solver:
    """Return the solver of that name, or the solver itself; else explain."""
    if isinstance(solver, str):
        if solver in SOLVERS:
            return SOLVERS[solver]()
    elif hasattr(solver, "steps") and not isinstance(solver, type):
        return solver
    raise ValueError(
        f"solver={solver!r} is not known. Choose one of {', '.join(map(repr, SOLVERS))}, "
        "or pass an object with steps(objective, start, vectors)."
    )
