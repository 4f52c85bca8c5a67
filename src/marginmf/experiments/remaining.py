"""How long a run will take yet, from how long cells like those to come have taken."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from joblib import effective_n_jobs

from marginmf.experiments.cell import Cell
from marginmf.experiments.store import Store

#: Measure, data and method, or the first of them.
Kind = tuple[str, ...]


class RemainingTime:
    """An estimate that improves with every cell that is done.

    A cell is expected to take as long as those of the same measure, data and method took on
    average; where there are none yet, as long as those of the same measure and data, then of the
    same measure; else as the average.

    Parameters
    ----------
    store : Store
        What has been measured before.
    pending : sequence of Cell
        What is to be measured.
    n_jobs : int
        How many cells run side by side.
    """

    def __init__(self, store: Store, pending: Sequence[Cell], n_jobs: int) -> None:
        # Counted by kind: thousands of cells are of a few dozen kinds, and the rest is asked for
        # after each of them.
        self._pending = Counter((cell.kind, cell.alone) for cell in pending)
        self._n_jobs: int = effective_n_jobs(n_jobs)
        self._seconds: dict[Kind, float] = defaultdict(float)
        self._seen: Counter[Kind] = Counter()
        for record in store.records.values():
            self._note(Cell(record["measure"], record["settings"]).kind, record["seconds"])

    def finish(self, cell: Cell, seconds: float) -> None:
        """Learn how long a cell took."""
        self.drop(cell)
        self._note(cell.kind, seconds)

    def drop(self, cell: Cell) -> None:
        """Expect a cell no longer, and learn nothing: how soon it failed says nothing of others."""
        self._pending[cell.kind, cell.alone] -= 1

    def seconds(self) -> float | None:
        """Return how long the rest is expected to take, or None as long as no cell is known."""
        if not self._seen:
            return None
        together = alone = 0.0
        for (kind, is_alone), count in self._pending.items():
            if is_alone:
                alone += count * self._expected(kind)
            else:
                together += count * self._expected(kind)
        return together / self._n_jobs + alone

    def _note(self, kind: Kind, seconds: float) -> None:
        for length in range(len(kind) + 1):
            self._seconds[kind[:length]] += seconds
            self._seen[kind[:length]] += 1

    def _expected(self, kind: Kind) -> float:
        nearest = next(
            kind[:length] for length in range(len(kind), -1, -1) if self._seen[kind[:length]]
        )
        return self._seconds[nearest] / self._seen[nearest]
