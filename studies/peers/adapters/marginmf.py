"""Our own ratings methods."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import marginmf.ratings
from studies.peers.adapters.common import Feedback, set_known

PACKAGES = ("marginmf", "numpy", "scipy", "numba", "scikit-learn")


class Estimator:
    """An estimator by name, for an ensemble with the kind of its members.

    With ``calibrated``, `fit` includes learning probabilities.
    """

    def __init__(
        self,
        threads: int,
        estimator: str,
        calibrated: bool = False,
        member: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if member is not None:
            options["members"] = [make_estimator(**member)]
        made = make_estimator(estimator, **options)
        self.model = set_known(made, n_jobs=threads, random_state=0, calibrate=calibrated)
        self.calibrated = calibrated

    def prepare(self, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> None:
        self.pairs, self.ratings = np.column_stack([users, items]), ratings

    def fit(self) -> None:
        self.model.fit(self.pairs, self.ratings)

    def answer(self, users: np.ndarray, items: np.ndarray) -> dict[str, np.ndarray]:
        pairs = np.column_stack([users, items])
        more = {"distribution": self.model.predict_proba(pairs)} if self.calibrated else {}
        return {"rule": self.model.predict(pairs, output="rule"), **more}

    def also(self, users: np.ndarray, items: np.ndarray) -> dict[str, np.ndarray]:
        """Return the means of probabilities, which may cost another fit."""
        pairs = np.column_stack([users, items])
        return {"estimate": self.model.predict(pairs, output="mean")}


class Described(Estimator):
    """The same with attributes of users and items."""

    def describe(self, **side: np.ndarray) -> None:
        self.tables = {
            f"{kind}_features": (side[f"{kind}_ids"], side[f"{kind}_features"])
            for kind in ("user", "item")
            if len(side[f"{kind}_ids"])
        }

    def fit(self) -> None:
        self.model.fit(self.pairs, self.ratings, **self.tables)


def make_estimator(estimator: str, **options: Any) -> Any:
    return getattr(marginmf.ratings, estimator)(**options)


class Server(Estimator):
    """Lists of the best items."""

    def __init__(self, threads: int, estimator: str, **options: Any) -> None:
        super().__init__(threads, estimator, calibrated=True, **options)

    def answer(self, users: np.ndarray, n: np.ndarray) -> dict[str, np.ndarray]:
        lists = self.model.recommend(users, n=int(n), unknown="fallback")
        return {"users": np.asarray(lists["user"]), "items": np.asarray(lists["item"])}

    also = None  # the lists are all there is


class Lists(Server):
    """Lists of the best items, ranked by what ``by`` names; None is the default of the library."""

    def __init__(self, threads: int, estimator: str, by: str | None = None, **options: Any) -> None:
        super().__init__(threads, estimator, **options)
        self.ranking = {} if by is None else {"by": by}

    def prepare(self, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> None:
        super().prepare(users, items, ratings)
        self.feedback = Feedback(users, items, ratings, likes=False)

    def answer(self, users: np.ndarray, n: np.ndarray) -> dict[str, np.ndarray]:
        found = self.model.recommend(users, n=int(n), unknown="fallback", **self.ranking)
        columns = (np.asarray(found[name]) for name in ("user", "item"))
        return self.feedback.lists(users, *columns, int(n))
