"""Read (user, item) pairs to predict, all at once or in chunks."""

from collections.abc import Iterable, Iterator
from os import PathLike

import numpy as np

from marginmf._utils.ids import as_objects
from marginmf.datasets.files.blocks import Batch, IdBlock, IdColumn, as_encoded
from marginmf.datasets.files.headers import Wanted
from marginmf.datasets.files.rows import Rows
from marginmf.datasets.files.sources import Source
from marginmf.datasets.table import IdArray, as_pairs


def read_pairs(
    path: str | PathLike[str], *, user: str | int | None = None, item: str | int | None = None
) -> IdArray:
    r"""Read a file of (user, item) pairs, such as ``model.predict`` takes.

    The file is of any kind that `read_ratings` reads, and its columns are found in the same way.
    Other columns, that of ratings among them, are not looked at. Without names that are known, the
    first two columns are user and item, and every line is a pair: a header must have a name that
    is known, or one that `user` or `item` gives.

    Parameters
    ----------
    path : path-like
        The file.
    user, item : str or int, optional
        The column of each: its name, or its position counted from 1.

    Returns
    -------
    ndarray of shape (n, 2)
        ``int64`` where both columns are whole numbers, else Python objects.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        As for `read_ratings`.

    See Also
    --------
    iterate_pairs : The same in chunks, for files larger than memory.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "asked.jsonl")
    ...     _ = path.write_text('{"user": "ann", "film": 50}\n{"user": "bob", "film": 7}\n')
    ...     read_pairs(path).tolist()
    [['ann', 50], ['bob', 7]]
    """
    rows = _rows(path, user, item)
    return as_pairs(*rows.gather(lambda batches: _joined(batches, rows.text)))


def iterate_pairs(
    path: str | PathLike[str],
    *,
    user: str | int | None = None,
    item: str | int | None = None,
    chunk: int = 100_000,
) -> Iterator[IdArray]:
    r"""Read a file of (user, item) pairs in chunks, for files larger than memory.

    The file is gone through twice. The first time finds what is wrong with it, before anything is
    made of its first chunk, and whether all ids of a column are whole numbers, so that the chunks
    together are what `read_pairs` returns.

    Parameters
    ----------
    path : path-like
        The file, as for `read_pairs`.
    user, item : str or int, optional
        The column of each: its name, or its position counted from 1.
    chunk : int
        How many pairs at a time; the last chunk may have fewer.

    Yields
    ------
    ndarray of shape (chunk, 2)
        Pairs, as from `read_pairs`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "asked.csv")
    ...     _ = path.write_text("user,film\n1,50\n2,50\n3,7\n")
    ...     for pairs in iterate_pairs(path, chunk=2):
    ...         print(pairs.tolist())
    [[1, 50], [2, 50]]
    [[3, 7]]
    """
    if isinstance(chunk, bool) or not isinstance(chunk, int | np.integer) or chunk < 1:
        raise ValueError(f"chunk= is how many pairs at a time, 1 or more, not {chunk!r}.")
    return _chunks(_rows(path, user, item), int(chunk))


def _rows(path: str | PathLike[str], user: str | int | None, item: str | int | None) -> Rows:
    return Rows(Source(path, "pairs"), Wanted(user, item, rated=False))


def _joined(batches: Iterable[Batch], text: bool) -> tuple[IdArray, IdArray]:
    users, items = IdColumn(text), IdColumn(text)
    for batch in batches:
        users.add(batch.users)
        items.add(batch.items)
    return users.finish(), items.finish()


def _chunks(rows: Rows, size: int) -> Iterator[IdArray]:
    users_whole, items_whole = rows.gather(_all_whole)
    both = users_whole and items_whole
    held = np.empty((0, 2), dtype=np.int64 if both else object)
    for batch in rows.batches():
        users = _ids(batch.users, users_whole, rows.text)
        items = _ids(batch.items, items_whole, rows.text)
        pairs = as_pairs(users, items)
        held = np.concatenate([held, pairs]) if len(held) else pairs.astype(held.dtype, copy=False)
        whole = len(held) - len(held) % size
        for start in range(0, whole, size):
            yield held[start : start + size]
        held = held[whole:]
    if len(held):
        yield held


def _all_whole(batches: Iterable[Batch]) -> tuple[bool, bool]:
    users = items = True
    for batch in batches:
        users = users and isinstance(batch.users, np.ndarray)
        items = items and isinstance(batch.items, np.ndarray)
    return users, items


def _ids(block: IdBlock, whole: bool, text: bool) -> IdArray:
    """Return the ids of a block; in a text, numbers are names where not all of the column are."""
    if isinstance(block, np.ndarray):
        if whole or not text:
            return block
        block = as_encoded(block, text)
    ids: IdArray = as_objects(block.values)[block.codes]
    return ids
