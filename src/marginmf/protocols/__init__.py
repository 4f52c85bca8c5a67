"""Protocols: which data a model learns from, and which it is judged on.  All of them are seeded.

For ratings, each has ``split(pairs, ratings)``, which yields arrays of row numbers.  `HoldOut`,
`KFold`, `WeakGeneralisation` and `TimeSplit` yield ``(train, test)`` and so are scikit-learn
splitters, good for ``cross_val_score(..., cv=...)``.  `StrongGeneralisation` yields
``(train, fold_in, test)``: its test users are new to the model.  For label sets, scikit-learn's own
splitters serve, and `IterativeStratifiedKFold` keeps every label equally frequent in all folds.

`compare` and `compare_labels` judge several models on the same splits; `evaluate` judges one.
Ratings are judged as they are predicted or, by a `ListRule`, as the lists of `recommend`.
"""

from marginmf.protocols.comparison import Comparison
from marginmf.protocols.evaluation import compare, compare_labels, evaluate
from marginmf.protocols.lists import ListRule, ListScores, judge_lists
from marginmf.protocols.splits import RatingsSplit, SplitResult, split_ratings
from marginmf.protocols.splitters import (
    HoldOut,
    IterativeStratifiedKFold,
    KFold,
    SplitProtocol,
    StrongGeneralisation,
    TimeSplit,
    WeakGeneralisation,
)

__all__ = [
    "Comparison",
    "HoldOut",
    "IterativeStratifiedKFold",
    "KFold",
    "ListRule",
    "ListScores",
    "RatingsSplit",
    "SplitProtocol",
    "SplitResult",
    "StrongGeneralisation",
    "TimeSplit",
    "WeakGeneralisation",
    "compare",
    "compare_labels",
    "evaluate",
    "judge_lists",
    "split_ratings",
]
