"""LensKit."""

from typing import Any

import numpy as np
import pandas as pd
from lenskit.als import BiasedMFScorer
from lenskit.batch import predict, recommend
from lenskit.data import from_interactions_df
from lenskit.knn import ItemKNNScorer
from lenskit.pipeline import predict_pipeline, topn_pipeline
from lenskit.training import TrainingOptions

from benchmarks.adapters.common import Scale

PACKAGES = ("lenskit", "torch", "numpy", "scipy", "pandas")


class BiasedMF:
    """Biased matrix factorisation by alternating least squares; bias alone where that is silent."""

    scorer: Any = BiasedMFScorer

    def __init__(self, threads: int, **options: Any) -> None:
        self.pipeline = self._pipeline(self.scorer(**options))

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

    def _pipeline(self, scorer: Any) -> Any:
        return predict_pipeline(scorer)


class ItemKNN(BiasedMF):
    """Neighbourhoods of items."""

    scorer = ItemKNNScorer


class Server(BiasedMF):
    """The ten best of what a user has not rated."""

    def answer(self, users: np.ndarray, n: np.ndarray) -> dict[str, np.ndarray]:  # type: ignore[override]
        found = recommend(self.pipeline, users.tolist(), n=int(n), n_jobs=1).to_df()
        return {"users": found["user_id"].to_numpy(), "items": found["item_id"].to_numpy()}

    def _pipeline(self, scorer: Any) -> Any:
        return topn_pipeline(scorer)
