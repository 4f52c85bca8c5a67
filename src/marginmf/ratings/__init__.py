"""Ratings: four max-margin factorisers and the baselines that they are compared with."""

from marginmf.ratings.baselines import ALS, PMF, BiasOnly
from marginmf.ratings.bmmmf import BMMMF
from marginmf.ratings.data import Ratings
from marginmf.ratings.hmf import HMF
from marginmf.ratings.mmmf import MMMF
from marginmf.ratings.pmmmf import PMMMF

__all__ = ["ALS", "BMMMF", "HMF", "MMMF", "PMF", "PMMMF", "BiasOnly", "Ratings"]
