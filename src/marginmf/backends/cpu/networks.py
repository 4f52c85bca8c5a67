"""The compiled functions behind networks."""

import numpy as np

from marginmf.backends.cpu.compiling import kernel

#: How much of Adam's averages is kept at each step, and what keeps its divisor above zero.
KEPT_MEAN, KEPT_SQUARE, TINY = 0.9, 0.999, 1e-8
#: Weights are divided by a common factor, which must not become too small.
SMALLEST = 1e-3


@kernel(error_model="numpy")  # a check for zero divisors would keep it from being vector code
def adam_rows(rows, gradient, weights, means, squares, steps, length):
    """Take a step of Adam (Kingma and Ba, 2015, algorithm 1) on some rows, in one pass."""
    for k in range(len(rows)):
        row = rows[k]
        steps[row] += 1
        # The averages began at zero: these correct them.
        mean_factor = length / (1.0 - KEPT_MEAN ** steps[row])
        square_factor = 1.0 / (1.0 - KEPT_SQUARE ** steps[row])
        g, w, m, s = gradient[k], weights[row], means[row], squares[row]
        for p in range(len(g)):
            m[p] = KEPT_MEAN * m[p] + (1.0 - KEPT_MEAN) * g[p]
            s[p] = KEPT_SQUARE * s[p] + (1.0 - KEPT_SQUARE) * g[p] * g[p]
            w[p] -= mean_factor * m[p] / (np.sqrt(square_factor * s[p]) + TINY)


@kernel(error_model="numpy")
def sgd_epoch(order, indptr, indices, data, label_indptr, labels, first, second, rate, decay):
    """Step along the gradient of one row after the other; return the sum of their losses.

    ``first`` and ``second`` are the weights of the two layers, with the intercepts in the last
    row.  Those of the first are divided by ``scale``, so that their decay need not touch them.
    """
    n_hidden, n_outputs = second.shape[0] - 1, second.shape[1]
    hidden, errors = np.empty(n_hidden), np.empty(n_hidden)
    outputs, slopes = np.empty(n_outputs), np.empty(n_outputs)
    present = np.zeros(n_outputs, np.bool_)
    shrink, scale, total = 1.0 - rate * decay, 1.0, 0.0
    for row in order:
        start, stop = indptr[row], indptr[row + 1]
        for p in range(n_hidden):
            hidden[p] = first[-1, p]
        for k in range(start, stop):
            value, weights = data[k], first[indices[k]]
            for p in range(n_hidden):
                hidden[p] += value * weights[p]
        for q in range(n_outputs):
            outputs[q] = second[-1, q]
        for p in range(n_hidden):
            hidden[p] = np.tanh(scale * hidden[p])
            for q in range(n_outputs):
                outputs[q] += hidden[p] * second[p, q]
        own = labels[label_indptr[row] : label_indptr[row + 1]]
        for label in own:
            present[label] = True
        of_labels, of_others = 0.0, 0.0
        for q in range(n_outputs):
            outputs[q] = np.tanh(outputs[q])
            if present[q]:
                slopes[q] = np.exp(-outputs[q])
                of_labels += slopes[q]
            else:
                slopes[q] = np.exp(outputs[q])
                of_others += slopes[q]
        if n_outputs == 1:  # against its absence, whose output is minus that of the label
            other = slopes[0]
            of_labels, of_others = other, other
            share = 1.0
            slopes[0] *= 2.0
        else:
            share = 1.0 / (len(own) * (n_outputs - len(own)))
        total += of_labels * of_others * share
        for q in range(n_outputs):
            factor = -of_others if present[q] else of_labels
            slopes[q] *= rate * share * factor * (1.0 - outputs[q] * outputs[q])
            second[-1, q] = shrink * second[-1, q] - slopes[q]
        scale *= shrink
        for p in range(n_hidden):
            weights, value, back = second[p], hidden[p], 0.0
            for q in range(n_outputs):
                back += weights[q] * slopes[q]
                weights[q] = shrink * weights[q] - value * slopes[q]
            errors[p] = back * (1.0 - value * value) / scale
            first[-1, p] -= errors[p]
        for k in range(start, stop):
            value, weights = data[k], first[indices[k]]
            for p in range(n_hidden):
                weights[p] -= value * errors[p]
        for label in own:
            present[label] = False
        if scale < SMALLEST:
            first *= scale
            scale = 1.0
    first *= scale
    return total
