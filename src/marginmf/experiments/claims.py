"""Claims of the thesis, put to the test: words for a verdict, and the verdict itself."""

from collections.abc import Iterable, Sequence

import numpy as np

from marginmf.experiments.blocks import Outcome, Verdict
from marginmf.experiments.cell import Cell
from marginmf.experiments.samples import Pick, figure
from marginmf.experiments.store import Store

#: From best to worst.
ORDER: tuple[Outcome, ...] = ("reproduced", "within noise", "not reproduced", "not run")


def verdict_on(outcomes: Iterable[Outcome], why: str) -> Verdict:
    """Return the verdict on a whole: the worst of its parts."""
    return Verdict(max(outcomes, key=ORDER.index, default="not run"), why)


def paired_differences(
    store: Store, first: Sequence[Cell], second: Sequence[Cell], pick: Pick
) -> list[float]:
    """Return by how much the first found more than the second, on each split that both have."""
    pairs = [(store.values(a), store.values(b)) for a, b in zip(first, second, strict=True)]
    return [pick(a) - pick(b) for a, b in pairs if a is not None and b is not None]


def paired_claim(
    store: Store,
    first: Sequence[Cell],
    second: Sequence[Cell],
    pick: Pick,
    name: str,
    other: str,
) -> str:
    """Say whether a method has smaller errors than another on the same splits, and by how much."""
    differences = np.array(paired_differences(store, first, second, pick))
    if len(differences) == 0:
        return f"{name} and {other} have no split in common yet"
    ahead = bool(differences.mean() <= 0)
    return (
        f"{name} is {'better' if ahead else 'worse'} than {other} by "
        f"{figure(abs(differences.mean()))} on average, better on {int((differences < 0).sum())} "
        f"of {len(differences)} splits"
    )
