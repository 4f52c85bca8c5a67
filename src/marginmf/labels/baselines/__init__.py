"""Methods to compare with: the ones that everybody knows, under the same decision rules."""

from marginmf.labels.baselines.binary import BinaryRelevance, ClassifierChains
from marginmf.labels.baselines.mlknn import MLkNN
from marginmf.labels.baselines.ridge import CPLST, PLST, RidgeEmbedding

__all__ = ["CPLST", "PLST", "BinaryRelevance", "ClassifierChains", "MLkNN", "RidgeEmbedding"]
