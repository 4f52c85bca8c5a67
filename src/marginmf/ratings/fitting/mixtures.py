"""Terms of scores under hinge losses, given the scales of the hinges' mixtures of Gaussians."""

from typing import NamedTuple

import numpy as np

from marginmf._utils.types import FloatArray
from marginmf.backends.rows import Rows
from marginmf.backends.threads import row_bounds, row_parts, run
from marginmf.ratings.fitting.chains import Sample, Sweep

#: Random numbers of a kind that are drawn at a time: a block of them stays in the cache.
NUMBERS_AT_A_TIME = 1 << 17
#: In margins, how far the means of thresholds are apart, and how far users are from them.
PUBLISHED_STEP, PUBLISHED_SPREAD = 3.0, 1.5
#: The part of a sweep in which scales and thresholds draw their random numbers.
SCALES = 0


class Hinge(NamedTuple):
    """The loss of a rating: ``cost`` times how far thresholds are from a margin on its side."""

    cost: float
    margin: float


class Terms(NamedTuple):
    """Given the scales of the mixtures, minus the log-density in a score x: ``w x^2 / 2 - b x``."""

    weights: FloatArray
    linear: FloatArray


def published_prior(data: Rows, hinge: Hinge) -> tuple[FloatArray, FloatArray]:
    """Return the means of thresholds, in equal steps around zero, and one over their variances."""
    n = data.n_levels - 1
    means = PUBLISHED_STEP * hinge.margin * (np.arange(n) - (n - 1) / 2)
    return means, np.full(n, (PUBLISHED_SPREAD * hinge.margin) ** -2)


def draw_terms(
    data: Rows,
    U: FloatArray,
    V: FloatArray,
    thresholds: FloatArray,
    prior: FloatArray,
    hinge: Hinge,
    sweep: Sweep | None,
    n_threads: int,
) -> tuple[FloatArray, Terms]:
    """Draw all scales, then all thresholds, and return these and the terms of scores.

    Users are cut into blocks, with random numbers of their own, that do not depend on the threads.
    Without a sweep, the answers are conditional means.
    """
    from marginmf.backends.cpu.mixtures import user_terms

    thresholds, n_thresholds = thresholds.copy(), thresholds.shape[1]
    terms = Terms(np.empty(len(data)), np.empty(len(data)))
    bounds = row_parts(data.indptr, 1 + len(data) * n_thresholds // NUMBERS_AT_A_TIME)

    def draw_block(start: int, stop: int) -> None:
        for block in range(start, stop):
            first, last = int(bounds[block]), int(bounds[block + 1])
            if first == last:
                continue
            n = 0 if sweep is None else int(data.indptr[last] - data.indptr[first])
            noise = np.empty((2, n_thresholds, n))
            own = np.zeros((last - first, n_thresholds))
            if sweep is not None:
                generator = sweep.generator(SCALES, block)
                generator.standard_normal(out=noise[0])
                generator.random(out=noise[1])
                generator.standard_normal(out=own)
            user_terms(
                *(first, last, data.indptr, data.indices, data.codes, U, V, prior, *hinge),
                *(noise, own, False, thresholds, *terms),
            )

    run(draw_block, np.arange(len(bounds)), n_threads)
    return thresholds, terms


def new_user_terms(
    rows: Rows,
    U: FloatArray,
    V: FloatArray,
    thresholds: FloatArray,
    prior: FloatArray,
    hinge: Hinge,
    noise: FloatArray,
    threshold_noise: FloatArray,
    n_threads: int,
) -> Terms:
    """Draw scales and thresholds of users; the thresholds change in place.

    The noise of scales is that of every user, the noise of thresholds has a row for each.
    """
    from marginmf.backends.cpu.mixtures import user_terms

    terms = Terms(np.empty(len(rows)), np.empty(len(rows)))
    bounds = row_bounds(rows.indptr, n_threads, U.shape[1] + 8 * thresholds.shape[1])
    entries = (rows.indptr, rows.indices, rows.codes)
    arguments = (*entries, U, V, prior, *hinge, noise, threshold_noise, True, thresholds, *terms)
    run(user_terms, bounds, n_threads, *arguments)
    return terms


def new_item_terms(
    rows: Rows,
    V: FloatArray,
    U: FloatArray,
    thresholds: FloatArray,
    hinge: Hinge,
    noise: FloatArray,
    n_threads: int,
) -> Terms:
    """Draw scales of items that share the noise, given the thresholds of their users."""
    from marginmf.backends.cpu.mixtures import item_terms

    terms = Terms(np.empty(len(rows)), np.empty(len(rows)))
    bounds = row_bounds(rows.indptr, n_threads, V.shape[1] + 8 * thresholds.shape[1])
    arguments = (rows.indptr, rows.indices, rows.codes, V, U, thresholds, *hinge, noise, *terms)
    run(item_terms, bounds, n_threads, *arguments)
    return terms


def hinge_loss(data: Rows, current: Sample, margin: float, n_threads: int) -> float:
    """Return the sum of the hinge losses of all ratings at a sample."""
    from marginmf.backends.cpu.mixtures import hinge_sums

    sums = np.empty(data.n_rows)
    factors = (current["user_factors_"], current["item_factors_"], current["thresholds_"])
    bounds = row_bounds(data.indptr, n_threads, factors[0].shape[1] + 2 * data.n_levels)
    arguments = (data.indptr, data.indices, data.codes, *factors, margin, sums)
    run(hinge_sums, bounds, n_threads, *arguments)
    return float(sums.sum())


def shared_noise(sweep: Sweep, longest: int, n_thresholds: int) -> FloatArray:
    """Return normal and uniform numbers by threshold and by position in a row.

    A position has the same numbers however long the longest row is.
    """
    normals = sweep.generator(SCALES).standard_normal((longest, n_thresholds))
    uniforms = sweep.generator(SCALES, 1).random((longest, n_thresholds))
    return np.ascontiguousarray(np.stack([normals.T, uniforms.T]))
