"""Where is the minimum?  Solvers that know nothing of ratings, labels or where vectors live.

Each is written once against the few operations of `VectorSpace`.
"""

from collections.abc import Mapping

from marginmf.solvers.apg import APG, Penalty
from marginmf.solvers.cg import ConjugateGradient
from marginmf.solvers.descent import Descent, Objective, ResumableSolver, Solver, can_resume
from marginmf.solvers.early import EarlyStopped
from marginmf.solvers.gd import GradientDescent
from marginmf.solvers.lbfgs import LBFGS
from marginmf.solvers.monitor import (
    Callback,
    Monitor,
    Progress,
    Record,
    Result,
    Save,
    State,
    Stopping,
    StopReason,
)
from marginmf.solvers.rowwise import minimise_rows
from marginmf.solvers.vector import NumpyVectors, VectorSpace

__all__ = [
    "APG",
    "LBFGS",
    "SOLVERS",
    "Callback",
    "ConjugateGradient",
    "Descent",
    "EarlyStopped",
    "GradientDescent",
    "Monitor",
    "NumpyVectors",
    "Objective",
    "Penalty",
    "Progress",
    "Record",
    "Result",
    "ResumableSolver",
    "Save",
    "Solver",
    "State",
    "StopReason",
    "Stopping",
    "VectorSpace",
    "can_resume",
    "get_solver",
    "minimise_rows",
]

#: Every solver by the name that estimators take as ``solver="..."``.
SOLVERS: Mapping[str, type[Descent]] = {
    "lbfgs": LBFGS,
    "cg": ConjugateGradient,
    "gd": GradientDescent,
}


def get_solver(solver: str | Solver) -> Solver:
    """Return the solver of that name, or the solver itself; else explain."""
    if isinstance(solver, str):
        if solver in SOLVERS:
            return SOLVERS[solver]()
    elif hasattr(solver, "minimise") and not isinstance(solver, type):
        return solver
    raise ValueError(
        f"solver={solver!r} is not known. Choose one of {', '.join(map(repr, SOLVERS))}, "
        "or pass a solver object."
    )
