"""From features to points: a sparse linear map onto the embedding of the labels.

Minimises ``|X Z - U|^2 + alpha tr(Z R Z^T) + beta |Z|_1`` over Z (the thesis's chapter 6; X and U
are centred), where R says how little the columns of U go together.  ``X^T X``, ``X^T U`` and
``U^T U`` are all that is needed.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import eigh_tridiagonal

from marginmf._typing import Float64Array, FloatArray
from marginmf.labels.grams import Normal
from marginmf.penalties import L1
from marginmf.solvers import APG, Callback, NumpyVectors, Result, Stopping

#: Steps of the Lanczos method for the largest eigenvalue; the error that is left is added to it.
LANCZOS_STEPS = 20


def fit_feature_map(
    normal: Normal,
    cross: Float64Array,
    inner: Float64Array,
    reg_corr: float,
    reg_sparse: float,
    stopping: Stopping,
    callbacks: Sequence[Callback] = (),
    dtype: Any = np.float64,
) -> Result:
    """Return the solver's result, with the map Z in float64 as its point.

    Parameters
    ----------
    normal : Normal
        ``X^T X``.
    cross : array of shape (n_features, n_factors)
        ``X^T U``.
    inner : array of shape (n_factors, n_factors)
        ``U^T U``.
    reg_corr, reg_sparse : float
        The weights alpha and beta.
    stopping : Stopping
        When to end.
    callbacks : sequence of callable
        Called after every iteration.
    dtype : dtype
        The precision of the arithmetic.
    """
    unrelated = reg_corr * unrelatedness(inner)
    ridge = float(np.linalg.norm(unrelated, 2)) if unrelated.any() else 0.0
    # Features of length one: those that are rare would else take as long as they are short.
    # Constant ones stay at zero.
    lengths = np.sqrt(normal.diagonal + ridge)
    unit = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=normal.diagonal > 0)
    scale = unit.astype(dtype)[:, None]
    target = (unit[:, None] * cross).astype(dtype)
    unrelated = unrelated.astype(dtype)
    constant, space = float(np.trace(inner)), NumpyVectors()

    def product(W: FloatArray) -> FloatArray:
        Z = scale * W
        image = normal.apply(Z)
        if ridge:
            image = image + Z @ unrelated
        return scale * image

    def smooth(W: FloatArray) -> tuple[float, FloatArray]:
        slope = product(W)
        slope -= target
        value = constant + space.dot(W, slope) - space.dot(W, target)
        slope *= 2
        return value, slope

    def with_ridge(column: FloatArray) -> FloatArray:
        Z = scale * column
        bent: FloatArray = scale * (normal.apply(Z) + Z.dtype.type(ridge) * Z)
        return bent

    result = APG(affine=True).minimise(
        smooth,
        L1((reg_sparse * unit).astype(dtype)[:, None]),
        np.zeros_like(target),
        lipschitz=2.0 * largest_eigenvalue(with_ridge, len(unit), dtype),
        stopping=stopping,
        callbacks=callbacks,
    )
    return replace(result, point=unit[:, None] * result.point)


def unrelatedness(inner: Float64Array) -> Float64Array:
    """Return R, one minus the correlations of the columns of U, as near as a penalty can be.

    R itself has negative eigenvalues, with which the objective would have no minimum: they are
    replaced by zero, which gives the nearest matrix without any.  A column of zeros is
    related to itself alone.

    >>> np.linalg.eigvalsh(unrelatedness(np.array([[2.0, 0.0], [0.0, 3.0]]))).round(12)
    array([0., 1.])
    """
    lengths = np.sqrt(np.diag(inner))
    unit = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    correlations = unit[:, None] * inner * unit
    np.fill_diagonal(correlations, 1.0)
    values, vectors = np.linalg.eigh(1.0 - correlations)
    nearest: Float64Array = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return nearest


def largest_eigenvalue(product: Any, n: int, dtype: Any) -> float:
    """Return a bound on the largest eigenvalue of a positive semi-definite matrix, hardly above it.

    The Lanczos method, from a start that is the same every time.

    >>> matrix = np.diag(np.arange(100.0))
    >>> 99.0 <= largest_eigenvalue(lambda v: matrix @ v, 100, np.float64) < 99.5
    True
    """
    vector = np.random.default_rng(0).normal(size=(n, 1))
    vector /= np.linalg.norm(vector)
    before, off = np.zeros_like(vector), 0.0
    diagonal: list[float] = []
    off_diagonal: list[float] = []
    for _ in range(min(n, LANCZOS_STEPS)):
        image = product(vector.astype(dtype)).astype(np.float64) - off * before
        diagonal.append(float(np.sum(image * vector)))
        image -= diagonal[-1] * vector
        off = float(np.linalg.norm(image))
        off_diagonal.append(off)
        if off <= 1e-6 * max(diagonal):
            break
        before, vector = vector, image / off
    values, vectors = eigh_tridiagonal(diagonal, off_diagonal[:-1])
    # An eigenvalue lies within the length of the residual.
    return float(values[-1] + off_diagonal[-1] * abs(vectors[-1, -1])) * (1.0 + 1e-6)
