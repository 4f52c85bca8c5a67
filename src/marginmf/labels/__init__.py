"""Labels: rows that have sets of labels, and a decision rule that every method shares.

`METHODS` has every method by its name on the command line.  A new one is a class in a file of its
own, decorated with `marginmf.labels.base.method`.
"""

from marginmf.labels.base import METHODS
from marginmf.labels.baselines.binary import BinaryRelevance, ClassifierChains
from marginmf.labels.baselines.ridge import CPLST, PLST, RidgeEmbedding
from marginmf.labels.grople import GroPLE
from marginmf.labels.mlchmf import MLCHMF
from marginmf.labels.neighbours import MLkNN
from marginmf.labels.tree import EmbeddingTree
from marginmf.labels.wrappers import DecisionTuned, Scaled

__all__ = [
    "CPLST",
    "METHODS",
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
