"""What protocols have in common that yield (train, test), as scikit-learn's splitters do."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TwoWay:
    """A protocol that yields (train, test).

    >>> TwoWay(n_splits=4).get_n_splits()
    4
    """

    n_splits: int = 3
    random_state: Any = 0

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return how many splits there are (for scikit-learn)."""
        return self.n_splits
