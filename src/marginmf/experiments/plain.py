"""Findings as values that JSON has, so that a file gives back exactly what was put into it."""

import math
from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """Return NumPy's numbers and arrays as Python's, and what is not finite as None.

    Raises
    ------
    TypeError
        If there is something in it that JSON has no word for.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"errors": np.array([0.5, np.nan]), "n": np.int64(3)})
    {'errors': [0.5, None], 'n': 3}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(
        f"A measure found {value!r}, which cannot be kept in a file: let it return numbers, words, "
        "and lists and mappings of them."
    )
