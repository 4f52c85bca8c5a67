"""The fitted attributes of every class and what they must be.

Methods and their parts declare theirs (`_utils.saved`); those of scikit-learn are listed in
`marginmf.persistence.foreign_parts`.

A file is refused unless its arrays have these shapes, because the compiled kernels do not check
the bounds of arrays: factors with a row too few would be read beyond their end.
"""

from functools import lru_cache
from typing import Any

from sklearn.base import BaseEstimator

from marginmf._utils.saved import declared
from marginmf.persistence.classes import constructor_parameters
from marginmf.persistence.errors import ModelFileError
from marginmf.persistence.foreign_parts import FOREIGN_RULES, FOREIGN_STATE
from marginmf.persistence.shapes import Lengths

#: By class; see `marginmf._utils.saved`.
STATE: dict[str, dict[str, Any]] = {"LBFGS": {"memory": int}, **FOREIGN_STATE}


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
    return attributes | declared(kind)


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


def check_rules(value: Any, name: str, lengths: Lengths) -> None:
    """Refuse an object whose attributes have the right shapes, but do not fit one another."""
    for base in reversed(type(value).__mro__):
        if base.__name__ in FOREIGN_RULES:
            FOREIGN_RULES[base.__name__](value, name, lengths)
    flaws = getattr(value, "_flaws", None)
    for flaw in flaws(lengths) if flaws is not None else ():
        raise ModelFileError(f"{name}{flaw}")
