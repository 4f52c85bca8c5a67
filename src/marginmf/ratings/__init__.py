"""Ratings: four max-margin factorisers, their ensemble, and baselines to compare them with.

And, where there are no stars, methods that learn from who has what.
"""

from marginmf.ratings.base import METHODS
from marginmf.ratings.baselines.attitude import Attitude
from marginmf.ratings.baselines.bpmf import BPMF
from marginmf.ratings.baselines.gibbs_ipmmmf import GibbsIPMMMF
from marginmf.ratings.baselines.gibbs_mmmf import GibbsMMMF
from marginmf.ratings.baselines.gplvm import GPLVM
from marginmf.ratings.baselines.ipmmmf import IPMMMF
from marginmf.ratings.baselines.least_squares import ALS, PMF, BiasOnly
from marginmf.ratings.baselines.nmf import NMF
from marginmf.ratings.baselines.svd import SVD, ImputedSVD
from marginmf.ratings.baselines.urp import URP
from marginmf.ratings.data import Ratings
from marginmf.ratings.ensemble import MarginEnsemble
from marginmf.ratings.halving import HalvingSearch
from marginmf.ratings.item_based import EASE, ItemKNN
from marginmf.ratings.max_margin import BMMMF, HMF, MMMF, PMMMF
from marginmf.ratings.one_class import OneClassMMMF
from marginmf.ratings.positive import POSITIVE, MostPopular

__all__ = [
    "ALS",
    "BMMMF",
    "BPMF",
    "EASE",
    "GPLVM",
    "HMF",
    "IPMMMF",
    "METHODS",
    "MMMF",
    "NMF",
    "PMF",
    "PMMMF",
    "POSITIVE",
    "SVD",
    "URP",
    "Attitude",
    "BiasOnly",
    "GibbsIPMMMF",
    "GibbsMMMF",
    "HalvingSearch",
    "ImputedSVD",
    "ItemKNN",
    "MarginEnsemble",
    "MostPopular",
    "OneClassMMMF",
    "Ratings",
]
