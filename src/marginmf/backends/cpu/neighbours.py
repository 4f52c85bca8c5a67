"""The compiled functions behind item-item weights: neighbours, ridge regressions, and scores.

All of them work on who has what, in rows of users and in rows of items; every row of a result is
found by itself, so results do not depend on how rows are shared among threads.
"""

import numpy as np

from marginmf.backends.cpu.compiling import inline, kernel


@inline
def _farther(values, items, a, b):
    """Whether an entry of a heap has a lower value than another, or a higher item at the same."""
    return values[a] < values[b] or (values[a] == values[b] and items[a] > items[b])


@inline
def _sift(values, items, size):
    """Move the root of a heap down until both its children are nearer."""
    position = 0
    while True:
        child = 2 * position + 1
        if child >= size:
            return
        if child + 1 < size and _farther(values, items, child + 1, child):
            child += 1
        if not _farther(values, items, child, position):
            return
        values[position], values[child] = values[child], values[position]
        items[position], items[child] = items[child], items[position]
        position = child


@kernel
def nearest(
    start, stop, targets, indptr, indices, item_indptr, item_indices, scales, near, shared, table
):
    """Fill rows of ``near`` with the items that share most users with each of some targets.

    ``shared`` gets how many users they share, and ``table``, where it has a row for each item, how
    many the target shares with all items.  An item's count is multiplied by its scale before
    items are compared; of equal ones the lower number is nearer.  Rows are in the order of items,
    with -1 behind where fewer items share any user.
    """
    n_items, k = len(item_indptr) - 1, near.shape[1]
    counts, touched = np.zeros(n_items, np.int32), np.empty(n_items, np.int32)
    values, items = np.empty(k, np.float64), np.empty(k, np.int32)
    for row in range(start, stop):
        target, n_touched, size = targets[row], 0, 0
        for position in range(item_indptr[target], item_indptr[target + 1]):
            user = item_indices[position]
            for entry in range(indptr[user], indptr[user + 1]):
                item = indices[entry]
                if counts[item] == 0:
                    touched[n_touched] = item
                    n_touched += 1
                counts[item] += 1
        found = np.sort(touched[:n_touched])
        for item in found:
            if item == target:
                continue
            value = counts[item] * scales[item]
            if size < k:
                # Rise from the end; the farthest item is at the root.
                position = size
                values[position], items[position] = value, item
                while position > 0 and _farther(values, items, position, (position - 1) // 2):
                    above = (position - 1) // 2
                    values[position], values[above] = values[above], values[position]
                    items[position], items[above] = items[above], items[position]
                    position = above
                size += 1
            elif value > values[0]:
                values[0], items[0] = value, item
                _sift(values, items, size)
        if len(table) > 0:
            for item in found:
                table[target, item] = counts[item]
        chosen = np.sort(items[:size])
        near[row, :size], near[row, size:], shared[row, size:] = chosen, -1, 0
        for position in range(size):
            shared[row, position] = counts[chosen[position]]
        for item in found:
            counts[item] = 0


@inline
def _solve(gram, right, strength, factor, out):
    """Solve ``(gram + strength I) out = right`` by Cholesky's method; ``gram`` is a lower half."""
    n = len(right)
    for i in range(n):
        row = factor[i]
        for j in range(i):
            other = factor[j]
            total = gram[i, j]
            for k in range(j):
                total -= row[k] * other[k]
            row[j] = total / other[j]
        total = gram[i, i] + strength
        for k in range(i):
            total -= row[k] * row[k]
        row[i] = np.sqrt(total)
        total = right[i]
        for k in range(i):
            total -= row[k] * out[k]
        out[i] = total / row[i]
    for i in range(n - 1, -1, -1):
        out[i] /= factor[i, i]
        for k in range(i):
            out[k] -= factor[i, k] * out[i]


@kernel
def ridge_weights(
    start, stop, near, shared, table, n_users, item_indptr, item_indices, strength, weights
):
    """Fill rows of ``weights`` with the regressions of their targets on the neighbours.

    That is ridge regression of who has the target on who has which of them.  How many users two
    neighbours share is looked up in ``table``, or, where that is empty, counted here with a list of
    neighbours for each user, so that there need not be a matrix of all items.
    """
    k = near.shape[1]
    gram, factor = np.zeros((k, k)), np.empty((k, k))
    right, out = np.empty(k), np.empty(k)
    # The neighbours that a user has, as a chain: the last of them, and for each the one before.
    last = np.full(n_users, -1, np.int32)
    n_entries = 0
    for row in range(start, stop if len(table) == 0 else start):
        entries = 0
        for a in range(k):
            if near[row, a] >= 0:
                item = near[row, a]
                entries += item_indptr[item + 1] - item_indptr[item]
        n_entries = max(n_entries, entries)
    before, whose = np.empty(n_entries, np.int32), np.empty(n_entries, np.int32)
    for row in range(start, stop):
        size = 0
        while size < k and near[row, size] >= 0:
            size += 1
        for a in range(size):
            right[a] = shared[row, a]
        if len(table) > 0:
            for a in range(size):
                counts = table[near[row, a]]
                for b in range(a + 1):
                    gram[a, b] = counts[near[row, b]]
        else:
            gram[:size, :size] = 0
            entry = 0
            for a in range(size):
                item = near[row, a]
                gram[a, a] = item_indptr[item + 1] - item_indptr[item]
                for position in range(item_indptr[item], item_indptr[item + 1]):
                    user = item_indices[position]
                    link = last[user]
                    before[entry], whose[entry] = link, a
                    while link >= 0:
                        gram[a, whose[link]] += 1
                        link = before[link]
                    last[user] = entry
                    entry += 1
            for a in range(size):
                item = near[row, a]
                for position in range(item_indptr[item], item_indptr[item + 1]):
                    last[item_indices[position]] = -1
        _solve(gram, right[:size], strength, factor, out)
        weights[row, :size], weights[row, size:] = out[:size], 0


@kernel
def add_weights(start, stop, users, indptr, indices, by_source, targets, weights, first, out):
    """Add to the scores of a block what the items that users have say of the block's columns.

    Row ``i`` of the weights, in compressed form, is what having item ``i`` adds to the scores of
    its targets.  Column ``j`` of the block is target ``first + j``; user -1 has nothing.
    """
    n_columns = out.shape[1]
    for row in range(start, stop):
        if users[row] < 0:
            continue
        own = out[row]
        for entry in range(indptr[users[row]], indptr[users[row] + 1]):
            begin, end = by_source[indices[entry]], by_source[indices[entry] + 1]
            if first > 0:
                begin += np.searchsorted(targets[begin:end], first)
            for position in range(begin, end):
                column = targets[position] - first
                if column >= n_columns:
                    break
                own[column] += weights[position]


@kernel
def add_dense_weights(start, stop, users, indptr, indices, by_source, first, out):
    """Do what `add_weights` does, with a dense matrix of weights."""
    n_columns = out.shape[1]
    for row in range(start, stop):
        if users[row] < 0:
            continue
        own = out[row]
        for entry in range(indptr[users[row]], indptr[users[row] + 1]):
            weights = by_source[indices[entry], first : first + n_columns]
            for column in range(n_columns):
                own[column] += weights[column]


@kernel
def dense_pair_scores(users, items, indptr, indices, weights, out):
    """Do what `pair_scores` does, with a dense matrix of weights."""
    for pair in range(len(users)):
        user, own, total = users[pair], weights[items[pair]], 0.0
        if user >= 0:
            for entry in range(indptr[user], indptr[user + 1]):
                total += own[indices[entry]]
        out[pair] = total


@kernel
def pair_scores(users, items, indptr, indices, n_sources, by_target, sources, weights, out):
    """Fill ``out`` with scores of pairs: the sum of an item's weights over what a user has."""
    has = np.zeros(n_sources, np.bool_)
    previous = -1
    for pair in range(len(users)):
        user, item = users[pair], items[pair]
        if user != previous:
            if previous >= 0:
                has[indices[indptr[previous] : indptr[previous + 1]]] = False
            if user >= 0:
                has[indices[indptr[user] : indptr[user + 1]]] = True
            previous = user
        total = 0.0
        if user >= 0:
            for position in range(by_target[item], by_target[item + 1]):
                if has[sources[position]]:
                    total += weights[position]
        out[pair] = total
