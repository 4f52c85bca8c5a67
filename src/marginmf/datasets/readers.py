"""Read a user's own file of ratings, whatever its kind."""

from collections.abc import Iterable
from os import PathLike

import numpy as np

from marginmf._utils.types import Float64Array
from marginmf.datasets.files.blocks import Batch, Column, IdColumn, Int64Array
from marginmf.datasets.files.headers import Wanted
from marginmf.datasets.files.rows import Rows
from marginmf.datasets.files.sources import Source
from marginmf.datasets.table import IdArray, RatingsTable

Columns = tuple[IdArray, IdArray, Float64Array, Int64Array | None]


def read_ratings(
    path: str | PathLike[str],
    *,
    user: str | int | None = None,
    item: str | int | None = None,
    rating: str | int | None = None,
) -> RatingsTable:
    r"""Read a file of ratings, one rating a line or row.

    The kind of file is found by its content, whatever its name: delimited text (comma, tab,
    ``::``, semicolon or blanks), JSON lines (one object a line), Parquet, Arrow and Feather. Text
    and JSON lines may be compressed with gzip. Parquet, Arrow and Feather need the extra
    ``marginmf[io]``, with which large text files are read quickly too. Files of any size are read
    piece by piece: what is held is the table, and some megabytes.

    Columns are found by names, in any case and with or without ``_``, such as ``user_id``,
    ``movieId``, ``rating`` and ``timestamp``. Without a header, or with names that say nothing,
    the first three columns are user, item and rating, and a fourth that holds only whole numbers
    is the timestamp.

    Parameters
    ----------
    path : path-like
        The file.
    user, item, rating : str or int, optional
        The column of each, where its name does not say so: the name that it has in the file, or
        its position, counted from 1. The keys of the first object are the columns of JSON lines.

    Returns
    -------
    RatingsTable
        In files with types (JSON lines, Parquet, Arrow), ids are what they are there: texts, or
        whole numbers as ``int64``. In delimited text, which has no types, they are ``int64`` where
        a whole column of them are whole numbers as Python writes them, else strings; ``007`` is a
        string. Blanks around the values of delimited text are dropped.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is empty or damaged, if a column is not there, or if a value cannot be read;
        the message names the first line or row at fault, the value, and what to do.
    ImportError
        If the file needs pyarrow and it is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "films.csv")
    ...     _ = path.write_text("userId,movieId,rating\nann,50,4.5\nbob,50,3\n")
    ...     table = read_ratings(path)
    ...     _ = path.write_text("4.5|ann|50\n3|bob|50\n".replace("|", "\t"))
    ...     same = read_ratings(path, user=2, item=3, rating=1)
    >>> table.users.tolist(), table.items.tolist(), table.ratings.tolist()
    (['ann', 'bob'], [50, 50], [4.5, 3.0])
    >>> same.users.tolist(), same.items.tolist(), same.ratings.tolist()
    (['ann', 'bob'], [50, 50], [4.5, 3.0])
    """
    source = Source(path)
    rows = Rows(source, Wanted(user, item, rating))
    columns = rows.gather(lambda batches: _joined(batches, rows.text))
    users, items, ratings, timestamps = columns
    return RatingsTable(
        source.path.name,
        users,
        items,
        ratings,
        timestamps=timestamps,
        source=f"read from {source.where}",
    )


def _joined(batches: Iterable[Batch], text: bool) -> Columns:
    users, items, ratings = IdColumn(text), IdColumn(text), Column(np.float64)
    timestamps: Column | None = Column(np.int64)
    for batch in batches:
        users.add(batch.users)
        items.add(batch.items)
        assert batch.ratings is not None
        ratings.add(batch.ratings)
        if batch.timestamps is None:
            timestamps = None  # what is not a time in one row is not one in any
        elif timestamps is not None:
            timestamps.add(batch.timestamps)
    times = None if timestamps is None else timestamps.finish()
    return users.finish(), items.finish(), ratings.finish(), times
