"""Which classes a model file may name: the one place where a new one is added.

A file calls a class by the last part of its place alone, so a class may move to another module,
but not change its name.  Objects are stored by the parameters of their constructors, which suits
dataclasses, named tuples and estimators alike; what can be fitted has its fitted attributes on
top, which `marginmf.persistence.state` lists.
"""

import inspect
from functools import lru_cache
from importlib import import_module
from typing import Any

#: Where every class that may be a part of a model lives; imported when a file asks for it.
PLACES = (
    "marginmf.labels.BinaryRelevance",
    "marginmf.labels.CPLST",
    "marginmf.labels.ClassifierChains",
    "marginmf.labels.DecisionTuned",
    "marginmf.labels.EmbeddingTree",
    "marginmf.labels.GroPLE",
    "marginmf.labels.MLCHMF",
    "marginmf.labels.MLkNN",
    "marginmf.labels.PLST",
    "marginmf.labels.RidgeEmbedding",
    "marginmf.labels.Scaled",
    "marginmf.labels.constant.Varying",
    "marginmf.labels.neighbours.Neighbours",
    "marginmf.labels.targets.Targets",
    "marginmf.labels.tree.Node",
    "marginmf.ratings.ALS",
    "marginmf.ratings.BMMMF",
    "marginmf.ratings.BiasOnly",
    "marginmf.ratings.HMF",
    "marginmf.ratings.MMMF",
    "marginmf.ratings.MarginEnsemble",
    "marginmf.ratings.PMF",
    "marginmf.ratings.PMMMF",
    "marginmf.ratings.Ratings",
    "marginmf.ratings.calibration.Calibrator",
    "marginmf.ratings.fallback.LevelFrequencies",
    "marginmf.solvers.ConjugateGradient",
    "marginmf.solvers.GradientDescent",
    "marginmf.solvers.LBFGS",
    "marginmf.solvers.Record",
    "marginmf.tuning.RegularisationPath",
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


@lru_cache
def class_named(name: str) -> type[Any] | None:
    """Return the class of that name, or None if it is not one of ours.

    >>> class_named("HMF"), class_named("Popen")
    (<class 'marginmf.ratings.hmf.HMF'>, None)
    """
    for place in PLACES:
        module, _, last = place.rpartition(".")
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
