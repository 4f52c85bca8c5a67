"""Book-Crossing as its owner published it: ``BX-Book-Ratings.csv`` of a dump of tables."""

import csv
import io
from pathlib import Path

from marginmf.datasets.members import open_member
from marginmf.datasets.table import RatingsTable


def read_dump(path: Path) -> RatingsTable:
    """Read users, ISBNs and ratings; the file is Latin-1, quoted, with semicolons."""
    users, items, ratings = [], [], []
    with open_member(path, "BX-Book-Ratings.csv") as file:
        text = io.TextIOWrapper(file, "latin-1", newline="")
        rows = csv.reader(text, delimiter=";", quotechar='"', escapechar="\\")
        next(rows, None)  # the names of the columns
        for row in rows:
            try:
                user, item, rating = row
                users.append(int(user))
                ratings.append(float(rating))
            except ValueError:
                raise ValueError(
                    f"{path}, line {rows.line_num}: {row} is not a user, an ISBN and a rating."
                ) from None
            items.append(item)
        text.detach()  # the file is closed by whoever opened it
    return RatingsTable("book-crossing", users, items, ratings)  # type: ignore[arg-type]
