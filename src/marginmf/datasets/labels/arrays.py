"""Label sets as arrays in ``.npz`` files, the form of a data folder.

In an ``.npz`` file, features are ``X``, or ``X_data``, ``X_indices``, ``X_indptr`` and ``X_shape``
where they are sparse; labels are ``Y_data`` and so on; ``label_names``, ``feature_names``,
``train_idx``, ``test_idx`` and ``source`` where there are any. Nothing is pickled, so a malicious
file cannot run anything.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from marginmf._utils.files import atomic_write
from marginmf._utils.sparse import check_sparse
from marginmf._utils.types import Array
from marginmf.datasets.files.packed import first_reason, read_arrays
from marginmf.datasets.files.source import Source
from marginmf.datasets.labels.columns import refuse_duplicates
from marginmf.datasets.labels.table import LabelsTable, all_finite, check_width
from marginmf.datasets.table import SPLITS

PARTS = ("data", "indices", "indptr", "shape")


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
        arrays = read_arrays(file, where, source.most)
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
