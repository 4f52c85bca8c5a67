"""The worked example of HMF: four stages, and the matrix that they complete."""

import numpy as np

from marginmf._utils.types import Float64Array, IntArray
from marginmf.experiments.blocks import Block, Figure, Text, Verdict
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import hierarchy_figure
from marginmf.experiments.published import worked_example
from marginmf.experiments.store import Store
from marginmf.ratings.fitting.calibration import first_below


def completed(Y: IntArray, margins: Float64Array, n_stages: int) -> IntArray:
    """Return the matrix as it is after so many stages; 0 is what is still open.

    Observed entries are themselves from the stage on that settles them.

    >>> completed(np.array([[0, 3]]), np.array([[[-1.0, 1.0], [1.0, 1.0]]]), 1)
    array([[1, 0]])
    """
    last = margins.shape[-1] + 1
    predicted = first_below(margins.reshape(-1, last - 1)).reshape(Y.shape) + 1
    settled = np.where(Y > 0, Y, predicted)
    # After the last stage, what has never been below is at the highest level.
    return np.where((settled <= n_stages) | (n_stages == last), settled, 0)


def show(store: Store, scale: Scale) -> list[Block]:
    """Complete the matrix from the printed factors, stage by stage."""
    example = worked_example("hierarchy", corrected=True)
    Y, stages = example["Y"], example["stages"]
    margins = np.stack([stage["U"] @ stage["V"].T for stage in stages], axis=-1)
    steps = [completed(Y, margins, number) for number in range(1, len(stages) + 2)]
    same = [
        bool((step == stage["completed"]).all()) for step, stage in zip(steps, stages, strict=False)
    ]
    whole = bool((steps[-1] == example["completed"]).all())
    return [
        Verdict(
            "reproduced" if whole and all(same) else "not reproduced",
            f"the factors that are printed for the {len(stages)} stages, put through the library's "
            f"rule, complete {'the printed matrix' if whole else 'another matrix'}, and "
            f"{sum(same)} of {len(same)} matrices on the way are as printed.",
        ),
        Text(
            "Stage q asks of every entry whether it is above q; an entry is settled by the "
            "first stage that says no, and is 5 if none does. Observed entries stay as they are."
        ),
        Figure(
            lambda: hierarchy_figure(Y, steps),
            "The matrix after every stage",
            "The observed matrix of 5 x 7 stars, and how it fills up stage by stage.",
        ),
    ]


EXHIBIT = Exhibit(
    "worked-example", 3, "figure", "The worked example of HMF and its tree", lambda scale: [], show
)
