"""How the objective falls on the small matrices that the thesis works through."""

from typing import Any

import numpy as np

from marginmf.experiments.cell import Values
from marginmf.experiments.measures.ratings import make_method
from marginmf.experiments.published import worked_example


def convergence(
    example: str, method: str, solver: str, start: int, params: dict[str, Any]
) -> Values:
    """Return the objective after every iteration from one random start."""
    Y = np.array(worked_example(example)["Y"], float)
    users, items = np.nonzero(Y)
    model = make_method(method, {"solver": solver, **params}).set_params(random_state=start)
    model.fit(np.column_stack([users, items]), Y[users, items])
    return {"objective": [float(record.objective) for record in model.history_]}
