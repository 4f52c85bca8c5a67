"""Who is compared in chapter 5, on what, and how its parameters are searched."""

from typing import Any

from marginmf.experiments.grids import tenths
from marginmf.experiments.label_tables import GLOBAL, SIGN, Contender, LabelTable

#: The thesis's candidates; its set {1, 5, ..., 20} is read as this one.
REGS = tenths((1, 5, 9, 13, 17, 20))
#: The thesis's too, but for 0, which allows no wrong label, as 0.02 does with up to 49 labels.
TOLERANCES = (0.02, 0.04, 0.06, 0.08, 0.1)


def tree_search(n_labels: int) -> list[dict[str, list[Any]]]:
    """Search the weight of the penalty first, then the tolerance.

    Tolerances that allow the same number of wrong labels are the same: one of them will do.

    >>> len(tree_search(6)), tree_search(45)[1]
    (1, {'tolerance': [0.02, 0.04, 0.06, 0.08, 0.1]})
    """
    allowed = {int(one * n_labels + 1e-9): one for one in reversed(TOLERANCES)}
    grids: list[dict[str, list[Any]]] = [{"reg": REGS}]
    if len(allowed) > 1:
        grids.append({"tolerance": sorted(allowed.values())})
    return grids


def node_search(n_labels: int) -> list[dict[str, list[Any]]]:
    """Search the weight of the penalty of a single node."""
    return [{"reg": REGS}]


#: Hard votes under sign, as in the thesis.
TREE = {"vote": "hard", "tolerance": 0.02}

TABLE = LabelTable(
    source="mlc-hmf",
    data={
        "cal500": ("cal500", 174),
        "emotions": ("emotions", 6),
        "genbase": ("genbase", 27),
        "plant": ("plant978", 12),
        "medical": ("medical", 45),
        "langlog": ("langlog", 75),
        "human": ("human3106", 14),
        "education": ("yahoo-education", 33),
        "science": ("yahoo-science", 40),
        "rcv1subset2": ("rcv1subset2-944", 101),
        "rcv1subset5": ("rcv1subset5", 101),
        "ohsumed": ("ohsumed", 23),
    },
    contenders={
        "BSVM": Contender("BSVM"),
        "ML-kNN": Contender("ML-kNN"),
        "MLC-HMF": Contender("MLC-HMF", TREE, SIGN, tree_search),
        "one node, top 1": Contender(
            "MLC-HMF", {"max_depth": 0}, {**SIGN, "top1_if_empty": True}, node_search
        ),
        "ridge, tuned threshold": Contender("Ridge", {}, GLOBAL),
    },
    own="MLC-HMF",
    n_folds=10,
)
#: The quick version has the small sets only.
QUICK = ("cal500", "emotions", "genbase", "plant", "medical", "langlog")
PROTOCOL = (
    "Ten folds, shuffled with seed 0; ± is the standard deviation over folds. Dense features are "
    "scaled to [0, 1] on the training folds. The weight of the penalty, then the tolerance, are "
    "chosen for accuracy by three-fold cross-validation inside the training folds (the thesis "
    "searches all pairs, and seems to have picked them on the test folds). The thesis's methods "
    "decide by the sign of the score. One node, top 1: a single factorisation without a tree, "
    "and where it predicts no label, the best one. Ridge, tuned threshold: ridge regression "
    "with one threshold for all labels, chosen inside the training folds. Subset 5 of rcv1 has "
    "all of its 47,235 features here, 944 in the thesis; plant and human come in the versions "
    "with 978 and 3,106 rows."
)
