"""Label models whose learned parts do not fit one another: a sentence, and no model."""

import numpy as np
import pytest
from tampering import (
    attribute,
    both,
    columns_less,
    find_csr,
    inside,
    place,
    rows_less,
    tensor,
    without,
)


def node(number, field):
    return inside("tree_", "object", 1, "nodes", number, "object", 1, field)


def kept_name(parts):
    return next(
        name for name in parts.tensors if name.endswith("kept") and len(parts.tensors[name])
    )


CASES = {
    # neighbours
    "labels of other rows": (
        "mlknn",
        both(
            tensor("stored_labels_.indptr", lambda array: np.append(array, array[-1])),
            lambda parts: find_csr(parts.document, "stored_labels_.data").update(shape=[41, 5]),
        ),
        "stored_labels_ are not those of its neighbours",
    ),
    "labels that count twice": (
        "mlknn",
        place("stored_labels_.data", 0, 2.0),
        "stored_labels_ has something else than ones",
    ),
    "probabilities too few": (
        "mlknn",
        columns_less("posterior_"),
        "posterior_ is for another number of neighbours",
    ),
    "neighbours less than none": (
        "mlknn",
        inside("neighbours_", "object", 1, "n_neighbors")(-1),
        "has no neighbours to find",
    ),
    "neighbours without rows": (
        "mlknn",
        inside("neighbours_", "object", 2)({}),
        r"'neighbours_\.stored_\.data' belongs to nothing",
    ),
    # trees
    "node at another place": ("mlchmf", node(1, "index")(0), "nodes.1 is not at its"),
    "node that is its own parent": ("mlchmf", node(1, "parent")(1), "nodes.1 is not at its"),
    "node whose parent comes later": (
        "mlchmf",
        node(0, "parent")(5),
        "nodes.0 is not at its position",
    ),
    "node whose parent is nowhere": (
        "mlchmf",
        node(1, "parent")(-2),
        "nodes.1 is not at its position",
    ),
    "tree without nodes": (
        "mlchmf one node",
        both(
            inside("tree_", "object", 1, "nodes")([]),
            lambda parts: [parts.tensors.pop(key) for key in list(parts.tensors) if "node" in key],
        ),
        "no object|is not a list, or is empty",
    ),
    "row that does not exist": (
        "mlchmf",
        lambda parts: place(kept_name(parts), 0, 40)(parts),
        "keeps rows that do not exist",
    ),
    "feature that does not exist": (
        "mlchmf",
        place("tree_.nodes.0.features", 0, 7),
        r"nodes\.0\.features has numbers of features that do not exist",
    ),
    "weights of a feature too few": (
        "mlchmf",
        rows_less("tree_.nodes.0.U"),
        r"nodes\.0\.U has the shape \(7, 2\), which does not fit \(used \+ 1, factors\)",
    ),
    "factors of a label too few": (
        "mlchmf",
        rows_less("tree_.nodes.0.V"),  # in Fortran's order
        r"nodes\.0\.V has the shape \(2, 4\)",
    ),
    "keeper that does not exist": (
        "mlchmf",
        place("keepers_", 0, 99),
        "keepers_ has numbers of nodes that do not exist",
    ),
    "keepers too few": ("mlchmf", rows_less("keepers_"), "keepers_ are not those of its neighb"),
    "nodes with nothing to choose by": (
        "mlchmf",
        both(
            attribute("neighbours_", None),
            lambda parts: parts.tensors.pop("neighbours_.stored_"),
        ),
        "nodes, and nothing to choose by",
    ),
    # embeddings, chains and classifiers inside
    "map of a feature too few": (
        "grople",
        rows_less("feature_map_"),
        r"feature_map_ has the shape",
    ),
    "factors of another rank": ("grople", rows_less("label_factors_"), "which does not fit"),
    "label in a chain twice": (
        "chains",
        tensor("orders_", lambda array: array[:, [0, 1, 1]]),
        "orders_ are not orders of the labels that vary",
    ),
    "label that does not exist": (
        "chains",
        place("orders_", (0, 0), 9),
        "labels that do not exist",
    ),
    "chain without weights": ("chains", without("coef_"), r"coef_ is missing"),
    "links too few": ("chains", columns_less("link_coef_"), "link_coef_ has the shape"),
    "link without a classifier": (
        "chains neighbours",
        lambda parts: parts.fitted["estimators_"][0].pop(),
        "belongs to nothing|are not one for each link|no object",
    ),
    "link with a classifier of nothing": (
        "chains neighbours",
        inside("estimators_", 0, 2)({"object": ["MLkNN", {}, {}]}),
        "belongs to nothing|has not learned anything",
    ),
    "label without a classifier": (
        "relevance neighbours",
        inside("estimators_", 1)(7),
        r"estimators_\.1 has nothing to predict",
    ),
    "weights that are not there": (
        "relevance neighbours",
        attribute("coef_", None),
        "coef_ is missing",
    ),
    "scale of a feature too few": ("scaled", rows_less("factor_"), "factor_ has the shape"),
    "scale that is not finite": ("scaled", place("offset_", 0, np.nan), "offset_ has a number"),
    "labels that vary too few": (
        "tuned ridge",
        tensor("_labels.varying", lambda array: array[:-1]),
        r"_labels\.varying has the shape \(4,\)",
    ),
    "labels that vary too many": (
        "tuned ridge",
        tensor("_labels.varying", lambda array: np.ones_like(array)),
        "estimator_ scores 3 labels, but 5 are wanted of it",
    ),
    "coefficients of a feature too few": (
        "tuned ridge",
        rows_less("estimator_.coef_"),  # in Fortran's order
        r"estimator_\.coef_ has the shape \(3, 6\)",
    ),
    "intercept too few": ("tuned ridge", rows_less("estimator_.intercept_"), "intercept_ has the"),
    "estimator that has learned nothing": (
        "tuned svm",
        inside("estimator_")({"object": ["LinearSVC", {}, {}]}),
        "belongs to nothing|has not learned anything",
    ),
    "classifier of several labels for one": (
        "tuned svm",
        tensor("estimator_.estimators_.0.coef_", lambda array: np.vstack([array, array])),
        "has the shape|scores 2 labels, but 1",
    ),
}


@pytest.mark.parametrize(("name", "tamper", "sentence"), CASES.values(), ids=CASES)
def test_hostile_label_methods_get_a_sentence(name, tamper, sentence, refused):
    refused(name, tamper, sentence)
