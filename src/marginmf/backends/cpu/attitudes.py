"""The compiled functions behind `URP` and `Attitude`: users who share attitudes towards items.

Kernels work on a range of users or items (or pairs) and write nothing outside it, and every sum is
over one user's or one item's own ratings, in their order: threads change no bit.

Letters are those of Marlin's papers: gamma and phi of the variational posteriors, beta for the
probabilities of levels, m for the chances of attitudes.
"""

import math

import numpy as np

from marginmf.backends.cpu.compiling import inline, kernel

#: The asymptotic series of the digamma function is exact to a few units in the last place from
#: here on.
_SERIES_FROM = 8.0
#: Products are turned into logarithms, or scaled, before they leave the range of numbers.
_SMALL, _LARGE = 1e-100, 1e100
#: Log-odds of an attitude are kept within this, so that no chance becomes 0 or 1.
LARGEST_LOGIT = 30.0


@inline
def digamma(x):
    """Return the derivative of the logarithm of the gamma function, for x > 0.

    By ``psi(x) = psi(x + 1) - 1 / x`` up to where the asymptotic series holds.
    """
    below = 0.0
    while x < _SERIES_FROM:
        below += 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    # The Bernoulli numbers B_2n over 2n, from the last to the first.
    series = 691.0 / 32760.0 - r / 12.0
    series = 1.0 / 240.0 - r * (1.0 / 132.0 - r * series)
    series = r * (1.0 / 12.0 - r * (1.0 / 120.0 - r * (1.0 / 252.0 - r * series)))
    return math.log(x) - 0.5 / x - series - below


@kernel
def fill_digamma(start, stop, x, out):
    """Fill a range of ``out`` with the digamma function of ``x``."""
    for i in range(start, stop):
        out[i] = digamma(x[i])


@inline
def _expected_weights(gamma, weights):
    """Fill ``weights`` with ``exp(E log theta)`` under a Dirichlet distribution."""
    total = 0.0
    for k in range(len(gamma)):
        total += gamma[k]
    of_total = digamma(total)
    for k in range(len(gamma)):
        weights[k] = math.exp(digamma(gamma[k]) - of_total)


@inline
def _minus_divergence(gamma, prior):
    """Return minus the Kullback-Leibler divergence of Dir(gamma) from Dir(prior)."""
    total, prior_total, value = 0.0, 0.0, 0.0
    for k in range(len(gamma)):
        total += gamma[k]
        prior_total += prior[k]
    of_total = digamma(total)
    for k in range(len(gamma)):
        value += math.lgamma(gamma[k]) - math.lgamma(prior[k])
        value += (prior[k] - gamma[k]) * (digamma(gamma[k]) - of_total)
    return value + math.lgamma(prior_total) - math.lgamma(total)


@kernel(error_model="numpy")
def profile_users(
    start, stop, indptr, indices, codes, beta, prior, n_passes, tol, gamma, changed, weights, values
):
    """Repeat the update of users' ``gamma``, into ``changed``; phi is never stored.

    ``phi_jk = beta_jyk w_k / sum``, where w is ``exp(E log theta)``, and ``gamma = prior + sum_j
    phi_j``.  A user has n updates, or fewer: the last is one that changes gamma by less than the
    share ``tol`` of its sum.  ``weights`` gets the w of the new gamma, ``values`` the users' parts
    of the bound at the old one: the logarithms of those sums, and minus the divergence from the
    prior.
    """
    n_attitudes = gamma.shape[1]
    own, sums = np.empty(n_attitudes), np.empty(n_attitudes)
    for user in range(start, stop):
        first, last = indptr[user], indptr[user + 1]
        new = changed[user]
        new[:] = gamma[user]
        values[user] = _minus_divergence(new, prior)
        for number in range(n_passes):
            _expected_weights(new, own)
            sums[:] = 0.0
            product, logs = 1.0, 0.0
            for entry in range(first, last):
                likely = beta[indices[entry], codes[entry]]
                total = 0.0
                for k in range(n_attitudes):
                    total += likely[k] * own[k]
                share = 1.0 / total
                for k in range(n_attitudes):
                    sums[k] += likely[k] * share
                if number == 0:
                    product *= total
                    if product < _SMALL:
                        logs += math.log(product)
                        product = 1.0
            if number == 0:
                values[user] += logs + math.log(product)
            change, total = 0.0, 0.0
            for k in range(n_attitudes):
                updated = prior[k] + own[k] * sums[k]
                change += abs(updated - new[k])
                total += updated
                new[k] = updated
            if change < tol * total:
                break
        _expected_weights(new, weights[user])


@kernel(error_model="numpy")
def profile_items(start, stop, indptr, indices, codes, weights, pseudo_counts, n_passes, beta):
    """Repeat the update of items' ``beta`` n times: shares of expected counts, plus pseudo-counts.

    ``weights`` are those of `profile_users`, the pseudo-counts of an item the same for all
    attitudes.
    """
    _, n_levels, n_attitudes = beta.shape
    sums = np.empty((n_levels, n_attitudes))
    for item in range(start, stop):
        own = beta[item]
        for _ in range(n_passes):
            sums[:] = 0.0
            for entry in range(indptr[item], indptr[item + 1]):
                likely, given = own[codes[entry]], weights[indices[entry]]
                total = 0.0
                for k in range(n_attitudes):
                    total += likely[k] * given[k]
                share, added = 1.0 / total, sums[codes[entry]]
                for k in range(n_attitudes):
                    added[k] += given[k] * share
            for k in range(n_attitudes):
                total = 0.0
                for v in range(n_levels):
                    own[v, k] = pseudo_counts[item, v] + own[v, k] * sums[v, k]
                    total += own[v, k]
                for v in range(n_levels):
                    own[v, k] /= total


@kernel(error_model="numpy")
def profile_pairs(start, stop, users, items, gamma, beta, out):
    """Fill rows of ``out`` with the probabilities of the levels: mixtures of the attitudes' ones.

    ``beta`` has the axes levels, items, attitudes, as models keep it.
    """
    for pair in range(start, stop):
        own, item = gamma[users[pair]], items[pair]
        total = 0.0
        for v in range(len(beta)):
            value = 0.0
            for k in range(len(own)):
                value += own[k] * beta[v, item, k]
            out[pair, v] = value
            total += value
        for v in range(len(beta)):
            out[pair, v] /= total


@inline
def _proposed(tilts, chances, factors, shares):
    """Fill ``shares`` with the product of an item's proposals; return the log of its sum.

    ``tilts`` holds ``exp(w)``, of which the first column, the item's own proposal, is always there.
    ``factors`` gets those of the others: ``1 - m + m exp(w)``.
    """
    n_levels, total, logs = len(tilts), 0.0, 0.0
    for v in range(n_levels):
        own, row, product = factors[v], tilts[v], tilts[v, 0]
        for k in range(len(chances)):
            factor = 1.0 + chances[k] * (row[k + 1] - 1.0)
            own[k] = factor
            product *= factor
        shares[v] = product
        total += product
    if not _SMALL < total < _LARGE:  # many attitudes, or steep ones: in logarithms
        logs = -np.inf
        for v in range(n_levels):
            value = math.log(tilts[v, 0])
            for k in range(len(chances)):
                value += math.log(factors[v, k])
            shares[v] = value
            logs = max(logs, value)
        total = 0.0
        for v in range(n_levels):
            shares[v] = math.exp(shares[v] - logs)
            total += shares[v]
    for v in range(n_levels):
        shares[v] /= total
    return logs + math.log(total)


@kernel(error_model="numpy")
def attitude_items(start, stop, indptr, indices, codes, chances, proposals, values, gradients):
    """Fill items' parts of the bound, and its gradients by their proposals; see `Attitude`.

    Rows of ``proposals`` hold for every level the item's own proposal and those of attitudes; all
    are logarithms.
    """
    _, n_levels, width = proposals.shape
    tilts, sums = np.empty((n_levels, width)), np.empty((n_levels, width))
    factors, shares = np.empty((n_levels, width - 1)), np.empty(n_levels)
    for item in range(start, stop):
        own, gradient = proposals[item], gradients[item]
        for v in range(n_levels):
            for k in range(width):
                tilts[v, k] = math.exp(own[v, k])
        gradient[:] = 0.0
        sums[:] = 0.0
        value = 0.0
        for entry in range(indptr[item], indptr[item + 1]):
            m, code = chances[indices[entry]], codes[entry]
            value -= _proposed(tilts, m, factors, shares)
            rated, chosen = gradient[code], own[code]
            rated[0] += 1.0
            value += chosen[0]
            for k in range(width - 1):
                rated[k + 1] += m[k]
                value += m[k] * chosen[k + 1]
            for v in range(n_levels):
                share, row, added = shares[v], factors[v], sums[v]
                added[0] += share
                for k in range(width - 1):
                    added[k + 1] += share * m[k] / row[k]
        for v in range(n_levels):
            gradient[v, 0] -= sums[v, 0]
            for k in range(1, width):
                gradient[v, k] -= sums[v, k] * tilts[v, k]
        values[item] = value


@inline
def _scaled(row):
    """Divide a row by its sum where that is far from one, before products leave their range."""
    total = 0.0
    for v in range(len(row)):
        total += row[v]
    if not _SMALL < total < _LARGE:
        for v in range(len(row)):
            row[v] /= total


@kernel(error_model="numpy")
def attitude_users(start, stop, indptr, indices, codes, tilts, prior_logits, n_passes, chances):
    """Repeat the update of users' chances of attitudes n times, one attitude after the other.

    ``tilts`` holds the exponentials of the proposals.  The product of all proposals for a rating
    but that of attitude k is the product of those before k, with their new chances, and of those
    after k, with their old ones; the latter are found beforehand, last attitude first.
    """
    _, n_levels, width = tilts.shape
    n_attitudes, longest = width - 1, 0
    for user in range(start, stop):
        longest = max(longest, indptr[user + 1] - indptr[user])
    excess = np.empty((n_attitudes, longest, n_levels))  # exp(w) - 1
    after, before = np.ones((n_attitudes, longest, n_levels)), np.empty((longest, n_levels))
    for user in range(start, stop):
        m, first = chances[user], indptr[user]
        n_rated = indptr[user + 1] - first
        for position in range(n_rated):
            own = tilts[indices[first + position]]
            for v in range(n_levels):
                for k in range(n_attitudes):
                    excess[k, position, v] = own[v, k + 1] - 1.0
        for _ in range(n_passes):
            for position in range(n_rated):
                own = tilts[indices[first + position]]
                for v in range(n_levels):
                    before[position, v] = own[v, 0]
            for k in range(n_attitudes - 2, -1, -1):
                for position in range(n_rated):
                    row, old, more = (
                        after[k, position],
                        after[k + 1, position],
                        excess[k + 1, position],
                    )
                    for v in range(n_levels):
                        row[v] = old[v] * (1.0 + m[k + 1] * more[v])
                    _scaled(row)
            for k in range(n_attitudes):
                logit, product = prior_logits[k], 1.0
                for position in range(n_rated):
                    more, early, late = excess[k, position], before[position], after[k, position]
                    total, change = 0.0, 0.0
                    for v in range(n_levels):
                        share = early[v] * late[v]
                        total += share
                        change += share * more[v]
                    logit -= change / (total + m[k] * change)
                    product *= 1.0 + more[codes[first + position]]
                    if not _SMALL < product < _LARGE:
                        logit += math.log(product)
                        product = 1.0
                logit += math.log(product)
                m[k] = 1.0 / (1.0 + math.exp(-min(max(logit, -LARGEST_LOGIT), LARGEST_LOGIT)))
                for position in range(n_rated):
                    row, more = before[position], excess[k, position]
                    for v in range(n_levels):
                        row[v] *= 1.0 + m[k] * more[v]
                    _scaled(row)


@kernel(error_model="numpy")
def attitude_pairs(start, stop, users, items, chances, tilts, out):
    """Fill rows of ``out`` with the probabilities of the levels.

    ``tilts`` has the axes levels, items, proposals, as models keep it.
    """
    factors = np.empty((len(tilts), tilts.shape[2] - 1))
    for pair in range(start, stop):
        _proposed(tilts[:, items[pair]], chances[users[pair]], factors, out[pair])
