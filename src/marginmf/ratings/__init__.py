"""Ratings: four max-margin factorisers, their ensemble, and baselines to compare them with.

And, where there are no stars, methods that learn from who has what.
"""

from marginmf.ratings.base import METHODS
from marginmf.ratings.baselines.bpmf import BPMF
from marginmf.ratings.baselines.least_squares import ALS, PMF, BiasOnly
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
    "HMF",
    "METHODS",
    "MMMF",
    "PMF",
    "PMMMF",
    "POSITIVE",
    "BiasOnly",
    "HalvingSearch",
    "ItemKNN",
    "MarginEnsemble",
    "MostPopular",
    "OneClassMMMF",
    "Ratings",
]
