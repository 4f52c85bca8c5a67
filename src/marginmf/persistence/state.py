"""The fitted attributes of every estimator and what they must be: a new one is added here.

Those of label models are in `marginmf.persistence.label_state`.

A file is refused unless its arrays have these shapes, because the compiled kernels do not check
the bounds of arrays: factors with a row too few would be read beyond their end.
"""

from functools import lru_cache
from typing import Any

from sklearn.base import BaseEstimator

from marginmf.persistence.classes import constructor_parameters
from marginmf.persistence.demands import ANYTHING, HISTORY, ListOf, Optional, counts, floats
from marginmf.persistence.label_state import LABEL_STATE, RULES, Rule
from marginmf.ratings.base import RatingsEstimator
from marginmf.ratings.data import Ratings
from marginmf.ratings.fallback import LevelFrequencies
from marginmf.ratings.ids import IdIndex

#: How it was learned.
TRAINING = {**HISTORY, "n_evaluations_": ANYTHING}

#: By class; an estimator also has the attributes of its bases.  See `marginmf.persistence.demands`.
#: Estimators and ratings that stand anywhere in these attributes must have as many users, items
#: and levels, or features, as the estimator itself.
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
        "validation_errors_": Optional(list),
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
    **LABEL_STATE,
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


def can_learn(kind: Any) -> bool:
    """Whether objects of a class have fitted attributes beside their constructor's parameters.

    >>> from marginmf.ratings import HMF
    >>> from marginmf.solvers import LBFGS
    >>> can_learn(HMF), can_learn(LBFGS)
    (True, False)
    """
    if issubclass(kind, BaseEstimator):
        return True
    return not fitted_attributes(kind).keys() <= constructor_parameters(kind).keys()


def rules_of(kind: Any) -> list[Rule]:
    """Return what else must hold of objects of a class, those of its bases first."""
    return [RULES[base.__name__] for base in reversed(kind.__mro__) if base.__name__ in RULES]
