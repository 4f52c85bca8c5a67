"""Read MATLAB files, in which label sets circulate: features and targets as two matrices."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import io, sparse

from marginmf.datasets.files.source import Source
from marginmf.datasets.labels.choice import listed
from marginmf.datasets.labels.table import LabelsTable, joined_features, lean

MARK = b"MATLAB 5.0 MAT-file"
NEW_MARKS = (b"MATLAB 7.3 MAT-file", b"\x89HDF\r\n\x1a\n")
FEATURES = ("data", "x", "features", "fea", "instances", "dataset")
LABELS = ("target", "targets", "y", "labels", "label", "gnd")
PARTS = ("train", "test")


def looks_like_mat(source: Source) -> bool:
    """Tell whether a file is one of MATLAB, by its content or by its name."""
    return source.head.startswith((MARK, *NEW_MARKS)) or source.path.suffix.lower() == ".mat"


def read_mat(source: Source, needs_labels: bool = True) -> LabelsTable:
    """Read a file of version 4 to 7: ``data`` and ``target``, or ``X`` and ``Y``, or the like.

    Labels may be 0 and 1 or -1 and 1, and a row for each sample or a column for each, as in the
    files of ML-kNN. ``train_data``, ``train_target``, ``test_data`` and ``test_target`` become the
    training rows, then the test rows.
    """
    if source.head.startswith(NEW_MARKS):
        raise ValueError(
            f"{source.where} is a MATLAB file of version 7.3, which is not read; save it again "
            f"with save(..., '-v7'), or export it as CSV."
        )
    try:
        with source.open() as file:
            loaded = io.loadmat(file)
    except Exception as error:  # a damaged file can fail anywhere in SciPy
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(
            f"{source.where} is not a MATLAB file, or is damaged ({reason}); fetch or write it "
            f"again."
        ) from error
    found = {
        name.lower(): value
        for name, value in loaded.items()
        if not name.startswith("__") and getattr(value, "ndim", 0) == 2
    }
    where = source.where
    prefixes = [f"{part}_" for part in PARTS if f"{part}_data" in found] or [""]
    parts = _oriented([_part(found, prefix, where, needs_labels) for prefix in prefixes], where)
    X = joined_features([X for X, _ in parts])
    n_train = parts[0][0].shape[0]
    divided = len(parts) == len(PARTS)
    return LabelsTable(
        source.path.stem,
        X,
        sparse.vstack([Y for _, Y in parts], format="csr"),
        train_idx=np.arange(n_train) if divided else None,
        test_idx=np.arange(n_train, X.shape[0]) if divided else None,
        source=f"read from {where}",
    )


Pair = tuple[Any, Any]


def _part(found: Mapping[str, Any], prefix: str, where: str, needs_labels: bool) -> Pair:
    X = _features(_matrix(found, prefix, FEATURES, "features", where), where)
    if not needs_labels:
        return X, sparse.csr_array((X.shape[0], 0))
    return X, _indicators(_matrix(found, prefix, LABELS, "labels", where), where)


def _oriented(parts: list[Pair], where: str) -> list[Pair]:
    """Return parts whose matrices have a row for each sample, turned over where need be.

    All parts are turned alike: one with as many labels as samples does not show which way it is.
    """
    for turn_X, turn_Y in ((False, False), (False, True), (True, False), (True, True)):
        turned = [(X.T if turn_X else X, Y.T if turn_Y else Y) for X, Y in parts]
        widths = {(X.shape[1], Y.shape[1]) for X, Y in turned}
        if len(widths) == 1 and all(X.shape[0] == Y.shape[0] for X, Y in turned):
            return [(_rows(X), sparse.csr_array(Y)) for X, Y in turned]
    X, Y = parts[0]
    raise ValueError(
        f"{where}: the features are {X.shape[0]:,} by {X.shape[1]:,} and the labels "
        f"{Y.shape[0]:,} by {Y.shape[1]:,}, which have no number of rows in common; correct it."
    )


def _rows(X: Any) -> Any:
    return sparse.csr_array(X) if sparse.issparse(X) else lean(np.ascontiguousarray(X))


def _matrix(
    found: Mapping[str, Any], prefix: str, names: tuple[str, ...], what: str, where: str
) -> Any:
    for name in names:
        if prefix + name in found:
            return found[prefix + name]
    raise ValueError(
        f"{where} has no matrix of {what}: none of its matrices, {listed(sorted(found))}, is "
        f"called {listed([prefix + name for name in names])}; rename it in MATLAB."
    )


def _features(X: Any, where: str) -> Any:
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        raise ValueError(f"{where}: the features are not all finite numbers; correct them.")
    return X if sparse.issparse(X) else np.asarray(X, dtype=np.float64)


def _indicators(Y: Any, where: str) -> Any:
    dense = Y.toarray() if sparse.issparse(Y) else np.asarray(Y)
    if dense.dtype.kind not in "fiub":
        raise ValueError(f"{where}: the labels are no numbers; labels are 0 and 1, or -1 and 1.")
    values = np.unique(dense.astype(np.float64))
    for known in ((0.0, 1.0), (-1.0, 1.0)):
        if np.isin(values, known).all():
            return sparse.csr_array((dense == 1).astype(np.int8))
    raise ValueError(
        f"{where}: the labels have the values {listed(values.tolist())}; labels are 0 and 1, or -1 "
        f"and 1."
    )
