"""The methods that the demo compares, and how strongly each is regularised."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

from marginmf.cli.data import Origin
from marginmf.ratings import ALS, HMF, MMMF, PMMMF, BiasOnly, Ratings

#: What each method is, in a few words.
DESCRIPTIONS = {
    "BiasOnly": "averages of users and items",
    "ALS": "ordinary matrix factorisation",
    "ALS with biases": "the same on top of the averages",
    "MMMF": "thresholds of each user's own",
    "PMMMF": "a prototype score for each level",
    "HMF": "a factorisation for each step",
}
MOST_FACTORS = 100
#: HMF's weight where the number of stages is not known beforehand: about the mean of the four.
HMF_WEIGHT = 12.0
#: Made-up ratings have no noise, and so need far less regularisation than people's.
NOISE_FREE = 0.2
#: The noise of `regularisation`, for the four fifths of MovieLens 100K that are learned from.
MOVIELENS_NOISE = sqrt(80_000 / 943) + sqrt(80_000 / 1_682)


@dataclass(frozen=True)
class Regularisation:
    """The weight of each method's penalty; by default what suits MovieLens 100K."""

    als: float = 25.0
    mmmf: float = 15.0
    pmmmf: float = 40.0
    hmf: float | tuple[float, ...] = (6.0, 10.0, 17.0, 14.0)


def demo_methods(
    train: Ratings, origin: Origin, seed: int, n_jobs: int, progress: bool
) -> dict[str, Any]:
    """Return the methods to compare, ready to be fitted, by name."""
    reg = regularisation(train, origin)
    n_factors = min(MOST_FACTORS, train.n_users, train.n_items)
    shared: dict[str, Any] = {
        "n_factors": n_factors,
        "random_state": seed,
        "n_jobs": n_jobs,
        "verbose": int(progress),
    }
    return {
        "BiasOnly": BiasOnly(n_jobs=n_jobs),
        "ALS": ALS(reg=reg.als, **shared),
        "ALS with biases": ALS(reg=reg.als, bias=True, **shared),
        "MMMF": MMMF(reg=reg.mmmf, **shared),
        "PMMMF": PMMMF(reg=reg.pmmmf, **shared),
        "HMF": HMF(reg=reg.hmf, **shared),
    }


def regularisation(train: Ratings, origin: Origin) -> Regularisation:
    """Return weights of the penalties that suit the data.

    A penalty has to keep out what noise alone puts into the factors.  The largest singular value
    of a sparse matrix of independent noise is about the square root of the ratings a user plus
    that of the ratings an item, so weights that are right for MovieLens 100K are carried over to
    other data in that proportion.
    """
    base = Regularisation()
    if origin == "movielens":
        return base
    n = len(train)
    scale = (sqrt(n / train.n_users) + sqrt(n / train.n_items)) / MOVIELENS_NOISE
    if origin == "synthetic":
        scale *= NOISE_FREE
    return Regularisation(
        base.als * scale, base.mmmf * scale, base.pmmmf * scale, HMF_WEIGHT * scale
    )
