"""Methods to compare with: the ones that everybody knows, under the same decision rules."""

from marginmf.labels.baselines.binary_relevance import BinaryRelevance
from marginmf.labels.baselines.classifier_chains import ClassifierChains
from marginmf.labels.baselines.label_space import CPLST, PLST
from marginmf.labels.baselines.mlknn import MLkNN
from marginmf.labels.baselines.ridge import RidgeEmbedding

__all__ = ["CPLST", "PLST", "BinaryRelevance", "ClassifierChains", "MLkNN", "RidgeEmbedding"]
