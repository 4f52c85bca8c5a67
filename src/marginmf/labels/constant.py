"""Labels that all training rows have, or none: no classifier can learn them, none should fail."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from marginmf._indicators import counts
from marginmf._typing import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Varying:
    """Which labels some rows have and some have not, and what the others always are.

    >>> Y = csr_array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    >>> labels = Varying.of(Y)
    >>> labels.part(Y).toarray().tolist()
    [[1.0], [0.0]]
    >>> labels.filled(np.array([[0.3]])).tolist()
    [[0.3, 1.0, -1.0]]
    """

    varying: BoolArray
    always: BoolArray

    @classmethod
    def of(cls, Y: csr_array) -> Self:
        """Look at the labels of training rows."""
        having = counts(Y, axis=0)
        always = having == Y.shape[0]
        return cls((having > 0) & ~always, always)

    def part(self, Y: csr_array) -> csr_array:
        """Return the columns of the labels that vary."""
        return Y[:, np.flatnonzero(self.varying)]

    def filled(self, scores: FloatArray) -> FloatArray:
        """Return scores of all labels, given those of the labels that vary."""
        everything = np.empty((len(scores), len(self.varying)), scores.dtype)
        everything[:] = np.where(self.always, 1.0, -1.0)
        everything[:, self.varying] = scores
        return everything
