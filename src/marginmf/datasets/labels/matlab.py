"""Label sets in ``.mat`` files of MATLAB, in the forms in which they circulate.

SciPy loads them in a process of its own (`mat_process`), because a single byte that is wrong can
crash its reader.  What comes back is checked as what any stranger gives.
"""

import io
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from scipy import sparse

from marginmf._utils.npz import load_arrays
from marginmf._utils.printable import printable
from marginmf._utils.sparse import check_sparse
from marginmf.datasets.files.source import Source
from marginmf.datasets.labels import mat_process
from marginmf.datasets.labels.columns import quote_names
from marginmf.datasets.labels.table import (
    LabelsTable,
    all_finite,
    check_width,
    compress_features,
    stack_parts,
)

MARK = b"MATLAB 5.0 MAT-file"
NEW_MARKS = (b"MATLAB 7.3 MAT-file", b"\x89HDF\r\n\x1a\n")
FEATURES = ("data", "x", "features", "fea", "instances", "dataset")
LABELS = ("target", "targets", "y", "labels", "label", "gnd")
#: Seconds that a file may take to load, and how many bytes may take one more.
SECONDS, BYTES_A_SECOND = 60, 2**20
#: Bytes of memory that a small file may take, and how many sizes of itself a large one: most files
#: are compressed.
MOST_BYTES, MOST_SIZES = 2**30, 100
#: What to do with a file that SciPy cannot load within limits.
REMEDY = (
    "if you trust whom it is from, save its matrices where they were made as .npz: "
    "numpy.savez('labels.npz', X=features, Y=labels)"
)

#: Features and labels, which may be either way up.
Pair = tuple[Any, Any]


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
    with source.open() as file:
        matrices = _load(file.read(), where)
    prefixes = [prefix for prefix in ("train_", "test_") if f"{prefix}data" in matrices] or [""]
    pairs = [_read_pair(matrices, prefix, where, needs_labels) for prefix in prefixes]
    about = f"read from {where}"
    tables = [
        LabelsTable(source.path.stem, X, Y if needs_labels else Y[:, :0], source=about)
        for X, Y in _orient(pairs, where)
    ]
    return stack_parts(*tables)


def _load(content: bytes, where: str) -> dict[str, Any]:
    """Return the matrices of a file by their names in lower case; those of no numbers are empty."""
    n_bytes = max(MOST_BYTES, MOST_SIZES * len(content))
    seconds = SECONDS + len(content) // BYTES_A_SECOND
    # Where NumPy and SciPy are, because the process is told nothing of this one's path.
    folders = {str(Path(str(module.__file__)).parents[1]) for module in (np, scipy)}
    command = [sys.executable, "-I", mat_process.__file__, str(n_bytes), str(seconds), *folders]
    try:
        if getattr(sys, "frozen", False) or not sys.executable:
            raise OSError("this program is no interpreter of Python")
        done = subprocess.run(
            command,
            input=content,
            capture_output=True,
            timeout=seconds,
            # The threads of BLAS, which has nothing to do here, would count as memory.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"{where} takes longer than {seconds} s to load; {REMEDY}.") from None
    except OSError as error:
        problem = f"MATLAB files need a Python process of their own, which cannot start ({error})"
        raise ValueError(f"{where} cannot be loaded: {problem}; {REMEDY}.") from error
    if done.returncode == mat_process.TOO_LARGE:
        limit = f"{n_bytes >> 20:,} MiB, which is out of proportion to the file"
        raise ValueError(f"{where} takes more memory than {limit}; {REMEDY}.")
    if done.returncode == mat_process.DAMAGED:
        problem = f"is not a MATLAB file, or is damaged ({_last_line(done.stderr)})"
        raise ValueError(f"{where} {problem}; fetch or write it again.")
    if done.returncode:
        reason = _last_line(done.stderr) or f"exit status {done.returncode}"
        raise ValueError(
            f"{where} is damaged: SciPy crashes on it ({reason}); fetch it again, or, {REMEDY}."
        )
    arrays = load_arrays(io.BytesIO(done.stdout))
    found: dict[str, Any] = {}
    for number, name in enumerate(arrays["names"].tolist()):
        parts = [arrays.get(f"{number} {part}") for part in mat_process.PARTS]
        value = arrays.get(f"{number} dense", np.empty((0, 0), object))
        if parts[0] is not None:
            value = _make_sparse(parts, printable(name), where)
        found[name.lower()] = value
    return found


def _last_line(text: bytes) -> str:
    return text.decode(errors="replace").strip().rpartition("\n")[2][:200]


def _make_sparse(parts: Sequence[Any], name: str, where: str) -> Any:
    """Return a matrix whose entries are inside it, and whose shape is in proportion to them."""
    data, indices, indptr, shape = parts
    try:
        matrix = sparse.csc_array((data, indices, indptr), shape=tuple(shape.tolist()))
        check_sparse(matrix, name)
        for n, what in zip(matrix.shape, ("rows", "columns"), strict=True):
            check_width(n, matrix.nnz, f"{what} of {name}")
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    matrix.sum_duplicates()
    return matrix


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
    if Y.dtype.kind not in "fiub":
        raise ValueError(f"{where}: the labels are no numbers; labels are 0 and 1, or -1 and 1.")
    sparsely = sparse.issparse(Y)
    values = np.unique(Y.data if sparsely else Y).astype(np.float64)
    if sparsely and Y.nnz < Y.shape[0] * Y.shape[1]:
        values = np.union1d(values, 0.0)
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
