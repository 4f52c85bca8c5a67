"""Peers with the fit and predict that the benchmarks expect; those not installed are left out."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Self

import numpy as np

from marginmf.ratings.decoders import ANSWERS


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

    def estimate(self, pairs: np.ndarray) -> np.ndarray:
        return np.array([self.model.predict(user, item).est for user, item in pairs.tolist()])

    def predict(self, pairs: np.ndarray) -> np.ndarray:
        return np.rint(self.estimate(pairs))


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

    def estimate(self, pairs: np.ndarray) -> np.ndarray:
        estimates = self.model.predict(pairs[:, 0], pairs[:, 1])
        estimates = np.where(np.isnan(estimates), self.mean, estimates)
        return np.clip(estimates, self.low, self.high)

    def predict(self, pairs: np.ndarray) -> np.ndarray:
        return np.rint(self.estimate(pairs))


class MyFM:
    """myFM's ordered probit factorisation machine: a distribution, and answers from it."""

    def __init__(self, rank: int, n_iter: int) -> None:
        self.rank, self.n_iter = rank, n_iter

    def fit(self, pairs: np.ndarray, ratings: np.ndarray) -> Self:
        import myfm

        self.levels_ = np.unique(ratings)
        self.users, self.items = np.unique(pairs[:, 0]), np.unique(pairs[:, 1])
        groups = [0] * len(self.users) + [1] * len(self.items)
        self.model = myfm.MyFMOrderedProbit(rank=self.rank, random_seed=0).fit(
            self._encoded(pairs),
            np.searchsorted(self.levels_, ratings),
            n_iter=self.n_iter,
            grouping=groups,
        )
        return self

    def predict_proba(self, pairs: np.ndarray) -> np.ndarray:
        distribution = np.clip(self.model.predict_proba(self._encoded(pairs)), 1e-9, 1.0)
        return distribution / distribution.sum(axis=1, keepdims=True)

    def predict(self, pairs: np.ndarray, output: str = "median") -> np.ndarray:
        return ANSWERS["median" if output == "rule" else output](
            self.predict_proba(pairs), self.levels_
        )

    def _encoded(self, pairs: np.ndarray) -> Any:
        """Return one column for each user and each item; what was not seen has none."""
        from scipy.sparse import csr_matrix, hstack

        parts = []
        for ids, column in ((self.users, pairs[:, 0]), (self.items, pairs[:, 1])):
            places = np.minimum(np.searchsorted(ids, column), len(ids) - 1)
            rows = np.flatnonzero(ids[places] == column)
            shape = (len(pairs), len(ids))
            parts.append(csr_matrix((np.ones(len(rows)), (rows, places[rows])), shape=shape))
        return hstack(parts).tocsr()


def with_probabilities() -> dict[str, Callable[[], Any]]:
    """Return the peers installed here that predict distributions."""
    if find_spec("myfm") is None:
        print("(not installed, left out: myFM)\n")
        return {}
    return {"myFM ordered probit, rank 16, 300 iterations": lambda: MyFM(16, 300)}


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
