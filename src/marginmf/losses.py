"""Losses say how wrong a score is, and which way is down.

A **two-level loss** is a function of the margin ``z = y x`` with ``y`` in {-1, +1}; a
**real-valued loss** is a function of the target and the score.  Each is defined once, by a
value and a derivative written with arithmetic and NumPy ufuncs only.  Such functions work on
arrays as they stand and compile as they stand inside the Numba kernels, so there is no second
copy of the mathematics anywhere.

>>> import numpy as np
>>> smooth_hinge.value(np.array([-1.0, 0.5, 2.0]))
array([1.5  , 0.125, 0.   ])
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

Elementwise = Callable[..., Any]


@dataclass(frozen=True)
class TwoLevelLoss:
    """A loss of the margin ``z``: positive margins are right, negative ones are wrong.

    Parameters
    ----------
    name : str
        What users write as ``loss="..."``.
    value, derivative : callable
        Functions of the margin, elementwise.  At a kink the derivative is one subgradient.
    convex : bool
        Whether the loss is convex; only convex losses can be minimised by the factorisers.
    """

    name: str
    value: Elementwise
    derivative: Elementwise
    convex: bool = True


@dataclass(frozen=True)
class RealLoss:
    """A loss of a real target and a real score.

    Parameters
    ----------
    name : str
        What users write as ``loss="..."``.
    value, derivative : callable
        Functions of (target, score), elementwise; the derivative is by the score.
    positive : bool
        Whether targets and scores must be positive.  Outside, the value is not a number or
        infinite, which every line search takes as "too far".
    """

    name: str
    value: Elementwise
    derivative: Elementwise
    positive: bool = False


# --- two levels (Kumar's thesis, section 2.2.1) -----------------------------------------------


def _zero_one(z: Any) -> Any:
    return np.maximum(np.sign(-z), 0.0)


def _flat(z: Any) -> Any:
    return 0.0 * z


def _hinge(z: Any) -> Any:
    return np.maximum(1.0 - z, 0.0)


def _hinge_derivative(z: Any) -> Any:
    return -np.maximum(np.sign(1.0 - z), 0.0)


def _smooth_hinge(z: Any) -> Any:
    # With the slope clipped to [0, 1], all three branches are one expression: a slope of 0 gives 0,
    # 1 - z gives (1 - z)^2 / 2, and 1 gives 1/2 - z.
    violation = np.maximum(1.0 - z, 0.0)
    slope = np.minimum(violation, 1.0)
    return slope * (violation - 0.5 * slope)


def _smooth_hinge_derivative(z: Any) -> Any:
    return -np.minimum(np.maximum(1.0 - z, 0.0), 1.0)


def _modified_square(z: Any) -> Any:
    violation = np.maximum(1.0 - z, 0.0)
    return violation * violation


def _modified_square_derivative(z: Any) -> Any:
    return -2.0 * np.maximum(1.0 - z, 0.0)


def _logistic(z: Any) -> Any:
    # log(1 + e^-z) without overflow: the larger of 0 and -z is taken out of the exponential.
    return np.maximum(-z, 0.0) + np.log1p(np.exp(-np.abs(z)))


def _logistic_derivative(z: Any) -> Any:
    # -1 / (1 + e^z), again with exponentials of negative numbers only.
    e = np.exp(-np.abs(z))
    return -((z < 0) + (z >= 0) * e) / (1.0 + e)


zero_one = TwoLevelLoss("zero_one", _zero_one, _flat, convex=False)
hinge = TwoLevelLoss("hinge", _hinge, _hinge_derivative)
smooth_hinge = TwoLevelLoss("smooth_hinge", _smooth_hinge, _smooth_hinge_derivative)
modified_square = TwoLevelLoss("modified_square", _modified_square, _modified_square_derivative)
logistic = TwoLevelLoss("logistic", _logistic, _logistic_derivative)

#: Every two-level loss by name.  The compiled kernels know a loss by its position in this table.
TWO_LEVEL: Mapping[str, TwoLevelLoss] = {
    loss.name: loss for loss in (smooth_hinge, hinge, modified_square, logistic, zero_one)
}


# --- real values (Kumar's thesis, section 2.2.3, with Itakura-Saito as corrected) -------------


def _squared(y: Any, x: Any) -> Any:
    return (y - x) * (y - x)


def _squared_derivative(y: Any, x: Any) -> Any:
    return 2.0 * (x - y)


def _kullback_leibler(y: Any, x: Any) -> Any:
    return y * np.log(y / x) - y + x


def _kullback_leibler_derivative(y: Any, x: Any) -> Any:
    return 1.0 - y / x


def _itakura_saito(y: Any, x: Any) -> Any:
    return y / x - np.log(y / x) - 1.0


def _itakura_saito_derivative(y: Any, x: Any) -> Any:
    return (x - y) / (x * x)


squared = RealLoss("squared", _squared, _squared_derivative)
kullback_leibler = RealLoss(
    "kullback_leibler", _kullback_leibler, _kullback_leibler_derivative, positive=True
)
itakura_saito = RealLoss("itakura_saito", _itakura_saito, _itakura_saito_derivative, positive=True)

#: Every real-valued loss without a parameter, by name (see also `beta_divergence`).
REAL: Mapping[str, RealLoss] = {
    loss.name: loss for loss in (squared, kullback_leibler, itakura_saito)
}


@lru_cache  # the same beta gives the same loss, which is then compiled once
def beta_divergence(beta: float) -> RealLoss:
    """Return the beta-divergence, which runs from Itakura-Saito (0) by KL (1) to squares (2).

    At ``beta=2`` it is half the squared loss.

    >>> beta_divergence(0) is itakura_saito, beta_divergence(1) is kullback_leibler
    (True, True)
    >>> float(beta_divergence(2).value(3.0, 1.0))
    2.0
    """
    if not 0 <= beta < np.inf:
        raise ValueError(f"beta={beta!r} must be a finite number >= 0.")
    if beta == 0:
        return itakura_saito
    if beta == 1:
        return kullback_leibler
    b = float(beta)

    def value(y: Any, x: Any) -> Any:
        return y**b / (b * (b - 1.0)) + x**b / b - y * x ** (b - 1.0) / (b - 1.0)

    def derivative(y: Any, x: Any) -> Any:
        return x ** (b - 1.0) - y * x ** (b - 2.0)

    return RealLoss(f"beta_divergence({b:g})", value, derivative, positive=True)


# --- look-up ----------------------------------------------------------------------------------

Loss = TypeVar("Loss", TwoLevelLoss, RealLoss)


def two_level_loss(loss: "str | TwoLevelLoss") -> TwoLevelLoss:
    """Return the convex two-level loss of that name, or the loss itself; else explain."""
    found = _find(loss, TWO_LEVEL, TwoLevelLoss)
    if not found.convex:
        raise ValueError(
            f"loss={found.name!r} cannot be minimised: it is not convex, and flat almost "
            f"everywhere. Choose one of {_choices(TWO_LEVEL)}."
        )
    return found


def real_loss(loss: "str | RealLoss") -> RealLoss:
    """Return the real-valued loss of that name, or the loss itself; else explain."""
    return _find(loss, REAL, RealLoss)


def _find(loss: "str | Loss", table: Mapping[str, Loss], kind: type[Loss]) -> Loss:
    if isinstance(loss, kind):
        return loss
    if isinstance(loss, str) and loss in table:
        return table[loss]
    raise ValueError(
        f"loss={loss!r} is not known. Choose one of {_choices(table)}, or pass a {kind.__name__}."
    )


def _choices(table: Mapping[str, Any]) -> str:
    """Return the names of the losses that can be minimised."""
    return ", ".join(repr(name) for name, loss in table.items() if getattr(loss, "convex", True))
