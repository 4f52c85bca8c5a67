"""Features as every label method wants them, and sentences for those that cannot be used."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from marginmf._indicators import column_names
from marginmf._typing import Array
from marginmf.labels.features import with_small_indices

#: Larger values are refused: their squares, summed over rows and features, would overflow.
LARGEST = 1e100


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
    return with_small_indices(features)


def check_none_missing(y: Any) -> None:
    """Refuse a vector of classes in which one is missing, before anything tries to compare it.

    >>> check_none_missing(["rock", None])
    Traceback (most recent call last):
    ...
    ValueError: y has no value in row 1; leave out rows whose class is not known.
    """
    if y is None or issparse(y):
        return
    try:
        values = np.asarray(y)
    except ValueError:  # rows of different lengths: scikit-learn says so
        return
    if values.ndim != 1 or values.dtype.kind != "O":
        return
    for row, value in enumerate(values):
        if _is_missing(value):
            raise ValueError(
                f"y has no value in row {row}; leave out rows whose class is not known."
            )


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN, and nothing else, differs from itself
    except (TypeError, ValueError):  # pandas.NA refuses to say
        return True


def label_names(y: Any) -> list[str] | None:
    """Return the column names of a data frame of labels, else None.

    >>> import pandas as pd
    >>> label_names(pd.DataFrame({"rock": [0, 1], "jazz": [1, 1]}))
    ['rock', 'jazz']
    """
    columns = column_names(y)
    return columns if columns and all(isinstance(name, str) for name in columns) else None


def _check_finite(values: Array, place: Any, estimator: Any) -> None:
    if values.size == 0:
        return
    least, greatest = float(values.min()), float(values.max())
    if max(-least, greatest) <= LARGEST:
        return
    if np.isfinite([least, greatest]).all():
        raise ValueError(
            f"X has values as large as {max(-least, greatest):.3g}, whose squares cannot be added "
            "up; scale the features (sklearn.preprocessing.MaxAbsScaler, or marginmf's Scaled)."
        )
    wrong = np.flatnonzero(~np.isfinite(values.ravel()))
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
