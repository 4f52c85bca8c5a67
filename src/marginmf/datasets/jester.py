"""The second Jester dataset: ratings of jokes, any number between -10 and 10."""

from pathlib import Path

import numpy as np

from marginmf.datasets.members import open_member
from marginmf.datasets.number_columns import read_columns
from marginmf.datasets.table import RatingsTable


def read_jester(path: Path) -> RatingsTable:
    """Read ``jester_ratings.dat``: user, joke and rating, with blanks or tabs between them."""
    with open_member(path, "jester_ratings.dat", "ratings.dat") as file:
        users, items, ratings = np.ascontiguousarray(read_columns(file, 3, b"\t").T)
    return RatingsTable("jester", users.astype(np.int64), items.astype(np.int64), ratings)
