"""Which classes a model file may name, and nothing else is ever made of what a file says.

Methods and their parts declare themselves (`marginmf._utils.saved`); the others are listed here.  A
file has the last part of a class's path alone, so a class may move to another module, but not
change its name.  Objects are stored by the parameters of their constructors, which suits
dataclasses, named tuples and estimators alike; what can be fitted has its fitted attributes on top,
which `marginmf.persistence.state` lists.
"""

import inspect
from functools import lru_cache
from importlib import import_module
from typing import Any

import marginmf.labels
import marginmf.ratings  # noqa: F401
from marginmf._utils.saved import SAVED

#: The paths of the other classes that may be part of a model; imported when a file asks for one.
PLACES = (
    "marginmf.solvers.ConjugateGradient",
    "marginmf.solvers.GradientDescent",
    "marginmf.solvers.LBFGS",
    "marginmf.solvers.Record",
    # What parameters may be.  Of these, linear classifiers may be fitted too.
    "sklearn.cluster.AgglomerativeClustering",
    "sklearn.cluster.BisectingKMeans",
    "sklearn.cluster.KMeans",
    "sklearn.cluster.MiniBatchKMeans",
    "sklearn.cluster.SpectralClustering",
    "sklearn.linear_model.LogisticRegression",
    "sklearn.linear_model.Ridge",
    "sklearn.linear_model.RidgeClassifier",
    "sklearn.linear_model.SGDClassifier",
    "sklearn.multiclass.OneVsRestClassifier",
    "sklearn.preprocessing.LabelBinarizer",
    "sklearn.svm.LinearSVC",
)


def class_named(name: str) -> type[Any] | None:
    """Return the class of that name, or None if it is not one of ours.

    >>> class_named("HMF"), class_named("Popen")
    (<class 'marginmf.ratings.max_margin.HMF'>, None)
    """
    return SAVED.get(name) or _listed(name)


@lru_cache
def _listed(name: str) -> type[Any] | None:
    for path in PLACES:
        module, _, last = path.rpartition(".")
        if last == name:
            found: type[Any] = getattr(import_module(module), name)
            return found
    return None


def is_known(value: Any) -> bool:
    """Whether an object is of one of the classes, not of a subclass."""
    return class_named(type(value).__name__) is type(value)


@lru_cache
def constructor_parameters(kind: Any) -> dict[str, bool]:
    """Return the names of the constructor's parameters, and whether each must be given.

    >>> constructor_parameters(class_named("LBFGS"))
    {'memory': False}
    """
    parameters = inspect.signature(kind).parameters.values()
    return {each.name: each.default is inspect.Parameter.empty for each in parameters}
