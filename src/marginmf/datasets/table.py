"""The form every ratings dataset takes: three columns in file order, and what is known of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from marginmf._utils.ids import as_id_column

IdArray = npt.NDArray[Any]
#: Columns of one length by their names.
Columns = dict[str, npt.NDArray[Any]]


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
        The places of the ratings that the owner of the dataset trains and tests on.
    source : str
        One phrase that says where the ratings came from.
    user_features, item_features : dict of arrays, optional
        What else is known of users and items, as columns by name. The column ``user`` or ``item``
        holds the ids, each once, of those without ratings too.

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

    def __post_init__(self) -> None:
        columns: dict[str, npt.NDArray[Any]] = {
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
        for part in ("train_idx", "test_idx"):
            places = getattr(self, part)
            if places is not None:
                columns[part] = _places(places, len(columns["ratings"]), part)
        for column, values in columns.items():
            object.__setattr__(self, column, values)  # the way to fill in a frozen dataclass

    @property
    def pairs(self) -> IdArray:
        """The (user, item) pairs, of shape (n, 2): ``int64`` where both ids are, else objects."""
        return as_pairs(self.users, self.items)

    @property
    def n_users(self) -> int:
        """Number of different users."""
        return _n_different(self.users)

    @property
    def n_items(self) -> int:
        """Number of different items."""
        return _n_different(self.items)

    @property
    def levels(self) -> npt.NDArray[np.float64]:
        """The different ratings, in ascending order."""
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
    both = users.dtype == np.int64 and items.dtype == np.int64
    pairs = np.empty((len(users), 2), dtype=np.int64 if both else object)
    pairs[:, 0], pairs[:, 1] = users, items
    return pairs


def _n_different(ids: IdArray) -> int:
    # Millions of Python numbers take minutes' worth of memory; texts are objects anyway.
    return len(np.unique(ids) if ids.dtype == np.int64 else set(ids.tolist()))


def _places(places: Any, n_ratings: int, what: str) -> npt.NDArray[np.int64]:
    chosen = np.asarray(places)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise ValueError(f"{what} must be a list of whole numbers, the places of ratings.")
    if chosen.size and not 0 <= int(chosen.min()) <= int(chosen.max()) < n_ratings:
        raise ValueError(
            f"{what} goes from {chosen.min()} to {chosen.max()}, but ratings have the places 0 to "
            f"{n_ratings - 1}."
        )
    return chosen.astype(np.int64)
