"""Tables of ratings: columns in file order, and their form as arrays in one ``.npz`` file.

In the file, ``user`` and ``item`` hold indices into ``users`` and ``items``, which hold the ids;
``rating``; ``timestamp``, ``title_ids`` with ``titles``, ``train_idx``, ``test_idx``, ``source``
and the columns of features, such as ``item_features.year``, where there are any. Nothing is
pickled, so a malicious file cannot run anything.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from marginmf._utils.files import atomic_write
from marginmf._utils.ids import as_id_column
from marginmf._utils.parameters import LARGEST_RATING
from marginmf.datasets.files.convert import are_ratings
from marginmf.datasets.files.packed import first_reason, most_bytes, read_arrays

IdArray = npt.NDArray[Any]
#: Columns of one length by their names.
Columns = dict[str, npt.NDArray[Any]]
SPLITS = ("train_idx", "test_idx")
FEATURES = ("user_features", "item_features")


@dataclass(frozen=True, repr=False, eq=False)
class RatingsTable:
    """Ratings with the ids of their owner, in the order of their file.

    Parameters
    ----------
    name : str
        Short name of the dataset, or the name of the file it was read from.
    users, items : array-like of shape (n,)
        The user and the item of each rating. Whole numbers are kept as ``int64``; any other ids are
        kept as they are, in an array of Python objects.
    ratings : array-like of shape (n,)
        The ratings, kept as ``float64``.
    timestamps : array-like of shape (n,), optional
        When each rating was given, kept as ``int64`` (seconds since 1970 in MovieLens).
    titles : dict, optional
        Title of an item by its id.
    train_idx, test_idx : array-like of int, optional
        The rows that the owner of the dataset trains and tests on.
    source : str
        One phrase that says where the ratings came from.
    user_features, item_features : dict of arrays, optional
        What else is known of users and items, as columns by name. The column ``user`` or ``item``
        holds the ids, each once, of those without ratings too.
    columns : dict of str, optional
        What the columns ``user``, ``item``, ``rating`` and ``timestamp`` are called in the file.
    level_names : tuple of str, optional
        What the ratings 1, 2 and so on are called, where the file has words.

    Examples
    --------
    >>> table = RatingsTable("films", ["ann", "bob", "bob"], [7, 7, 9], [4, 5, 1], titles={7: "M"})
    >>> table
    RatingsTable('films': 3 ratings of 2 items by 2 users, levels 1 to 5)
    >>> table.pairs.tolist()
    [['ann', 7], ['bob', 7], ['bob', 9]]
    >>> table.levels.tolist()
    [1.0, 4.0, 5.0]
    """

    name: str
    users: IdArray
    items: IdArray
    ratings: npt.NDArray[np.float64]
    timestamps: npt.NDArray[np.int64] | None = None
    titles: dict[Any, str] | None = None
    source: str = ""
    train_idx: npt.NDArray[np.int64] | None = None
    test_idx: npt.NDArray[np.int64] | None = None
    user_features: Columns | None = None
    item_features: Columns | None = None
    columns: dict[str, str] | None = None
    level_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        columns: Columns = {
            "users": as_id_column(self.users, "user"),
            "items": as_id_column(self.items, "item"),
            "ratings": np.asarray(self.ratings, dtype=np.float64),
        }
        if self.timestamps is not None:
            columns["timestamps"] = np.asarray(self.timestamps, dtype=np.int64)
        shapes = {column: values.shape for column, values in columns.items()}
        if len(set(shapes.values())) > 1 or columns["ratings"].ndim != 1:
            found = ", ".join(f"{column} {shape}" for column, shape in shapes.items())
            raise ValueError(
                f"The columns of a RatingsTable are one-dimensional and of one length, "
                f"but their shapes are: {found}."
            )
        if not are_ratings(columns["ratings"]):
            with np.errstate(invalid="ignore"):
                row = int(np.argmin(np.abs(columns["ratings"]) <= LARGEST_RATING))
            raise ValueError(
                f"The rating in row {row} of a RatingsTable is {columns['ratings'][row]:g}; "
                f"ratings are finite numbers, up to {LARGEST_RATING:g}."
            )
        for part in SPLITS:
            if getattr(self, part) is not None:
                columns[part] = check_rows(getattr(self, part), len(columns["ratings"]), part)
        for column, values in columns.items():
            object.__setattr__(self, column, values)  # the way to fill in a frozen dataclass

    @property
    def pairs(self) -> IdArray:
        """The (user, item) pairs, of shape (n, 2): ``int64`` where both ids are, else objects."""
        return as_pairs(self.users, self.items)

    @property
    def n_users(self) -> int:
        """Number of distinct users."""
        return _n_distinct(self.users)

    @property
    def n_items(self) -> int:
        """Number of distinct items."""
        return _n_distinct(self.items)

    @property
    def levels(self) -> npt.NDArray[np.float64]:
        """The distinct ratings, in ascending order."""
        return np.unique(self.ratings)

    def __len__(self) -> int:
        return len(self.ratings)

    def __repr__(self) -> str:
        text = f"{len(self):,} ratings of {self.n_items:,} items by {self.n_users:,} users"
        if len(self):
            text += f", levels {self.ratings.min():g} to {self.ratings.max():g}"
        if self.source:
            text += f"; {self.source}"
        return f"RatingsTable({self.name!r}: {text})"


def as_pairs(users: IdArray, items: IdArray) -> IdArray:
    """Return pairs of shape (n, 2): ``int64`` where both ids are, else Python objects."""
    both = users.dtype == items.dtype == np.int64
    pairs = np.empty((len(users), 2), dtype=np.int64 if both else object)
    pairs[:, 0], pairs[:, 1] = users, items
    return pairs


def _n_distinct(ids: IdArray) -> int:
    # As Python numbers, millions of ids would take gigabytes; texts are objects anyway.
    return len(np.unique(ids) if ids.dtype == np.int64 else set(ids.tolist()))


def check_rows(rows: Any, n_rows: int, what: str) -> npt.NDArray[np.int64]:
    """Return the indices of rows of a table, or raise ValueError if they are not valid."""
    chosen = np.asarray(rows)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise ValueError(f"{what} must be a list of whole numbers, the indices of rows.")
    if chosen.min(initial=0) < 0:
        raise ValueError(f"{what} names row {chosen.min()}; rows are counted from 0.")
    if chosen.size and chosen.max() >= n_rows:
        raise ValueError(f"{what} names row {chosen.max()}, but the rows are 0 to {n_rows - 1}.")
    return chosen.astype(np.int64)


def write_npz(table: RatingsTable, path: Path) -> None:
    """Write a table; the file appears whole or not at all."""
    users, user = np.unique(_storable(table.users), return_inverse=True)
    items, item = np.unique(_storable(table.items), return_inverse=True)
    arrays: dict[str, Any] = {
        "user": user.astype(np.int32),
        "item": item.astype(np.int32),
        "users": users,
        "items": items,
        "rating": table.ratings,
        "source": np.array(table.source),
        "timestamp": table.timestamps,
    }
    arrays |= {part: getattr(table, part) for part in SPLITS}
    if table.titles is not None:
        arrays["title_ids"] = np.array(list(table.titles))
        arrays["titles"] = np.array(list(table.titles.values()))
    for part in FEATURES:
        for name, column in (getattr(table, part) or {}).items():
            arrays[f"{part}.{name}"] = _storable(column) if column.dtype == object else column
    with atomic_write(path) as file:
        np.savez_compressed(file, **{k: array for k, array in arrays.items() if array is not None})


def read_npz(path: Path, name: str) -> RatingsTable:
    """Read a table; if the file does not say its source, that is the file."""
    with open(path, "rb") as file:
        arrays = read_arrays(file, path, most_bytes(path.stat().st_size, None))
    try:
        others: dict[str, Any] = {part: arrays.get(part) for part in SPLITS}
        for part in FEATURES:
            named = {key: key.removeprefix(f"{part}.") for key in arrays}
            columns = {named[key]: _as_text(arrays[key]) for key in arrays if key != named[key]}
            others[part] = columns or None
        if "titles" in arrays:
            titles = zip(arrays["title_ids"].tolist(), arrays["titles"].tolist(), strict=True)
            others["titles"] = dict(titles)
        return RatingsTable(
            name,
            as_id_column(_as_text(arrays["users"]), "user")[arrays["user"]],
            as_id_column(_as_text(arrays["items"]), "item")[arrays["item"]],
            arrays["rating"],
            timestamps=arrays.get("timestamp"),
            source=str(arrays.get("source", f"read from {path}")),
            **others,
        )
    except Exception as error:  # arrays of any type and shape can fail anywhere in NumPy
        reason = first_reason(error)
        raise ValueError(f"{path} is not a ratings file, or is damaged ({reason}).") from error


def ratings_fingerprint(table: RatingsTable) -> str:
    """Return the SHA-256 of users, items, ratings and timestamps, in 8 bytes or lines of UTF-8."""
    digest = hashlib.sha256()
    for ids in (table.users, table.items):
        if ids.dtype == np.int64:
            digest.update(ids.astype("<i8").tobytes())
        else:
            digest.update("\n".join(map(str, ids.tolist())).encode())
    digest.update(table.ratings.astype("<f8").tobytes())
    if table.timestamps is not None:
        digest.update(table.timestamps.astype("<i8").tobytes())
    return digest.hexdigest()


def _storable(ids: IdArray) -> IdArray:
    return ids if ids.dtype == np.int64 else ids.astype(np.str_)


def _as_text(ids: IdArray) -> IdArray:
    """Return ids as text where they were stored as bytes."""
    return np.char.decode(ids, "latin-1") if ids.dtype.kind == "S" else ids
