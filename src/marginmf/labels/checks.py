"""Features as every label method wants them, and sentences for those that cannot be used."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from marginmf._typing import Array


def as_features(X: Any, estimator: Any) -> Any:
    """Return a dense C-ordered array or a `csr_array` in order; refuse what is not finite.

    What was given is not changed.
    """
    if not issparse(X):
        _check_finite(X, lambda flat: (flat // X.shape[1], flat % X.shape[1]), estimator)
        return X
    features = csr_array(X)
    if not features.has_canonical_format:
        features = features.copy()
        features.sum_duplicates()
    _check_finite(features.data, lambda flat: _place(features, flat), estimator)
    return features


def label_names(y: Any) -> list[str] | None:
    """Return the column names of a data frame of labels, else None.

    >>> import pandas as pd
    >>> label_names(pd.DataFrame({"rock": [0, 1], "jazz": [1, 1]}))
    ['rock', 'jazz']
    """
    columns = getattr(y, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return list(columns)


def _check_finite(values: Array, place: Any, estimator: Any) -> None:
    # The sum of finite numbers is finite unless it overflows, and it needs no second array.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    wrong = np.flatnonzero(~np.isfinite(values.ravel()))
    if len(wrong) == 0:
        return
    row, column = place(int(wrong[0]))
    names = getattr(estimator, "feature_names_in_", None)
    shown = f"column {column}" if names is None else f"column {str(names[column])!r}"
    found = values.ravel()[wrong[0]]
    said = "NaN" if np.isnan(found) else str(found)
    raise ValueError(
        f"X has {said} in row {row}, {shown}; {type(estimator).__name__} needs finite numbers: "
        "fill the gaps (sklearn.impute.SimpleImputer) or leave those rows out."
    )


def _place(features: csr_array, flat: int) -> tuple[int, int]:
    row = int(np.searchsorted(features.indptr, flat, side="right")) - 1
    return row, int(features.indices[flat])
