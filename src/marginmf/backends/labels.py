"""What label methods need of a backend: plain functions over arrays, compiled inside.

``n_threads`` shares out rows; it does not change a result.  The compiled functions are in
`marginmf.backends.cpu`, whose modules are imported when one is first needed.
"""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from marginmf._utils.types import BoolArray, Float64Array, FloatArray, IntArray
from marginmf.backends import get_backend
from marginmf.backends.threads import even_bounds, run
from marginmf.losses import RealLoss, TwoLevelLoss
from marginmf.solvers.vectors import Vectors

#: Rows whose overlaps are added up first, whatever the number of threads.
COUNTED_ROWS = 1024
#: Rows and columns of a matrix that are mirrored together, so that both are read from the cache.
TILE = 256


def vectors(n_threads: int = 1) -> Vectors:
    """Return the arithmetic that solvers need, over threads."""
    return get_backend(n_threads=n_threads)


def label_losses(
    indptr: IntArray,
    indices: IntArray,
    scores: FloatArray,
    loss: TwoLevelLoss | RealLoss,
    n_threads: int = 1,
) -> Float64Array:
    """Return the loss of rows with a score for every label; scores become derivatives, in place.

    Row ``i`` has the labels ``indices[indptr[i]:indptr[i + 1]]``, whose target is 1; the target of
    the others is -1.  Scores are in C order; ``indptr`` may be a part of a longer one.
    """
    from marginmf.backends.cpu.losses import for_label_loss

    kernel = for_label_loss(loss)
    losses = np.empty(len(scores))
    bounds = even_bounds(len(scores), n_threads, scores.shape[1])
    run(kernel, bounds, n_threads, indptr, indices, scores, losses)
    return losses


def sparse_times(
    X: csr_array, dense: FloatArray, out: FloatArray | None = None, n_threads: int = 1
) -> FloatArray:
    """Return ``X @ dense`` in the type of ``dense``, written over ``out`` where that is given."""
    from marginmf.backends.cpu.linear_algebra import add_sparse_product

    dense = np.ascontiguousarray(dense)
    if out is None:
        out = np.empty((X.shape[0], dense.shape[1]), dense.dtype)
    out[:] = 0
    add_sparse_product(X, X.data.astype(dense.dtype, copy=False), dense, out, n_threads)
    return out


def upper_gram(
    X: csr_array, n_rows: int, n_threads: int = 1
) -> Iterator[tuple[slice, Float64Array]]:
    """Yield ``X^T X``, n rows at a time, zero to the left of its diagonal.

    Sums are in float64.  The rows are in memory that is used again for the next ones.
    """
    from marginmf.backends.cpu.linear_algebra import gram_rows

    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    width = X.shape[1]
    # The positions of each column's entries among those of X.
    positions = csr_array((np.arange(X.nnz, dtype=X.indices.dtype), X.indices, X.indptr), X.shape)
    columns = positions.tocsc()
    buffer = np.empty((min(n_rows, width), width))
    for first in range(0, width, n_rows):
        rows = slice(first, min(first + n_rows, width))
        product = buffer[: rows.stop - first]
        by_column = columns.indptr[first : rows.stop + 1]
        work = max(1, X.nnz // max(1, X.shape[0]))
        run(
            *(gram_rows, even_bounds(len(product), n_threads, work * width), n_threads),
            *(X.indptr, X.indices, X.data),
            *(by_column, columns.indices, columns.data, product),
        )
        yield rows, product


def mirror(matrix: FloatArray) -> None:
    """Copy what is above the diagonal of a square matrix to where it belongs below."""
    for start in range(0, len(matrix), TILE):
        rows = slice(start, start + TILE)
        for first in range(0, start, TILE):
            columns = slice(first, first + TILE)
            matrix[rows, columns] = matrix[columns, rows].T
        block = matrix[rows, rows]
        below = np.tril_indices(len(block), -1)
        block[below] = block.T[below]


def count_above(
    scores: FloatArray,
    present: BoolArray,
    top1: bool,
    candidates: Float64Array,
    cells: IntArray,
    scale: float,
    n_threads: int = 1,
) -> tuple[IntArray, IntArray, Float64Array]:
    """Count, for every label, how many of the candidate thresholds its scores are above.

    Candidates ascend; ``cells[c]`` of them have ``int((candidate - candidates[0]) * scale) < c``.
    With ``top1``, each row's best label counts as above all candidates.

    Returns ``predicted`` and ``right`` of shape (n_labels, n_candidates + 1): how many rows have a
    score above exactly k candidates, and how many of those have the label; and ``overlaps`` of
    shape (2, n_candidates): for each candidate the sums over rows of the Jaccard index and of F1 of
    their labels and those above it (0 for two empty sets).
    """
    from marginmf.backends.cpu import ranking

    scores, present = np.ascontiguousarray(scores, np.float64), np.ascontiguousarray(present)
    blocks = np.append(np.arange(0, len(scores), COUNTED_ROWS), len(scores))
    # Counts are exact in any order, so each thread has its own; overlaps are added block by block.
    n_shares = max(1, min(n_threads, len(blocks) - 1))
    shares = np.linspace(0, len(blocks) - 1, n_shares + 1).astype(np.int64)
    counts = np.zeros((n_shares, 2, scores.shape[1], len(candidates) + 1), np.int64)
    overlaps = np.zeros((len(blocks) - 1, 2, len(candidates)))

    def task(share: int, _: int) -> None:
        for block in range(shares[share], shares[share + 1]):
            ranking.count_above(
                *(blocks[block], blocks[block + 1], scores, present, top1),
                *(candidates, cells, scale, *counts[share], overlaps[block]),
            )

    run(task, np.arange(n_shares + 1), n_threads)
    predicted, right = counts.sum(axis=0)
    return predicted, right, overlaps.sum(axis=0)


def adam_rows(
    rows: IntArray,
    gradient: Float64Array,
    weights: Float64Array,
    means: Float64Array,
    squares: Float64Array,
    steps: IntArray,
    length: float,
) -> None:
    """Take a step of Adam on some rows of the weights, in place.

    ``means`` and ``squares`` are the running averages of the gradient and of its squares;
    ``steps`` is how often each row was stepped on.
    """
    from marginmf.backends.cpu import networks

    networks.adam_rows(rows, gradient, weights, means, squares, steps, length)


def sgd_epoch(
    order: IntArray,
    X: csr_array,
    Y: csr_array,
    layers: tuple[Float64Array, Float64Array],
    rate: float,
    decay: float,
) -> float:
    """Change the layers of a network in place, row by row; return the sum of the rows' losses.

    See `marginmf.labels.baselines.network`.  Every row of the order must have a pair of labels.
    """
    from marginmf.backends.cpu import networks

    rows, labels = (X.indptr, X.indices, X.data), (Y.indptr, Y.indices)
    return float(networks.sgd_epoch(order, *rows, *labels, *layers, rate, decay))
