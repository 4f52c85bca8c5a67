"""Which inner loops the kernels are compiled with: the vector code, or the plain one.

The plain one serves where the vector code cannot be imported or compiled, and where the
environment variable ``MARGINMF_PLAIN_KERNELS`` is set.  `VECTOR_CODE` says which one it is.
"""
# What Numba compiles is typed by Numba.
# mypy: allow-untyped-defs, allow-untyped-calls

import os
import warnings
from types import ModuleType

import numpy as np

from marginmf.backends.cpu import plain


def _vector_code() -> ModuleType | None:
    """Return the module of vector code if it works here."""
    if os.environ.get("MARGINMF_PLAIN_KERNELS"):
        return None
    try:
        from marginmf.backends.cpu import vector_code

        # From the cache on disk, so this costs a few milliseconds after the first time.
        factors, indices = np.ones((5, 19), np.float32), np.arange(5, dtype=np.int32)
        arguments = (factors, factors, 0 * factors, 0 * factors, indices, np.zeros(1, np.int64))
        if abs(vector_code.probe(*arguments) - 5 * 19.0) < 1e-6:
            return vector_code
        reason = "it computes something else"
    except Exception as error:  # whatever Numba raises when its private parts have changed
        reason = str(error)
    warnings.warn(
        f"The vector code does not work with this version of Numba ({reason}): plain loops are "
        "used, which take two to three times as long.",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


_chosen = _vector_code()
VECTOR_CODE = _chosen is not None
_loops = _chosen or plain
dot_at, score_row, scatter_row = _loops.dot_at, _loops.score_row, _loops.scatter_row
load_acquire, store_release = _loops.load_acquire, _loops.store_release
