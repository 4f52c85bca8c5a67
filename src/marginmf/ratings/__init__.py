"""Ratings: four max-margin factorisers, their ensemble, and baselines to compare them with."""

from marginmf.ratings.base import METHODS
from marginmf.ratings.baselines import ALS, PMF, BiasOnly
from marginmf.ratings.bmmmf import BMMMF
from marginmf.ratings.data import Ratings
from marginmf.ratings.ensemble import MarginEnsemble
from marginmf.ratings.halving import HalvingSearch
from marginmf.ratings.hmf import HMF
from marginmf.ratings.mmmf import MMMF
from marginmf.ratings.pmmmf import PMMMF

__all__ = [
    "ALS",
    "BMMMF",
    "HMF",
    "METHODS",
    "MMMF",
    "PMF",
    "PMMMF",
    "BiasOnly",
    "HalvingSearch",
    "MarginEnsemble",
    "Ratings",
]
