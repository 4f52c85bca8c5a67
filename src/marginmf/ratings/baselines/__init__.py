"""Ordinary methods that the max-margin factorisers are compared with."""

from marginmf.ratings.baselines.bias import BiasOnly
from marginmf.ratings.baselines.least_squares import ALS, PMF

__all__ = ["ALS", "PMF", "BiasOnly"]
