"""Spark's alternating least squares, on this machine alone."""

import os
import sys
from typing import Any

import numpy as np
import pandas as pd
from pyspark.ml import recommendation
from pyspark.sql import SparkSession

from studies.peers.adapters.common import Scale

PACKAGES = ("pyspark", "numpy", "pandas", "pyarrow")


class ALS:
    def __init__(self, threads: int, **options: Any) -> None:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        self.session = (
            SparkSession.builder.master(f"local[{threads}]")
            .config("spark.driver.memory", "4g")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", str(threads))
            .config("spark.sql.execution.arrow.pyspark.enabled", "true")
            .getOrCreate()
        )
        self.session.sparkContext.setLogLevel("ERROR")
        self.options = {"numUserBlocks": threads, "numItemBlocks": threads, **options}

    def prepare(self, users: np.ndarray, items: np.ndarray, ratings: np.ndarray) -> None:
        frame = pd.DataFrame(
            {"user": users.astype(np.int32), "item": items.astype(np.int32), "rating": ratings}
        )
        self.scale = Scale(ratings)
        self.frame = self.session.createDataFrame(frame).cache()
        self.frame.count()  # it is lazy, and would be built during the fit

    def fit(self) -> None:
        columns = {"userCol": "user", "itemCol": "item", "ratingCol": "rating"}
        self.model = recommendation.ALS(seed=0, **columns, **self.options).fit(self.frame)

    def answer(self, users: np.ndarray, items: np.ndarray) -> dict[str, np.ndarray]:
        numbered = {"row": np.arange(len(users)), "user": users, "item": items}
        frame = self.session.createDataFrame(pd.DataFrame(numbered).astype(np.int32))
        found = self.model.transform(frame).select("row", "prediction").toPandas()
        estimates = np.full(len(users), np.nan)
        estimates[found["row"].to_numpy()] = found["prediction"].to_numpy()
        return {"estimate": self.scale(estimates)}
