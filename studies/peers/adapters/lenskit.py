"""LensKit."""

from typing import Any

import numpy as np
import pandas as pd
from lenskit.als import BiasedMFScorer, ImplicitMFScorer
from lenskit.basic import PopScorer
from lenskit.batch import predict, recommend
from lenskit.data import from_interactions_df
from lenskit.knn import EASEScorer, ItemKNNScorer, SLIMScorer
from lenskit.pipeline import predict_pipeline, topn_pipeline
from lenskit.training import TrainingOptions

from studies.peers.adapters.common import Feedback, Scale

PACKAGES = ("lenskit", "torch", "numpy", "scipy", "pandas")


class BiasedMF:
    """Biased matrix factorisation by alternating least squares; bias alone where that is silent."""

    scorer: Any = BiasedMFScorer
    make_pipeline = staticmethod(predict_pipeline)

    def __init__(self, threads: int, **options: Any) -> None:
        self.pipeline = self.make_pipeline(self.scorer(**options))

    def prepare(self, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> None:
        frame = pd.DataFrame({"user_id": users, "item_id": items, "rating": ratings})
        self.data = from_interactions_df(frame)
        self.scale = Scale(ratings)

    def fit(self) -> None:
        self.pipeline.train(self.data, TrainingOptions(rng=0))

    def answer(self, users: np.ndarray, items: np.ndarray) -> dict[str, np.ndarray]:
        asked = pd.DataFrame({"user_id": users, "item_id": items})
        # One job: it would start processes that take longer than the work.
        found = predict(self.pipeline, asked, n_jobs=1).to_df()
        joined = asked.merge(found[["user_id", "item_id", "score"]], how="left")
        return {"estimate": self.scale(joined["score"].to_numpy(np.float64))}


class ItemKNN(BiasedMF):
    """Neighbourhoods of items."""

    scorer = ItemKNNScorer


class Server(BiasedMF):
    """The ten best of what a user has not rated."""

    make_pipeline = staticmethod(topn_pipeline)

    def answer(self, users: np.ndarray, n: np.ndarray) -> dict[str, np.ndarray]:
        found = recommend(self.pipeline, users.tolist(), n=int(n), n_jobs=1).to_df()
        return {"users": found["user_id"].to_numpy(), "items": found["item_id"].to_numpy()}


SCORERS = {
    "implicit-mf": ImplicitMFScorer,
    "item-knn": ItemKNNScorer,
    "ease": EASEScorer,
    "slim": SLIMScorer,
    "popular": PopScorer,
}


class Lists(Server):
    """A scorer by name, in the pipeline for lists."""

    def __init__(self, threads: int, scorer: str, likes: bool = False, **options: Any) -> None:
        self.pipeline, self.likes = topn_pipeline(SCORERS[scorer](**options)), likes

    def prepare(self, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> None:
        self.feedback = learned = Feedback(users, items, ratings, self.likes)
        frame = pd.DataFrame({"user_id": learned.users, "item_id": learned.items})
        self.data = from_interactions_df(frame)

    def answer(self, users: np.ndarray, n: np.ndarray) -> dict[str, np.ndarray]:
        found = super().answer(users, n + self.feedback.n_more)
        columns = (found[name].astype(np.int64) for name in ("users", "items"))
        return self.feedback.lists(users, *columns, int(n))
