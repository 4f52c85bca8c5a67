"""Chapter 5: MLC-HMF, which predicts label sets by a hierarchy of factorisations."""

from typing import Any

import numpy as np

from studies.harness import Cell, Store, make_splits
from studies.harness.markdown import Block, Entry, Figure, Table, Text
from studies.thesis.exhibit import Exhibit, Scale
from studies.thesis.figures import curves_figure
from studies.thesis.label_tables import (
    GLOBAL,
    SIGN,
    Candidate,
    Grid,
    LabelMeasures,
    LabelTable,
    Retuned,
)
from studies.thesis.label_tests import LabelCriticalDifference, LabelFriedman
from studies.thesis.samples import format_lead, judge_cost, make_entry, pick, worst_verdict

#: The thesis's candidates 10^(i/10); its set {1, 5, ..., 20} is read as this one.
REGS = [round(10 ** (i / 10), 4) for i in (1, 5, 9, 13, 17, 20)]
#: The thesis's too, but for 0, which allows no wrong label, as 0.02 does with up to 49 labels.
TOLERANCES = (0.02, 0.04, 0.06, 0.08, 0.1)
#: Hard votes under sign, as in the thesis.
TREE = {"vote": "hard", "tolerance": 0.02}


#: Strengths that are tried where a threshold is tuned too.
FEW_REGS = [REGS[k] for k in (1, 2, 3)]
#: Large enough that methods that take minutes are run on a few folds alone.
LARGE = ("human", "education", "science", "rcv1subset2", "rcv1subset5", "ohsumed")


def tree_search(n_labels: int) -> Grid:
    """Search the regularisation strength and the tolerance together.

    Of tolerances that allow the same number of wrong labels one is enough.

    >>> len(tree_search(6)), tree_search(45)["tolerance"]
    (1, [0.02, 0.04, 0.06, 0.08, 0.1])
    """
    allowed = {int(one * n_labels + 1e-9): one for one in reversed(TOLERANCES)}
    tolerances: Grid = {"tolerance": sorted(allowed.values())} if len(allowed) > 1 else {}
    return {"reg": REGS, **tolerances}


#: The thesis's settings, the same on all sets.
SETTINGS: dict[str, dict[str, Any]] = {
    "BSVM": {},
    "BP-MLL": {"hidden": 0.2, "max_epochs": 100},
    "ML-kNN": {"n_neighbors": 10},
    "LIFT": {"ratio": 0.1},
    "SSJDR-MLL": {"n_factors": 100},
    "LLSF": {"alpha": 0.1, "beta": 0.1, "gamma": 0.01},
}
SLOW = ("BP-MLL", "LIFT", "SSJDR-MLL")
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
        "rcv1subset5": ("rcv1subset5-944", 101),
        "ohsumed": ("ohsumed", 23),
    },
    candidates={
        **{
            name: Candidate(name, settings, slow=name in SLOW, forms=name not in SLOW)
            for name, settings in SETTINGS.items()
        },
        "MLC-HMF": Candidate(
            "MLC-HMF", TREE, SIGN, tree_search, ("accuracy", "hamming", "macro_f1"), slow=True
        ),
        "one node, top 1": Candidate(
            "MLC-HMF",
            {"max_depth": 0},
            {**SIGN, "top1_if_empty": True},
            lambda n_labels: {"reg": REGS},
            slow=True,
        ),
    },
    shared={
        **{
            name: Candidate(name, settings, GLOBAL, slow=name in SLOW, forms=name not in SLOW)
            for name, settings in SETTINGS.items()
        },
        "MLC-HMF": Candidate(
            "MLC-HMF", {"tolerance": 0.02}, GLOBAL, lambda n_labels: {"reg": FEW_REGS}, slow=True
        ),
        "one node": Candidate(
            "MLC-HMF", {"max_depth": 0}, GLOBAL, lambda n_labels: {"reg": FEW_REGS}, slow=True
        ),
        "ridge": Candidate("Ridge", {"reg": "auto"}, GLOBAL),
        "kernel": Candidate("Kernel", {"reg": "auto"}, GLOBAL),
        "ensemble": Candidate("Ensemble", {}, GLOBAL, forms=False),
        "ensemble, its own rule": Candidate("Ensemble", {}, {}, forms=False),
    },
    own="MLC-HMF",
    n_folds=10,
    quick=("cal500", "emotions", "genbase", "plant", "medical", "langlog"),
    dense=frozenset({"cal500", "emotions", "plant", "human"}),
    large=frozenset(LARGE),
)
PROTOCOL = (
    "Ten folds, shuffled with seed 0; ± is the standard deviation over folds. As published: the "
    "thesis's settings, and the sign of the score decides. MLC-HMF: all pairs of regularisation "
    "strength and tolerance are tried by cross-validation inside the training folds (on the first "
    "of three folds all, then the best third; the thesis seems to have picked them on the test "
    "folds), and chosen for accuracy, Hamming loss and macro F1, each by itself. Dense features "
    "(cal500, emotions, plant, human) are taken raw or scaled to [0, 1], whichever is better "
    "inside the training folds; for BP-MLL, LIFT and SSJDR-MLL, which take minutes, they are "
    "scaled. These three, MLC-HMF and its single node are run on three of the ten folds of "
    f"{', '.join(LARGE)}. One node, top 1: a single factorisation without a tree, and where it "
    "predicts no label, the best one. With the shared "
    "rule: one threshold for all labels, chosen by three-fold cross-validation inside the training "
    "folds; what the ensemble's own rule does is in the last column. Subset 5 of rcv1 has the 944 "
    "words with the largest sums of TF-IDF; plant and human come in the versions with 978 and "
    "3,106 rows."
)
READING = (
    "Which published leads are thresholds in disguise: that of MLC-HMF's tree under the sign of "
    "the score. A linear method under that rule predicts no label at all for many rows, and the "
    "tree for fewer of them; a single factorisation that gives such rows their best label does "
    "as well on most sets. How much of a lead is left when every method has a tuned threshold, "
    "the differences under both rules tell."
)
LEADS = (("MLC-HMF", "BSVM"), ("MLC-HMF", "LLSF"), ("MLC-HMF", "ridge"))


class TrainingSize(Exhibit):
    name, chapter = "training-size", 5
    title = "Hamming loss over the penalty and the training size"
    #: A difference in Hamming loss that does not matter: a tenth of that between folds of emotions.
    negligible = 0.003
    axes = {"quick": ((0.4, 1.0), REGS), "full": ((0.2, 0.4, 0.6, 0.8, 1.0), REGS)}
    n_splits = {"quick": 1, "full": 10}

    def cells_at(self, scale: Scale, size: float, reg: float) -> list[Cell]:
        return make_splits(
            "label_measures",
            self.n_splits[scale],
            data="emotions",
            protocol={"test": 0.1, "train": size},
            method="MLC-HMF",
            params={**TREE, "reg": reg},
            rule=SIGN,
        )

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        losses = {
            f"{size:.0%}": [self.sample(store, scale, pick("hamming"), size, reg) for reg in REGS]
            for size in self.axes[scale][0]
        }
        means = np.array([[one.mean for one in along] for along in losses.values()])
        best = dict(zip(losses, means.argmin(axis=1).tolist(), strict=True))
        # What one strength for all sizes costs each of them, beside the best one of its own.
        costs = (means - means.min(axis=1, keepdims=True)).max(axis=0)
        shared = int(costs.argmin())
        paired = [along[shared].minus(along[best[name]]) for name, along in losses.items()]
        dearest = max(paired, key=lambda one: one.mean)
        cost = (
            f"{REGS[shared]:g} for all sizes costs at most {format_lead(dearest)} of Hamming loss"
        )
        rows: list[list[Entry | str]] = [
            [name, *(make_entry(one, 3, best=k == best[name]) for k, one in enumerate(along))]
            for name, along in losses.items()
        ]
        labels = ("regularisation strength", "Hamming loss")
        return [
            worst_verdict(
                (judge_cost(one, self.negligible) for one in paired),
                "the best strength is "
                + ", ".join(f"{REGS[k]:g} with {name}" for name, k in best.items())
                + f"; {cost}.",
                "no one regularisation strength suits all training sizes",
            ),
            Text(
                "Emotions: a random tenth of the rows for the test, and a share of the others to "
                f"learn from, {self.n_splits[scale]} times (seeds from 0; the thesis: 3 times), "
                "tolerance 0.02."
            ),
            Figure(
                lambda: curves_figure(REGS, losses, *labels, log_x=True, spreads=False),
                "Hamming loss over the regularisation strength",
                "Hamming loss against the regularisation strength, a curve for each training size.",
            ),
            Table(["training rows", *(f"{reg:g}" for reg in REGS)], rows, "Hamming loss"),
        ]


EXHIBITS = (
    TrainingSize(),
    LabelMeasures(
        "mlc-hmf-sets",
        5,
        TABLE,
        "Hamming loss, accuracy and subset accuracy of MLC-HMF",
        ("hamming", "accuracy", "subset_accuracy"),
        PROTOCOL,
        Retuned(TABLE, "hamming", [*TABLE.data]),
        LEADS,
        READING,
    ),
    LabelMeasures(
        "mlc-hmf-f1",
        5,
        TABLE,
        "Example-based, macro and micro F1 of MLC-HMF",
        ("example_f1", "macro_f1", "micro_f1"),
        PROTOCOL,
        Retuned(TABLE, "macro_f1", [*TABLE.data]),
        LEADS,
        READING,
    ),
    LabelFriedman("mlc-hmf-friedman", 5, TABLE),
    LabelCriticalDifference("mlc-hmf-critical-difference", 5, TABLE),
)
