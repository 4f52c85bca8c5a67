"""The compiled functions behind baselines that pass over the ratings again and again.

These are multiplicative updates, epochs of stochastic gradient descent, and the covariances of
Gaussian processes: their slopes, and what they predict.
"""

import numpy as np

from marginmf.backends.cpu.compiling import inline, kernel

#: Factors that are zero stay zero under multiplication: they are kept above this.
LEAST_FACTOR = 1e-12
#: Divisors are kept above this.
TINY = 1e-300


@kernel(error_model="numpy")  # a check for zero divisors would keep it from being vector code
def multiply_rows(
    start, stop, indptr, indices, targets, given, reg, divergence, n_passes, tol, rows, losses
):
    """Take multiplicative steps (Lee and Seung, 2001) towards the minimum of every row's loss.

    The loss is half the squared error or, with ``divergence``, the generalised Kullback-Leibler
    divergence; the penalty on a row u is ``reg/2 |u|^2``, or ``reg`` times the sum of u.  A step
    multiplies u by the negative part of the gradient over its positive part, which minimises
    a function that lies above the objective and touches it at u, so no step raises the objective.
    A row takes n steps, or fewer: the last is one that changes it by less than the share ``tol`` of
    its sum.  ``losses`` gets those before the last step, without the penalty.  Rows without ratings
    stay.
    """
    n_factors = rows.shape[1]
    above, below = np.empty(n_factors), np.empty(n_factors)
    for i in range(start, stop):
        row, loss = rows[i], 0.0
        if indptr[i] == indptr[i + 1]:
            losses[i] = 0.0
            continue
        for _ in range(n_passes):
            loss = 0.0
            for p in range(n_factors):
                above[p] = 0.0
                below[p] = reg if divergence else reg * row[p]
            for k in range(indptr[i], indptr[i + 1]):
                other, target, score = given[indices[k]], targets[k], 0.0
                for p in range(n_factors):
                    score += row[p] * other[p]
                score = max(score, TINY)
                up, down = target, score
                if divergence:
                    up, down = target / score, 1.0
                    loss += score - target
                    if target > 0.0:
                        loss += target * np.log(up)
                else:
                    loss += 0.5 * (target - score) * (target - score)
                for p in range(n_factors):
                    above[p] += up * other[p]
                    below[p] += down * other[p]
            change, total = 0.0, 0.0
            for p in range(n_factors):
                updated = max(row[p] * above[p] / max(below[p], TINY), LEAST_FACTOR)
                change += abs(updated - row[p])
                total += updated
                row[p] = updated
            if change < tol * total:
                break
        losses[i] = loss


@kernel
def sgd_epoch(order, rows, columns, targets, rate, reg, U, V):
    """Step along the gradient of one rating's ``(e^2 + reg |parameters|^2) / 2`` after the other.

    The score of a rating is the product of a row of U and one of V, of which the last numbers are
    biases: these are added.
    """
    n_factors = U.shape[1] - 1
    kind = U.dtype.type
    shrink, rate = kind(1.0 - rate * reg), kind(rate)
    for k in order:
        u, v = U[rows[k]], V[columns[k]]
        score = u[n_factors] + v[n_factors]
        for p in range(n_factors):
            score += u[p] * v[p]
        step = rate * (targets[k] - score)
        for p in range(n_factors):
            own = u[p]
            u[p] = shrink * own + step * v[p]
            v[p] = shrink * v[p] + step * own
        u[n_factors] = shrink * u[n_factors] + step
        v[n_factors] = shrink * v[n_factors] + step


@kernel
def squared_errors(start, stop, indptr, indices, targets, U, V, out):
    """Fill ``out`` with every row's sum of squared errors; see `sgd_epoch`."""
    n_factors = U.shape[1] - 1
    for i in range(start, stop):
        u, total = U[i], 0.0
        for k in range(indptr[i], indptr[i + 1]):
            v = V[indices[k]]
            score = u[n_factors] + v[n_factors]
            for p in range(n_factors):
                score += u[p] * v[p]
            error = np.float64(targets[k] - score)
            total += error * error
        out[i] = total


@inline
def exponential(x):
    """Return exp(x) of a number that is not above zero, with an error below 2e-13.

    As a share of exp(x) the error is below 2e-13 down to x = -5, 1e-9 down to -30 and 2e-6 down to
    -100; below that the answer is exp(-100).  It is a series of exp(x / 1024), to the power of
    1024: unlike the function of the C library, that becomes vector code, which takes a seventh of
    the time.
    """
    y = max(x, -100.0) * (1.0 / 1024.0)
    value = 1.0 + y * (1.0 / 5.0)
    value = 1.0 + y * (1.0 / 4.0) * value
    value = 1.0 + y * (1.0 / 3.0) * value
    value = 1.0 + y * (1.0 / 2.0) * value
    value = 1.0 + y * value
    for _ in range(10):
        value *= value
    return value


@inline
def fill_rbf(point, points, first, width, signal, out):
    """Fill ``out`` with ``signal exp(-width/2 d)``, d the squared distances from a point.

    ``points`` has a row for each coordinate; those before the first are left out.
    """
    n_factors, n = points.shape
    out[first:n] = 0.0
    for p in range(n_factors):
        for j in range(first, n):
            out[j] += (point[p] - points[p, j]) * (point[p] - points[p, j])
    for j in range(first, n):
        out[j] = signal * exponential(-0.5 * width * out[j])


@kernel(error_model="numpy")
def fill_covariance(points, width, signal, bias, noise, rbf, covariance):
    """Fill the upper triangles of the covariance of ratings at points, and of its first part.

    That part is ``signal exp(-width/2 d)``, d the squared distances; see `fill_rbf`.
    """
    n_factors, n = points.shape
    own = np.empty(n_factors)
    for i in range(n):
        row = rbf[i]
        for p in range(n_factors):
            own[p] = points[p, i]
        fill_rbf(own, points, i, width, signal, row)
        for j in range(i, n):
            covariance[i, j] = row[j] + bias
        covariance[i, i] = signal + bias + noise


# Sums are not reordered.  Next to a buffer that is written they were reordered or not by where the
# arrays lay in memory, so that the same fit had other bits each time; it saved no time.
@kernel(error_model="numpy", fastmath={"contract", "nsz"})
def covariance_slopes(points, width, rbf, inverse, weights, slopes, sums):
    """Fill in the derivatives of a Gaussian process's log-likelihood by its points and parameters.

    With K the covariance and z the ratings, ``weights`` are ``a = K^-1 z``; of ``rbf`` and of
    ``inverse``, which is K^-1, the upper triangles are there.  The derivative by K is
    ``G = (a a^T - K^-1) / 2``; with ``W = G * rbf``, ``sums`` are those of W, of W times the
    squared distances, of G, and of the diagonal of G.
    """
    n_factors, n = points.shape
    of_signal, of_width, of_all, of_diagonal = 0.0, 0.0, 0.0, 0.0
    parts = np.empty(n)
    slopes[:] = 0.0
    for i in range(n):
        weight = weights[i]
        for j in range(i + 1, n):
            slope = weight * weights[j] - inverse[i, j]  # of both triangles
            parts[j] = slope * rbf[i, j]
            of_all += slope
            of_signal += parts[j]
        for p in range(n_factors):
            own, total = points[p, i], 0.0
            for j in range(i + 1, n):
                distance = own - points[p, j]
                change = parts[j] * distance
                of_width += change * distance
                total += change
                slopes[p, j] += width * change
            slopes[p, i] -= width * total
        slope = 0.5 * (weight * weight - inverse[i, i])
        of_all += slope
        of_diagonal += slope
        of_signal += slope * rbf[i, i]
    sums[0], sums[1], sums[2], sums[3] = of_signal, of_width, of_all, of_diagonal


@inline
def subtract_columns(x, c, n):
    """Subtract from the end of x eight columns, times the eight numbers before that end."""
    a0, a1, a2, a3, a4, a5, a6, a7 = x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
    c0, c1, c2, c3, c4, c5, c6, c7 = c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
    for i in range(8, n):
        x[i] -= ((c0[i] * a0 + c1[i] * a1) + (c2[i] * a2 + c3[i] * a3)) + (
            (c4[i] * a4 + c5[i] * a5) + (c6[i] * a6 + c7[i] * a7)
        )


@inline
def solve_lower(factor, rows, n_rows):
    """Solve ``L x = row`` in place for each of the rows, eight columns of L at a time."""
    n = len(factor)
    for k in range(0, n - n % 8, 8):
        for t in range(n_rows):
            x = rows[t]
            for a in range(k, k + 8):
                x[a] /= factor[a, a]
                for b in range(a + 1, k + 8):
                    x[b] -= factor[a, b] * x[a]
            subtract_columns(x[k:], factor[k : k + 8, k:], n - k)
    for k in range(n - n % 8, n):
        for t in range(n_rows):
            x = rows[t]
            x[k] /= factor[k, k]
            for i in range(k + 1, n):
                x[i] -= factor[k, i] * x[k]


#: Points that pass over a factor together: it is read from memory once for all of them.
POINTS_AT_A_TIME = 16


@kernel(error_model="numpy")
def predict_points(points, factor, weights, width, signal, bias, new, means, variances):
    """Fill in means and variances of a Gaussian process at new points, a row each.

    ``factor[k, i]`` is ``L[i, k]`` of the Cholesky factor of the given points' covariance; where it
    is empty, there are means alone.  Every new point is treated by itself, in the same order of
    operations whatever the others are.
    """
    n = points.shape[1]
    known = np.empty((POINTS_AT_A_TIME, n))
    for first in range(0, len(new), POINTS_AT_A_TIME):
        size = min(POINTS_AT_A_TIME, len(new) - first)
        for t in range(size):
            row, mean = known[t], 0.0
            fill_rbf(new[first + t], points, 0, width, signal, row)
            for i in range(n):
                row[i] += bias
            for i in range(n):
                mean += row[i] * weights[i]
            means[first + t] = mean
        if len(factor) == 0:
            continue
        solve_lower(factor, known, size)
        for t in range(size):
            row, explained = known[t], 0.0
            for i in range(n):
                explained += row[i] * row[i]
            variances[first + t] = signal + bias - explained


@kernel(error_model="numpy")
def predictive_slopes(points, factor, weights, width, signal, bias, new, slopes):
    """Fill in the derivatives by the new points of means (first) and variances."""
    n_factors, n = points.shape
    known, solved = np.empty(n), np.empty((1, n))
    for t in range(len(new)):
        own = new[t]
        fill_rbf(own, points, 0, width, signal, known)
        x = solved[0]
        for i in range(n):
            x[i] = known[i] + bias
        solve_lower(factor, solved, 1)
        for k in range(n - 1, -1, -1):
            total, column = x[k], factor[k]
            for i in range(k + 1, n):
                total -= column[i] * x[i]
            x[k] = total / column[k]
        for p in range(n_factors):
            of_mean, of_variance = 0.0, 0.0
            for i in range(n):
                change = -width * known[i] * (own[p] - points[p, i])
                of_mean += weights[i] * change
                of_variance -= 2.0 * x[i] * change
            slopes[t, 0, p], slopes[t, 1, p] = of_mean, of_variance
