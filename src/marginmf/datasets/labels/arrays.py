"""Label sets as arrays: ``.npz`` files, the form of a data folder, and ``.mat`` files of MATLAB.

In an ``.npz`` file, features are ``X``, or ``X_data``, ``X_indices``, ``X_indptr`` and ``X_shape``
where they are sparse; labels are ``Y_data`` and so on; ``label_names``, ``feature_names``,
``train_idx``, ``test_idx`` and ``source`` where there are any. Nothing is pickled, so a malicious
file cannot run anything.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io, sparse

from marginmf._utils.files import atomic_write
from marginmf._utils.npz import load_arrays
from marginmf._utils.sparse import check_sparse
from marginmf._utils.types import Array
from marginmf.datasets.files.source import Source, first_reason
from marginmf.datasets.labels.columns import quote_names, refuse_duplicates
from marginmf.datasets.labels.table import (
    LabelsTable,
    all_finite,
    check_width,
    compress_features,
    stack_parts,
)
from marginmf.datasets.table import SPLITS

PARTS = ("data", "indices", "indptr", "shape")
MARK = b"MATLAB 5.0 MAT-file"
NEW_MARKS = (b"MATLAB 7.3 MAT-file", b"\x89HDF\r\n\x1a\n")
FEATURES = ("data", "x", "features", "fea", "instances", "dataset")
LABELS = ("target", "targets", "y", "labels", "label", "gnd")

#: Features and labels, which may be either way up.
Pair = tuple[Any, Any]


def write_labels_npz(table: LabelsTable, path: Path) -> None:
    """Write a table; the file appears whole or not at all."""
    arrays: dict[str, Array] = {
        "label_names": np.array(table.label_names, dtype=np.str_),
        "source": np.array(table.source),
    }
    arrays |= taken_apart("X", table.X) if sparse.issparse(table.X) else {"X": table.X}
    arrays |= taken_apart("Y", table.Y.astype(np.uint8))
    for key in SPLITS:
        if getattr(table, key) is not None:
            arrays[key] = getattr(table, key)
    if table.feature_names is not None:
        arrays["feature_names"] = np.array(table.feature_names, dtype=np.str_)
    with atomic_write(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def read_labels_npz(source: Source, name: str, needs_labels: bool = True) -> LabelsTable:
    """Read a table, or raise an error that tells what is wrong with the file."""
    where = source.where
    with source.open() as file:
        try:
            arrays = load_arrays(file)
        except Exception as error:  # a damaged file can fail anywhere in zipfile, zlib or NumPy
            raise ValueError(
                f"{where} is not an npz file of arrays, or is damaged ({first_reason(error)}); "
                f"fetch or write it again."
            ) from error
    try:
        return _make_table(arrays, where, name, needs_labels)
    except (ValueError, TypeError, IndexError) as error:
        problem = f"does not hold a label dataset: {first_reason(error)}"
        raise ValueError(f"{where} {problem}.") from error


def _make_table(
    arrays: Mapping[str, Array], where: str, name: str, needs_labels: bool
) -> LabelsTable:
    X = _read_matrix(arrays, "X")
    without = not needs_labels and not {"Y", "Y_data"} & arrays.keys()
    Y = sparse.csr_array((X.shape[0], 0)) if without else _read_matrix(arrays, "Y")
    if not all_finite(X):
        raise ValueError("the features are not all finite numbers; correct them")
    features, labels = (
        _read_names(arrays, what, matrix) for what, matrix in (("feature", X), ("label", Y))
    )
    refuse_duplicates(enumerate(features, 1), "its names", "features")
    refuse_duplicates(enumerate(labels, 1), "its names", "labels")
    splits: dict[str, Any] = {part: arrays.get(part) for part in SPLITS}
    named = features if "feature_names" in arrays else None
    about = str(arrays.get("source", f"read from {where}"))
    return LabelsTable(name, X, Y, named, labels, source=about, **splits)


def _read_names(arrays: Mapping[str, Array], what: str, matrix: Any) -> tuple[str, ...]:
    """Return the names of columns; none where the file has none."""
    names = arrays.get(f"{what}_names", np.empty(0, np.str_))
    # Compared before any of them is made a text, because names may be far more than columns.
    if names.size and names.shape != matrix.shape[1:]:
        n = " by ".join(f"{n:,}" for n in names.shape) or "1"
        raise ValueError(f"There are {n} {what} names for {matrix.shape[1]:,} {what}s")
    return tuple(map(str, names))


def taken_apart(letter: str, matrix: Any) -> dict[str, Array]:
    """Return the arrays that a sparse matrix becomes, by their names in a file."""
    parts = (matrix.data, matrix.indices, matrix.indptr, np.array(matrix.shape))
    return {f"{letter}_{part}": array for part, array in zip(PARTS, parts, strict=True)}


def _read_matrix(arrays: Mapping[str, Array], letter: str) -> Any:
    if letter in arrays:
        return arrays[letter]
    keys = [f"{letter}_{part}" for part in PARTS]
    missing = [key for key in keys if key not in arrays]
    if missing:
        there = ", ".join(sorted(arrays))[:200] or "nothing"
        raise ValueError(f"it has neither {letter} nor {missing[0]}, but {there}")
    data, indices, indptr, shape = (arrays[key] for key in keys)
    matrix = sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    check_sparse(matrix, letter)
    check_width(matrix.shape[1], matrix.nnz, f"columns of {letter}")
    return matrix


def looks_like_mat(source: Source) -> bool:
    """Tell whether a file is one of MATLAB, by its content or by its name."""
    return source.head.startswith((MARK, *NEW_MARKS)) or source.path.suffix.lower() == ".mat"


def read_mat(source: Source, needs_labels: bool = True) -> LabelsTable:
    """Read a file of version 4 to 7: ``data`` and ``target``, or ``X`` and ``Y``, or the like.

    ``train_data``, ``train_target``, ``test_data`` and ``test_target`` become the training rows,
    then the test rows.
    """
    where = source.where
    if source.head.startswith(NEW_MARKS):
        raise ValueError(
            f"{where} is a MATLAB file of version 7.3, which is not read; save it again with "
            f"save(..., '-v7'), or export it as CSV."
        )
    try:
        with source.open() as file:
            loaded = io.loadmat(file)
    except Exception as error:  # a damaged file can fail anywhere in SciPy
        raise ValueError(
            f"{where} is not a MATLAB file, or is damaged ({first_reason(error)}); fetch or write "
            f"it again."
        ) from error
    named = {name.lower(): value for name, value in loaded.items() if not name.startswith("__")}
    matrices = {name: value for name, value in named.items() if getattr(value, "ndim", 0) == 2}
    prefixes = [prefix for prefix in ("train_", "test_") if f"{prefix}data" in matrices] or [""]
    pairs = [_read_pair(matrices, prefix, where, needs_labels) for prefix in prefixes]
    about = f"read from {where}"
    tables = [
        LabelsTable(source.path.stem, X, Y if needs_labels else Y[:, :0], source=about)
        for X, Y in _orient(pairs, where)
    ]
    return stack_parts(*tables)


def _read_pair(matrices: Mapping[str, Any], prefix: str, where: str, needs_labels: bool) -> Pair:
    X = _find_matrix(matrices, prefix, FEATURES, "features", where)
    if not all_finite(X):
        raise ValueError(f"{where}: the features are not all finite numbers; correct them.")
    X = X if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    if not needs_labels:  # the labels are not read, but their shape tells how to turn the features
        shapes = (matrices[prefix + name].shape for name in LABELS if prefix + name in matrices)
        fitting = (shape for shape in shapes if {*shape} & {*X.shape})
        return X, sparse.csr_array(next(fitting, (X.shape[0], 0)))
    Y = _find_matrix(matrices, prefix, LABELS, "labels", where)
    Y = Y.toarray() if sparse.issparse(Y) else np.asarray(Y)
    if Y.dtype.kind not in "fiub":
        raise ValueError(f"{where}: the labels are no numbers; labels are 0 and 1, or -1 and 1.")
    values = np.unique(Y.astype(np.float64))
    if not any(np.isin(values, known).all() for known in ((0, 1), (-1, 1))):
        raise ValueError(
            f"{where}: the labels have the values {quote_names(values.tolist())}; labels are 0 and "
            f"1, or -1 and 1."
        )
    return X, sparse.csr_array((Y == 1).astype(np.int8))


def _find_matrix(
    matrices: Mapping[str, Any], prefix: str, names: tuple[str, ...], what: str, where: str
) -> Any:
    for name in names:
        if prefix + name in matrices:
            return matrices[prefix + name]
    raise ValueError(
        f"{where} has no matrix of {what}: none of its matrices, {quote_names(sorted(matrices))}, "
        f"is called {quote_names([prefix + name for name in names])}; rename it in MATLAB."
    )


def _orient(pairs: list[Pair], where: str) -> list[Pair]:
    """Return pairs whose matrices have a row for each sample, all transposed alike if need be."""
    for turn_X, turn_Y in ((False, False), (False, True), (True, False), (True, True)):
        turned = [(X.T if turn_X else X, Y.T if turn_Y else Y) for X, Y in pairs]
        widths = {(X.shape[1], Y.shape[1]) for X, Y in turned}
        if len(widths) == 1 and all(X.shape[0] == Y.shape[0] for X, Y in turned):
            return [
                (X if sparse.issparse(X) else compress_features(np.ascontiguousarray(X)), Y)
                for X, Y in turned
            ]
    X, Y = (f"{matrix.shape[0]:,} by {matrix.shape[1]:,}" for matrix in pairs[0])
    raise ValueError(
        f"{where}: the features are {X} and the labels {Y}, which have no number of rows in "
        f"common; correct it."
    )
