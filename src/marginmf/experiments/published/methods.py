"""Which classes of the library are the methods that the thesis compares."""

from importlib import import_module
from typing import Any

#: By the name in the thesis.  The others are not in the library yet.
CLASSES = {
    "ALS": "marginmf.ratings.ALS",
    "BSVM": "marginmf.labels.BinaryRelevance",
    "CPLST": "marginmf.labels.CPLST",
    # The thesis's is an ensemble of MMMF alone: members=["mmmf"].
    "E-MMMF": "marginmf.ratings.MarginEnsemble",
    "GroPLE": "marginmf.labels.GroPLE",
    "HMF": "marginmf.ratings.HMF",
    "ML-kNN": "marginmf.labels.MLkNN",
    "MLC-HMF": "marginmf.labels.MLCHMF",
    "MMMF": "marginmf.ratings.MMMF",
    "PLST": "marginmf.labels.PLST",
    "PMF": "marginmf.ratings.PMF",
    "PMMMF": "marginmf.ratings.PMMMF",
}


def library_class(method: str) -> type[Any] | None:
    """Return the class of a method by its name in the thesis; None if the library has none.

    Parameters
    ----------
    method : str
        One of the ``methods`` of a `PublishedTable`.

    Returns
    -------
    type or None

    Examples
    --------
    >>> library_class("BSVM").__name__, library_class("URP")
    ('BinaryRelevance', None)
    """
    path = CLASSES.get(method)
    if path is None:
        return None
    module, _, name = path.rpartition(".")
    found: type[Any] = getattr(import_module(module), name)
    return found
