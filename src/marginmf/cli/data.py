"""Where the ratings of the demo come from."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from marginmf import datasets
from marginmf.datasets import DatasetUnavailable, RatingsTable

Origin = Literal["movielens", "synthetic", "file"]


@dataclass(frozen=True)
class Source:
    """Ratings, where they came from, and what the user should be told about that."""

    table: RatingsTable
    origin: Origin
    title: str
    note: str | None = None


def demo_ratings(file: Path | None, seed: int, progress: bool) -> Source:
    """Read the file if there is one; else load MovieLens 100K; else make ratings up."""
    if file is not None:
        table = datasets.read_ratings(file)
        return Source(table, "file", table.name)
    title = datasets.dataset_info("ml-100k").title
    try:
        return Source(datasets.load_ratings("ml-100k", progress=progress), "movielens", title)
    except DatasetUnavailable:
        return Source(
            # About as many ratings a user as in MovieLens, on a matrix that takes seconds to fit.
            datasets.make_ratings(500, 400, n_factors=8, observed=0.2, random_state=seed),
            "synthetic",
            "Synthetic ratings",
            f"{title} could not be downloaded, so these are made-up ratings without noise, and all "
            "errors are small; connect to the network, or name a FILE of ratings.",
        )
