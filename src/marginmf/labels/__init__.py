"""Labels: rows that have sets of labels, and a decision rule that every method shares."""

from marginmf.labels.baselines import (
    CPLST,
    PLST,
    BinaryRelevance,
    ClassifierChains,
    MLkNN,
    RidgeEmbedding,
)
from marginmf.labels.grople import GroPLE
from marginmf.labels.mlchmf import MLCHMF
from marginmf.labels.scaled import Scaled
from marginmf.labels.tree import EmbeddingTree
from marginmf.labels.tuned import DecisionTuned

__all__ = [
    "CPLST",
    "MLCHMF",
    "PLST",
    "BinaryRelevance",
    "ClassifierChains",
    "DecisionTuned",
    "EmbeddingTree",
    "GroPLE",
    "MLkNN",
    "RidgeEmbedding",
    "Scaled",
]
