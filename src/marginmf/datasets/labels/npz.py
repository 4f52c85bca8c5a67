"""Label sets as one ``.npz`` file: the form of a data folder.

Features are ``X``, or ``X_data``, ``X_indices``, ``X_indptr`` and ``X_shape`` where they are
sparse; labels are ``Y_data`` and so on; ``label_names``, ``feature_names``, ``train_idx``,
``test_idx`` and ``source`` where there are any. Nothing is pickled, so a file from elsewhere cannot
run anything.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from marginmf._utils.files import atomic_write
from marginmf._utils.types import Array
from marginmf.datasets.labels.columns import refuse_duplicates
from marginmf.datasets.labels.table import LabelsTable, all_finite

PARTS = ("data", "indices", "indptr", "shape")


def write_labels_npz(table: LabelsTable, path: Path) -> None:
    """Write a table; the file appears whole or not at all."""
    arrays: dict[str, Array] = {
        "label_names": np.array(table.label_names, dtype=np.str_),
        "source": np.array(table.source),
    }
    arrays |= taken_apart("X", table.X) if sparse.issparse(table.X) else {"X": table.X}
    arrays |= taken_apart("Y", table.Y.astype(np.uint8))
    for key in ("train_idx", "test_idx"):
        if getattr(table, key) is not None:
            arrays[key] = getattr(table, key)
    if table.feature_names is not None:
        arrays["feature_names"] = np.array(table.feature_names, dtype=np.str_)
    with atomic_write(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def read_labels_npz(
    file: BinaryIO, where: str, name: str, needs_labels: bool = True
) -> LabelsTable:
    """Read a table, or raise an error that tells what is wrong with the file."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except Exception as error:  # a damaged file can fail anywhere in zipfile, zlib or NumPy
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(
            f"{where} is not an npz file of arrays, or is damaged ({reason}); fetch or write it "
            f"again."
        ) from error
    try:
        return _make_table(arrays, where, name, needs_labels)
    except (ValueError, TypeError, IndexError) as error:
        reason = str(error).rstrip(".")
        raise ValueError(f"{where} does not hold a label dataset: {reason}.") from error


def _make_table(
    arrays: Mapping[str, Array], where: str, name: str, needs_labels: bool
) -> LabelsTable:
    X = _read_matrix(arrays, "X")
    without = not needs_labels and not {"Y", "Y_data"} & arrays.keys()
    Y = sparse.csr_array((X.shape[0], 0)) if without else _read_matrix(arrays, "Y")
    if not all_finite(X):
        raise ValueError("the features are not all finite numbers; correct them")
    features, labels = (
        tuple(map(str, arrays.get(f"{what}_names", ()))) for what in ("feature", "label")
    )
    for what, names in (("features", features), ("labels", labels)):
        refuse_duplicates(enumerate(names, 1), "its names", what)
    return LabelsTable(
        name,
        X,
        Y,
        feature_names=features if "feature_names" in arrays else None,
        label_names=labels,
        train_idx=arrays.get("train_idx"),
        test_idx=arrays.get("test_idx"),
        source=f"read from {where}",
    )


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
        there = ", ".join(sorted(arrays)) or "nothing"
        raise ValueError(f"it has neither {letter} nor {missing[0]}, but {there}")
    data, indices, indptr, shape = (arrays[key] for key in keys)
    matrix = sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    matrix.check_format(full_check=True)  # an index outside the matrix would be read all the same
    return matrix
