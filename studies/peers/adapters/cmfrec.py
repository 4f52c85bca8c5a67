"""cmfrec."""

from typing import Any

import cmfrec
import numpy as np
import pandas as pd

from studies.peers.adapters.common import Scale, best_of_each

PACKAGES = ("cmfrec", "numpy", "scipy", "pandas")


class CMF:
    def __init__(self, threads: int, **options: Any) -> None:
        self.model = cmfrec.CMF(nthreads=threads, verbose=False, random_state=0, **options)

    def prepare(self, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> None:
        self.frame = pd.DataFrame({"UserId": users, "ItemId": items, "Rating": ratings})
        self.scale = Scale(ratings)

    def fit(self) -> None:
        self.model.fit(self.frame)

    def answer(self, users: np.ndarray, items: np.ndarray) -> dict[str, np.ndarray]:
        return {"estimate": self.scale(self.model.predict(users, items))}


class Described(CMF):
    """The same with attributes of users and items."""

    def describe(self, **side: np.ndarray) -> None:
        self.attributes = {
            name: pd.DataFrame(side[f"{kind}_features"])
            .rename(columns=str)
            .assign(**{key: side[f"{kind}_ids"]})
            for name, kind, key in (("U", "user", "UserId"), ("I", "item", "ItemId"))
            if len(side[f"{kind}_ids"])
        }

    def fit(self) -> None:
        self.model.fit(self.frame, **self.attributes)


class Server(CMF):
    def answer(self, users: np.ndarray, n: np.ndarray) -> dict[str, np.ndarray]:
        # The rows are sorted by user.
        rated = self.frame["UserId"].to_numpy()
        items, starts = self.frame["ItemId"].to_numpy(), np.searchsorted(rated, users)
        seen = dict(zip(users.tolist(), np.split(items, starts[1:]), strict=True))

        def best(user: int) -> np.ndarray:
            return np.asarray(self.model.topN(user, n=int(n), exclude=seen[user]))

        return best_of_each(users, int(n), best)
