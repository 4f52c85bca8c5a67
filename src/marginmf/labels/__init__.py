"""Labels: rows that have sets of labels, and a decision rule that every method shares.

`METHODS` has every method by its name on the command line.  A new one is a class in a file of its
own, decorated with `marginmf.labels.base.method`.
"""

from marginmf.labels.base import METHODS
from marginmf.labels.baselines.binary import BinaryRelevance, ClassifierChains
from marginmf.labels.baselines.boosting import AdaBoostMH, AdaBoostMR
from marginmf.labels.baselines.codes import CSSP, FaIE
from marginmf.labels.baselines.labelsets import LabelPowerset, RAkEL
from marginmf.labels.baselines.leml import LEML
from marginmf.labels.baselines.lift import LIFT
from marginmf.labels.baselines.llsf import LLSF
from marginmf.labels.baselines.mlsf import MLSF
from marginmf.labels.baselines.network import BPMLL
from marginmf.labels.baselines.pairwise import CLR
from marginmf.labels.baselines.ridge import CPLST, PLST, RidgeEmbedding
from marginmf.labels.baselines.ssjdr import SSJDR
from marginmf.labels.baselines.trees import MLDT
from marginmf.labels.ensemble import LabelEnsemble
from marginmf.labels.grople import GroPLE
from marginmf.labels.kernels import KernelEmbedding, KernelFeatures
from marginmf.labels.mlchmf import MLCHMF
from marginmf.labels.neighbours import MLkNN
from marginmf.labels.tree import EmbeddingTree
from marginmf.labels.wrappers import DecisionTuned, Scaled

__all__ = [
    "BPMLL",
    "CLR",
    "CPLST",
    "CSSP",
    "LEML",
    "LIFT",
    "LLSF",
    "METHODS",
    "MLCHMF",
    "MLDT",
    "MLSF",
    "PLST",
    "SSJDR",
    "AdaBoostMH",
    "AdaBoostMR",
    "BinaryRelevance",
    "ClassifierChains",
    "DecisionTuned",
    "EmbeddingTree",
    "FaIE",
    "GroPLE",
    "KernelEmbedding",
    "KernelFeatures",
    "LabelEnsemble",
    "LabelPowerset",
    "MLkNN",
    "RAkEL",
    "RidgeEmbedding",
    "Scaled",
]
