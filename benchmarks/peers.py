"""Peers with the fit and predict that the benchmarks expect; those not installed are left out."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Self

import numpy as np


class SurpriseSVD:
    """Surprise's SVD, its estimates rounded to the nearest star."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def fit(self, pairs: np.ndarray, ratings: np.ndarray) -> Self:
        from surprise import SVD, Dataset, Reader
        from surprise.dataset import DatasetAutoFolds

        # Rows are sorted by user: every peer is given the order that suits it.
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        reader = Reader(rating_scale=(ratings.min(), ratings.max()))
        data = DatasetAutoFolds.__new__(DatasetAutoFolds)
        Dataset.__init__(data, reader)
        data.has_been_split = False
        data.raw_ratings = [
            (user, item, rating, None)
            for (user, item), rating in zip(
                pairs[order].tolist(), ratings[order].tolist(), strict=True
            )
        ]
        self.model = SVD(random_state=0, **self.settings).fit(data.build_full_trainset())
        return self

    def predict(self, pairs: np.ndarray) -> np.ndarray:
        return np.rint([self.model.predict(user, item).est for user, item in pairs.tolist()])


class Cmfrec:
    """cmfrec's collective factorisation, its estimates rounded to the nearest star."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def fit(self, pairs: np.ndarray, ratings: np.ndarray) -> Self:
        import pandas as pd
        from cmfrec import CMF

        frame = pd.DataFrame({"UserId": pairs[:, 0], "ItemId": pairs[:, 1], "Rating": ratings})
        self.low, self.high = ratings.min(), ratings.max()
        self.mean = ratings.mean()
        self.model = CMF(nthreads=1, verbose=False, random_state=0, **self.settings).fit(frame)
        return self

    def predict(self, pairs: np.ndarray) -> np.ndarray:
        estimates = self.model.predict(pairs[:, 0], pairs[:, 1])
        estimates = np.where(np.isnan(estimates), self.mean, estimates)
        return np.clip(np.rint(estimates), self.low, self.high)


def available() -> dict[str, Callable[[], Any]]:
    """Return the peers that are installed here; say which are not."""
    known = {
        "surprise": {
            "Surprise SVD": lambda: SurpriseSVD(),
            "Surprise SVD, tuned": lambda: SurpriseSVD(
                n_factors=100, n_epochs=60, lr_all=0.01, reg_all=0.1
            ),
        },
        "cmfrec": {
            "cmfrec, tuned": lambda: Cmfrec(
                k=100, lambda_=0.1, scale_lam=True, add_implicit_features=True
            ),
        },
    }
    found: dict[str, Callable[[], Any]] = {}
    for module, methods in known.items():
        if find_spec(module) is None:
            print(f"(not installed, left out: {', '.join(methods)})\n")
        else:
            found |= methods
    return found
