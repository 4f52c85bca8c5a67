"""The compiled function behind ``X^T X`` of sparse features, which label methods are made of.

It keeps the rules of `marginmf.backends.compiled`.
"""

from marginmf.backends.passes import _kernel


@_kernel
def gram_rows(start, stop, indptr, indices, values, by_column, rows, places, out):
    """Fill rows of ``out`` with the upper triangle of ``X^T X``; the rest of them becomes zero.

    Column ``j`` of X has the entries ``by_column[j]:by_column[j + 1]`` in the order of its rows:
    entry ``t`` is in row ``rows[t]``, at ``places[t]`` of the arrays of X.
    """
    for j in range(start, stop):
        total = out[j]
        total[:] = 0
        for t in range(by_column[j], by_column[j + 1]):
            first = places[t]
            value = total.dtype.type(values[first])
            # Columns ascend within a row: those from here on are to the right of the diagonal.
            for k in range(first, indptr[rows[t] + 1]):
                total[indices[k]] += value * values[k]
