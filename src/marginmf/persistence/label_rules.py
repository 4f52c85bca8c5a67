"""What must hold of the label methods beside the shapes of their arrays."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.extmath import row_norms

from marginmf.labels.constant import Varying
from marginmf.persistence.errors import ModelFileError
from marginmf.persistence.foreign_parts import feature_count, score_columns
from marginmf.persistence.shapes import Lengths, within


def check_tuned(model: Any, name: str, lengths: Lengths) -> None:
    """Refuse an estimator inside that does not score the labels that vary."""
    n_varying = int(model._labels.varying.sum())
    if n_varying > 0:  # else there was nothing to learn, and nobody will be asked
        _check_columns(model.estimator_, f"{name}.estimator_", n_varying)


def check_scaled(model: Any, name: str, lengths: Lengths) -> None:
    """Refuse an estimator inside that does not score the labels, or a scale of no numbers."""
    _check_columns(model.estimator_, f"{name}.estimator_", lengths["labels"])
    for part in ("offset_", "factor_"):
        if not np.isfinite(getattr(model, part)).all():
            raise ModelFileError(f"{name}.{part} has a number that is not finite")


def check_neighbours(search: Any, name: str, lengths: Lengths) -> None:
    """Refuse a search that would find nothing."""
    if search.n_neighbors < 0 or search.stored_.shape[0] == 0:
        raise ModelFileError(f"{name} has no neighbours to find")
    with np.errstate(over="ignore"):
        norms = row_norms(search.stored_.astype(np.float64, copy=False), squared=True)
    if not np.isfinite(norms).all():
        raise ModelFileError(f"{name} has rows that are too long to be compared")


def check_tree(tree: Any, name: str, lengths: Lengths) -> None:
    """Refuse nodes that point nowhere, or to one another."""
    for place, node in enumerate(tree.nodes):
        if node.index != place or not -1 <= node.parent < place:
            raise ModelFileError(f"{name}.nodes.{place} is not at its place in the tree")
        if not within(node.kept, tree.n_samples):
            raise ModelFileError(f"{name}.nodes.{place} keeps rows that do not exist")


def check_mlchmf(model: Any, name: str, lengths: Lengths) -> None:
    """Refuse rows that no node keeps, and several nodes with no rows to tell between them."""
    n_nodes = len(model.tree_.nodes)
    if model.neighbours_ is None:
        if n_nodes != 1:
            raise ModelFileError(f"{name} has {n_nodes} nodes, and nothing to choose by")
    elif len(model.keepers_) != model.neighbours_.stored_.shape[0]:
        raise ModelFileError(f"{name}.keepers_ are not those of its neighbours")
    elif not within(model.keepers_, n_nodes):
        raise ModelFileError(f"{name}.keepers_ has numbers of nodes that do not exist")


def check_mlknn(model: Any, name: str, lengths: Lengths) -> None:
    """Refuse labels of other rows, and counts that would lie beyond the table of probabilities."""
    if model.stored_labels_.shape[0] != model.neighbours_.stored_.shape[0]:
        raise ModelFileError(f"{name}.stored_labels_ are not those of its neighbours")
    if type(model.stored_labels_) is not csr_array or not (model.stored_labels_.data == 1).all():
        raise ModelFileError(f"{name}.stored_labels_ has something else than ones")
    if model.posterior_.shape[1] != model.neighbours_.n_neighbors + 1:
        raise ModelFileError(f"{name}.posterior_ is for another number of neighbours")


def check_binary_relevance(model: Any, name: str, lengths: Lengths) -> None:
    """Refuse a model that has neither weights nor a classifier for every label that varies."""
    if hasattr(model, "coef_"):
        _check_present(model, name, "coef_", "intercept_")
        return
    _check_present(model, name, "estimators_")
    varying = model._labels.varying
    if len(model.estimators_) != len(varying) or not varying.any():
        raise ModelFileError(f"{name}.estimators_ are not one for each label")
    for label, each in enumerate(model.estimators_):
        if varying[label]:
            _check_one(each, f"{name}.estimators_.{label}", lengths["features"])
        elif each is not None:
            raise ModelFileError(f"{name}.estimators_.{label} has nothing to predict")


def check_chains(model: Any, name: str, lengths: Lengths) -> None:
    """Refuse chains that leave labels out, and those whose links see other features."""
    labels: Varying = model._labels
    expected = np.flatnonzero(labels.varying)
    orders = np.sort(model.orders_, axis=1)
    if len(orders) == 0 or orders.shape[1] != len(expected) or (orders != expected).any():
        raise ModelFileError(f"{name}.orders_ are not orders of the labels that vary")
    if not hasattr(model, "estimators_"):
        _check_present(model, name, "coef_", "link_coef_", "intercept_")
        return
    _check_present(model, name, "estimators_")
    if [len(chain) for chain in model.estimators_] != [len(expected)] * len(orders):
        raise ModelFileError(f"{name}.estimators_ are not one for each link")
    for number, chain in enumerate(model.estimators_):
        for k, each in enumerate(chain):
            place = f"{name}.estimators_.{number}.{k}"
            _check_one(each, place, lengths["features"] + k)


def _check_present(model: Any, name: str, *attributes: str) -> None:
    for attribute in attributes:
        if getattr(model, attribute, None) is None:
            raise ModelFileError(f"{name}.{attribute} is missing")


def _check_columns(estimator: Any, name: str, wanted: int) -> None:
    """Refuse what does not score so many labels."""
    found = score_columns(estimator, name)
    if found != wanted:
        raise ModelFileError(f"{name} scores {found} labels, but {wanted} are wanted of it")


def _check_one(classifier: Any, name: str, n_features: int) -> None:
    """Refuse what is no classifier of one label that takes so many features."""
    _check_columns(classifier, name, 1)
    if feature_count(classifier, name) != n_features:
        raise ModelFileError(f"{name} has other features than the model")
