"""Honest models, small and of every class, that attacks start from."""

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import label_models
from marginmf.datasets import make_ratings
from marginmf.ratings import (
    ALS,
    BMMMF,
    BPMF,
    EASE,
    GPLVM,
    HMF,
    IPMMMF,
    MMMF,
    NMF,
    PMF,
    PMMMF,
    SVD,
    URP,
    Attitude,
    BiasOnly,
    GibbsIPMMMF,
    GibbsMMMF,
    ImputedSVD,
    ItemKNN,
    MarginEnsemble,
    MostPopular,
    OneClassMMMF,
)

_QUICK: dict[str, Any] = {"random_state": 0, "max_iter": 5, "n_jobs": 1}
_CHAIN: dict[str, Any] = {"random_state": 0, "n_burn": 2, "n_samples": 3, "thin": 1, "n_jobs": 1}
#: The pairs and stars of all ratings models.
TABLE = make_ratings(30, 20, n_factors=2, observed=0.4, random_state=0)
PAIRS = [(f"user {user:02d}", f"item {item:02d}") for user, item in TABLE.pairs]
STARS = TABLE.ratings


def ratings_models() -> dict[str, Any]:
    """Return unfitted estimators of ratings, and of who has what, by name."""
    return {
        "hmf": HMF(3, np.array([1.0, 2.0, 2.0, 1.0]), **_QUICK),
        "hmf implicit": HMF(3, 1.0, implicit="both", reg_implicit=5.0, **_QUICK),
        "mmmf": MMMF(3, 1.0, **_QUICK),
        "mmmf bare": MMMF(3, 1.0, calibrate=False, dtype="float64", **_QUICK),
        "pmmmf": PMMMF(3, 1.0, **_QUICK),
        "als": ALS(3, 2.0, bias=True, **_QUICK),
        "pmf": PMF(3, 2.0, **_QUICK),
        "members": MarginEnsemble(("mmmf",), n_estimators=2, n_factors=2, random_state=0, n_jobs=1),
        "bias": BiasOnly(),
        "bpmf": BPMF(3, **_CHAIN),
        "gibbs mmmf": GibbsMMMF(3, **_CHAIN),
        "gibbs mmmf em": GibbsMMMF(3, solver="em", **_CHAIN),
        "gibbs ipmmmf": GibbsIPMMMF(max_factors=6, **_CHAIN),
        "ipmmmf": IPMMMF(4, 1.0, **_QUICK),
        "ibpmmmf": IPMMMF(4, 1.0, bayesian=True, **_QUICK),
        "urp": URP(2, **_QUICK),
        "attitude": Attitude(2, **_QUICK),
        "gplvm": GPLVM(2, **_QUICK | {"max_iter": 2}),
        "nmf": NMF(2, **_QUICK),
        "nmf kl": NMF(2, loss="kl", **_QUICK),
        "svd": SVD(3, **_QUICK),
        "imputed svd": ImputedSVD(3, n_jobs=1),
        "popular": MostPopular(),
        "itemknn": ItemKNN(5, level=3),
        "ease": EASE(5.0, level=3, n_jobs=1),
        "ease sparse": EASE(5.0, level=3, n_neighbours=4, n_jobs=1),
        "oneclass": OneClassMMMF(3, n_jobs=1),
    }


def _two_levels() -> Any:
    return BMMMF(3, 1.0, **_QUICK).fit(PAIRS, np.where(STARS > 3, 1.0, -1.0))


def _with_features() -> Any:
    users = {"user": np.unique([user for user, _ in PAIRS])}
    ages = 20.0 + np.arange(len(users["user"])) % 7
    jobs = np.array(["cook", "clerk", "nurse"])[np.arange(len(ages)) % 3]
    model = MMMF(3, 1.0, reg_features=2.0, **_QUICK)
    return model.fit(PAIRS, STARS, user_features={**users, "age": ages, "job": jobs})


def _with_numbers() -> Any:
    return MMMF(3, 1.0, **_QUICK).fit(TABLE.pairs, STARS)


#: Models that need data of their own.
APART = {"bmmmf": _two_levels, "mmmf features": _with_features, "mmmf numbers": _with_numbers}


@cache
def fitted(name: str) -> Any:
    """Return a fitted model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in APART:
            return APART[name]()
        if name in ratings_models():
            return ratings_models()[name].fit(PAIRS, STARS)
        return label_models.fitted_labels(name)


NAMES = (*ratings_models(), *APART, *label_models.estimators())


def save_all(folder: Path) -> None:
    """Save every model in a folder, under its place in `NAMES`."""
    for name in NAMES:
        fitted(name).save(path_of(folder, name))


def path_of(folder: Path, name: str) -> Path:
    """Return where `save_all` puts a model."""
    return folder / f"{NAMES.index(name):02d}.marginmf"
