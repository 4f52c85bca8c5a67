"""The fitted attributes of every estimator and what they must be: a new one is added here.

A file is refused unless its arrays have these shapes, because the compiled kernels do not check
the bounds of arrays: factors with a row too few would be read beyond their end.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from marginmf.ratings.base import RatingsEstimator
from marginmf.ratings.data import Ratings
from marginmf.ratings.fallback import LevelFrequencies
from marginmf.ratings.ids import IdIndex


@dataclass(frozen=True)
class Shaped:
    """An array of that kind of number, with these axes.

    ``users``, ``items`` and ``levels`` are as many as the estimator has, ``stages`` one less than
    levels.  Other names may be of any length, the same wherever they occur in the estimator.
    """

    kinds: tuple[str, ...]
    axes: tuple[str, ...]


@dataclass(frozen=True)
class Optional:
    """What may be absent, or else is like this."""

    wanted: Any


@dataclass(frozen=True)
class ListOf:
    """A list with at least one part, each of which is like this."""

    wanted: Any


def floats(*axes: str) -> Shaped:
    """Return the demand for an array of floats with these axes."""
    return Shaped(("float32", "float64"), axes)


def counts(*axes: str) -> Shaped:
    """Return the demand for an array of int64 with these axes."""
    return Shaped(("int64",), axes)


#: Whatever a file can hold: it has no part in predictions.
ANYTHING = object

#: How it was learned.
TRAINING = {
    "history_": list,
    "n_iter_": ANYTHING,
    "n_evaluations_": ANYTHING,
    "stop_reason_": ANYTHING,
}

#: By class; an estimator also has the attributes of its bases.  The demand is one of the above, a
#: type, or the name of a class that a file may have.  Estimators and ratings that stand anywhere
#: in these attributes must have as many users, items and levels as the estimator itself.
STATE: dict[str, dict[str, Any]] = {
    "RatingsEstimator": {
        "users_": IdIndex,
        "items_": IdIndex,
        "levels_": floats("levels"),
        "ratings_": Ratings,
        "_frequencies": LevelFrequencies,
        "_calibration_seed": Optional(int),
        "_calibrator": Optional("Calibrator"),
    },
    "Factoriser": {
        **TRAINING,
        "reg_": float,
        "reg_path_": Optional("RegularisationPath"),
        "user_factors_": floats("users", "factors"),
        "item_factors_": floats("items", "factors"),
    },
    "HMF": {
        "reg_": ListOf(float),
        "reg_path_": Optional(ListOf("RegularisationPath")),
        "user_factors_": floats("stages", "users", "factors"),
        "item_factors_": floats("stages", "items", "factors"),
    },
    "MMMF": {"thresholds_": floats("users", "stages")},
    "PMMMF": {"prototypes_": floats("users", "levels"), "boundaries_": floats("users", "stages")},
    "BiasOnly": {
        **TRAINING,
        "mean_": float,
        "user_biases_": floats("users"),
        "item_biases_": floats("items"),
    },
    "LeastSquares": {"offsets_": "BiasOnly"},
    "MarginEnsemble": {"members_": ListOf(ListOf(RatingsEstimator)), "_calibrator": "Calibrator"},
    # Parts that are not estimators: here the attributes are the constructor's parameters.
    "LevelFrequencies": {
        "by_user": counts("users", "levels"),
        "by_item": counts("items", "levels"),
        "overall": floats("levels"),
    },
    "Calibrator": {
        "weights": floats("stages", "features"),
        "intercepts": floats("stages"),
        "bounds": floats("ends", "features"),
    },
    "RegularisationPath": {
        "regs": floats("candidates"),
        "errors": floats("candidates", "holdouts"),
        "metric": str,
    },
    "LBFGS": {"memory": int},
}


@lru_cache
def fitted_attributes(kind: Any) -> dict[str, Any]:
    """Return what a class wants of its attributes.

    >>> from marginmf.ratings import HMF
    >>> fitted_attributes(HMF)["user_factors_"].axes
    ('stages', 'users', 'factors')
    """
    attributes: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        attributes.update(STATE.get(base.__name__, {}))
    return attributes
