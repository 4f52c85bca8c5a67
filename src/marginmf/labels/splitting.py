"""Dividing instances in two with any clusterer that has scikit-learn's ``fit_predict``."""

import inspect
from functools import cache
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from threadpoolctl import ThreadpoolController

from marginmf._typing import BoolArray, IntArray
from marginmf.labels.order import row_keys

#: What clusterers and mixtures call the number of clusters.
COUNTS = ("n_clusters", "n_components")
#: So many numbers are few: to divide them is a matter of overhead alone.
FEW = 2**16
#: Random starts of k-means, of which the best is taken.
N_STARTS = 5


def check_splitter(splitter: Any) -> None:
    """Raise ValueError unless this can divide instances in two."""
    if splitter is None:
        return
    if isinstance(splitter, type) or not hasattr(splitter, "fit_predict"):
        raise ValueError(
            f"splitter={splitter!r} cannot divide instances: give a clusterer with fit_predict, "
            "such as KMeans(2), or None."
        )
    if not hasattr(splitter, "get_params"):
        raise ValueError(
            f"splitter={splitter!r} cannot be copied for every node: it needs scikit-learn's "
            "get_params and set_params, as a BaseEstimator has them."
        )
    for name, value in _counts(splitter).items():
        raise ValueError(
            f"splitter={splitter!r} has {name}={value!r}, but instances are divided in two: "
            f"give {name}=2."
        )


def divide(X: Any, splitter: Any, seed: int) -> list[IntArray]:
    """Return the places of the instances of each of two clusters, or of one if all are alike.

    The cluster of the first instance comes first.

    Parameters
    ----------
    X : array or csr_array of shape (n_samples, n_features)
        The instances.
    splitter : clusterer or None
        Who divides them; it stays as it is.  None is k-means.
    seed : int
        For clusterers with a ``random_state`` of None.

    Examples
    --------
    >>> divide(np.array([[9.0], [0.0], [8.0]]), None, 0)
    [array([0, 2]), array([1])]
    >>> divide(np.ones((3, 1)), None, 0)
    [array([0, 1, 2])]
    """
    keys = row_keys(X)
    if (keys == keys[0]).all():
        return [np.arange(len(keys))]
    clusterer = _ready(splitter, seed)
    # Sums that several threads share come out otherwise rounded.  For OpenMP this limits the
    # calling thread alone, so that trees that grow side by side do not disturb one another.
    libraries = _libraries() if splitter is None else ThreadpoolController()
    with libraries.limit(limits=1, user_api="openmp"):
        found = np.asarray(clusterer.fit_predict(_as_is_quickest(X) if splitter is None else X))
    if len(np.unique(found)) > 2:
        raise ValueError(
            f"splitter={splitter!r} has divided {len(keys)} instances into "
            f"{len(np.unique(found))} clusters, but it should find two: set it up for two, or "
            "choose another one."
        )
    first: BoolArray = found == found[0]
    return [part for part in (np.flatnonzero(first), np.flatnonzero(~first)) if len(part)]


def _as_is_quickest(X: Any) -> Any:
    """Return the same instances in the form that k-means divides soonest.

    It adds up in float64, and converts a part of float32 features again for every start; and of
    few instances, SciPy's handling of sparse ones takes longer than the arithmetic.
    """
    if not issparse(X):
        return X.astype(np.float64, copy=False) if X.size <= FEW else X
    if X.shape[0] * X.shape[1] <= FEW:
        X = X.toarray()
    return X.astype(np.float64, copy=False)


@cache
def _libraries() -> ThreadpoolController:
    """Return the libraries that k-means runs on: to find them takes as long as to divide."""
    return ThreadpoolController()


def _ready(splitter: Any, seed: int) -> Any:
    """Return a clusterer of two clusters that nobody else uses, with a seed of its own."""
    if splitter is None:
        return KMeans(2, n_init=N_STARTS, random_state=seed)
    clusterer = clone(splitter)
    params = clusterer.get_params(deep=False)
    wanted: dict[str, Any] = {name: 2 for name in COUNTS if name in params}
    if params.get("random_state", 0) is None:
        wanted["random_state"] = seed
    return clusterer.set_params(**wanted)


def _counts(splitter: Any) -> dict[str, Any]:
    """Return the parameters that ask for another number of clusters than two.

    A clusterer's own default counts as not set.
    """
    params = splitter.get_params(deep=False)
    defaults = inspect.signature(type(splitter)).parameters
    return {
        name: params[name]
        for name in COUNTS
        if name in params and params[name] not in (2, None, defaults[name].default)
    }
