"""Protocols: which data a model learns from, and which it is judged on.  All of them are seeded.

For ratings, each has ``split(pairs, ratings)``, which yields arrays of row numbers.  `HoldOut`,
`KFold` and `WeakGeneralisation` yield ``(train, test)`` and so are scikit-learn splitters, good for
``cross_val_score(..., cv=...)``.  `StrongGeneralisation` yields ``(train, fold_in, test)``: its
test users are new to the model.  `evaluate` understands all, and judges predicted ratings or, by a
`ListRule`, the lists of `recommend`; `compare_lists` puts the lists of several models side by side.

For label sets, scikit-learn's own splitters serve, and `IterativeStratifiedKFold` keeps every label
equally frequent in all folds.
"""

from marginmf.protocols.list_comparison import ListComparison, compare_lists
from marginmf.protocols.lists import ListRule, ListScores, judge_lists
from marginmf.protocols.ratings import (
    HoldOut,
    KFold,
    StrongGeneralisation,
    WeakGeneralisation,
    evaluate,
)
from marginmf.protocols.splits import SplitProtocol
from marginmf.protocols.stratification import IterativeStratifiedKFold

__all__ = [
    "HoldOut",
    "IterativeStratifiedKFold",
    "KFold",
    "ListComparison",
    "ListRule",
    "ListScores",
    "SplitProtocol",
    "StrongGeneralisation",
    "WeakGeneralisation",
    "compare_lists",
    "evaluate",
    "judge_lists",
]
