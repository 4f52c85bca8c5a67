"""Factors in blocks: matrix products of some users' and some items' rows."""

import numpy as np

from marginmf._typing import FloatArray, IntArray

#: Codes of items, or a range of them.
Columns = IntArray | slice


def as_stages(factors: FloatArray) -> FloatArray:
    """Return factors with an axis for the stages, of which most methods have one."""
    return factors if factors.ndim == 3 else factors[None]


def block_product(left: FloatArray, right: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Return the inner products of all rows of one with all rows of the other, in float32."""
    left, right = (side.astype(np.float32, copy=False) for side in (left, right))
    product: FloatArray = np.matmul(left, right.T, out=out)
    return product
