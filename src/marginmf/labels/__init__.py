"""Labels: rows that have sets of labels, and a decision rule that every method shares."""

from marginmf.labels.grople import GroPLE
from marginmf.labels.mlchmf import MLCHMF
from marginmf.labels.tree import EmbeddingTree
from marginmf.labels.tuned import DecisionTuned

__all__ = ["MLCHMF", "DecisionTuned", "EmbeddingTree", "GroPLE"]
