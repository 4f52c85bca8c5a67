"""Read a user's own file: ratings, pairs to predict, or features, in any format."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from os import PathLike
from typing import Any

import numpy as np

from marginmf._utils.ids import as_objects
from marginmf._utils.parameters import check_whole
from marginmf._utils.types import Array
from marginmf.datasets.files.columns import Wanted
from marginmf.datasets.files.convert import Encoded, IdBatch, Int64Array, words_of
from marginmf.datasets.files.formats import ARFF, TEXT, Format, looks_like_svmlight, recognise
from marginmf.datasets.files.packed import Size
from marginmf.datasets.files.source import Source
from marginmf.datasets.known_formats import read_movielens_archive
from marginmf.datasets.table import Columns, IdArray, RatingsTable, as_pairs

AnyPath = str | PathLike[str]


def read_ratings(
    path: AnyPath,
    *,
    user: str | int | None = None,
    item: str | int | None = None,
    rating: str | int | None = None,
    header: bool | None = None,
    levels: Sequence[str] | None = None,
    timed: bool = False,
    names: Mapping[str, str] | None = None,
    max_bytes: Size | None = None,
) -> RatingsTable:
    r"""Read a file of ratings, one rating a line or row.

    The format is found by the content: delimited text (comma, tab, ``::``, semicolon or blanks),
    JSON lines (one object a line), Parquet, Arrow and Feather, for which the extra
    ``marginmf[io]`` is needed. Text and JSON lines may be compressed with gzip. Files are read in
    chunks: memory holds the table and some megabytes beside it. Of a zip archive, the file of
    ratings is read, or the only file; those of MovieLens come with titles and features.

    Columns are found by names such as ``user_id``, ``movieId``, ``rating`` and ``timestamp``, in
    any case; names that say nothing are an error, and `user`, `item` and `rating` say it then. In
    a file without a line of names, of three or four columns, the first three are user, item and
    rating, and a fourth that holds only whole numbers is the timestamp. Times are seconds since
    1970, or dates such as ``2021-03-05``, ``2021-03-05 12:30:00`` and ``2021-03-05T12:30Z``.

    Ratings are numbers, also with a decimal comma; or words for two levels, such as ``true`` and
    ``false``, ``yes`` and ``no``, ``like`` and ``dislike``, which are 1 and 0; or `levels`.

    Parameters
    ----------
    path : path-like
        The file; ``"-"`` for standard input.
    user, item, rating : str or int, optional
        The column of each, where its name does not say so: the name that it has in the file, or
        its position, counted from 1. The keys of the first object are the columns of JSON lines.
    header : bool, optional
        Whether the first line of a text holds names; by default that is found out, or asked for
        where it cannot be told.
    levels : sequence of str, optional
        Ratings in words, from the lowest: they become 1, 2 and so on.
    timed : bool
        Whether every rating must have a time: a file without times, and a cell that is not one, is
        an error then. By default, a column with such a cell is left out.
    names : dict of str, optional
        What columns may be called beside the usual names, such as a model's ``column_names_``.
    max_bytes : int or str, optional
        How much a packed file (gzip, zip, Parquet, Arrow) may unpack to, and a pipe may send, such
        as ``"4GB"``; by default 256 MiB, or 100 times the size of the packed file if that is more,
        and 4 GiB through a pipe.

    Returns
    -------
    RatingsTable
        In files with types (JSON lines, Parquet, Arrow), ids are what they are there. In delimited
        text they are ``int64`` where all of a column are whole numbers as Python writes them, else
        strings, as ``007`` is; blanks around values are dropped.

    Raises
    ------
    FileNotFoundError, ImportError
        If there is no such file, or it needs pyarrow and that is not installed.
    ValueError
        If the file is empty, damaged or too large when unpacked, a line has more than 16 million
        characters, or a column or a value cannot be read; the message names the first line or row
        at fault, the value, and what to do.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "films.csv")
    ...     _ = path.write_text("rating,who,movieId\n4.5,ann,50\n3,bob,50\n")
    ...     table = read_ratings(path, user="who")
    >>> table.users.tolist(), table.items.tolist(), table.ratings.tolist()
    (['ann', 'bob'], [50, 50], [4.5, 3.0])
    """
    source = Source(path, max_bytes=max_bytes)
    plain = all(one is None for one in (user, item, rating, header, levels))
    if source.archive is not None and source.data is None and plain:
        known = read_movielens_archive(source.archive, source.most)
        if known is not None:
            return replace(known, name=source.archive.name, source=f"read from {source.archive}")
    wanted = Wanted(
        user, item, rating, header=header, names=names or {}, levels=levels, timed=timed
    )
    columns = _read_columns(source, wanted)
    return RatingsTable(
        source.path.name,
        *columns,
        source=f"read from {source.where}",
        columns=source.columns,
        level_names=None if levels is None else words_of(levels),
    )


def read_pairs(
    path: AnyPath,
    *,
    user: str | int | None = None,
    item: str | int | None = None,
    header: bool | None = None,
    max_bytes: Size | None = None,
) -> IdArray:
    r"""Read a file of (user, item) pairs, such as ``model.predict`` takes.

    Other columns, that of ratings among them, are not looked at. In a file without a line of names
    the first two columns are user and item.

    Parameters
    ----------
    path, user, item, header, max_bytes
        As for `read_ratings`, which raises the same errors. Where all ids are text, the first line
        could be names or a pair; `header` says which, if the names are not known.

    Returns
    -------
    ndarray of shape (n, 2)
        ``int64`` where both columns are whole numbers, else Python objects.

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
    wanted = Wanted(user, item, rated=False, header=header)
    source = Source(path, "pairs", max_bytes=max_bytes)
    return as_pairs(*_read_columns(source, wanted)[:2])


def read_unrated(path: AnyPath, *, max_bytes: Size | None = None, **columns: Any) -> RatingsTable:
    """Read a file of (user, item) pairs as a table, in which every rating is 1.

    Parameters are those of `read_pairs`, and ``timed`` of `read_ratings`.
    """
    source = Source(path, "pairs", max_bytes=max_bytes)
    users, items, _, times = _read_columns(source, Wanted(**columns, rated=False))
    return RatingsTable(
        source.path.name,
        *(users, items, np.ones(len(users)), times),
        source=f"read from {source.where}",
        columns=source.columns,
    )


def iterate_pairs(
    path: AnyPath | Source,
    *,
    user: str | int | None = None,
    item: str | int | None = None,
    header: bool | None = None,
    names: Mapping[str, str] | None = None,
    chunk: int = 100_000,
    max_bytes: Size | None = None,
) -> Iterator[IdArray]:
    r"""Read a file of (user, item) pairs in chunks, for files larger than memory.

    The file is read twice. The first time finds what is wrong with it, before the first chunk, and
    whether all ids of a column are whole numbers, so that the chunks together are what `read_pairs`
    returns.

    Parameters
    ----------
    path, user, item, header, max_bytes
        As for `read_pairs`.
    names : dict of str, optional
        What the columns ``user`` and ``item`` may be called beside the usual names, such as the
        ``column_names_`` of a model.
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
    ...     [pairs.tolist() for pairs in iterate_pairs(path, chunk=2)]
    [[[1, 50], [2, 50]], [[3, 7]]]
    """
    size = check_whole("chunk", chunk)
    source = path if isinstance(path, Source) else Source(path, "pairs", max_bytes=max_bytes)
    wanted = Wanted(user, item, rated=False, header=header, names=names or {})
    return _pair_chunks(source, _recognise(source), wanted, size)


def read_features(path: AnyPath, *, max_bytes: Size | None = None) -> Columns:
    r"""Read a file of features, one user or item a line or row.

    Parameters
    ----------
    path : path-like
        A file of any format that `read_ratings` reads, which raises the same errors.  Its columns
        need names: the first line of a text holds them.  Columns without a name, such as the row
        numbers that pandas writes, are left out.
    max_bytes : int or str, optional
        As for `read_ratings`.

    Returns
    -------
    dict of arrays
        The columns by name, as ``fit(..., item_features=)`` takes them.  A column of text that
        holds only numbers becomes one of numbers; empty cells are missing, NaN among numbers and
        None among texts.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "films.csv")
    ...     _ = path.write_text("movieId,genres,year\n7,Crime|Drama,1995\n9,Drama,\n")
    ...     columns = read_features(path)
    >>> {name: cells.tolist() for name, cells in columns.items()}
    {'movieId': [7, 9], 'genres': ['Crime|Drama', 'Drama'], 'year': [1995.0, nan]}
    """
    source = Source(path, "features", max_bytes=max_bytes)
    file_format = recognise(source)
    return source.read_decoded(lambda: file_format.read_columns(source))


def _recognise(source: Source) -> Format:
    """Return the format of a file of ratings or pairs; files of other things are refused."""
    begin = source.head.decode(source.encoding, errors="ignore").replace("\r\n", "\n")
    if begin.lstrip().startswith("%%MatrixMarket"):
        raise ValueError(
            f"{source.where} is a Matrix Market file; read it with scipy.io.mmread, and fit a "
            "model to the matrix."
        )
    kind = "ARFF" if ARFF.match(begin) else "svmlight" * looks_like_svmlight(begin)
    if kind:
        raise ValueError(
            f"{source.where} is an {kind} file of features and labels, not of {source.content}; it "
            "is for read_labels, and for marginmf labels on the command line."
        )
    return recognise(source)


def _read_columns(source: Source, wanted: Wanted) -> tuple[IdArray, IdArray, Any, Any]:
    """Return users, items, ratings and times; None for what the file has not."""
    file_format = _recognise(source)
    batches = source.read_decoded(lambda: list(file_format.read_batches(source, wanted)))
    if len({batch.in_words for batch in batches}) > 1:
        raise ValueError(
            f"{source.where}: some ratings are numbers and others words; write all as numbers."
        )
    return (
        _join_ids([batch.users for batch in batches], file_format is TEXT),
        _join_ids([batch.items for batch in batches], file_format is TEXT),
        _join_numbers([batch.ratings for batch in batches]),
        _join_numbers([batch.timestamps for batch in batches]),
    )


def _pair_chunks(
    source: Source, file_format: Format, wanted: Wanted, size: int
) -> Iterator[IdArray]:
    def are_whole_numbers() -> tuple[bool, bool]:
        users = items = True
        for batch in file_format.read_batches(source, wanted):
            users &= isinstance(batch.users, np.ndarray)
            items &= isinstance(batch.items, np.ndarray)
        return users, items

    users_whole, items_whole = source.read_decoded(are_whole_numbers)
    rest = np.empty((0, 2), dtype=np.int64 if users_whole and items_whole else object)
    for batch in file_format.read_batches(source, wanted):
        users = _as_ids(batch.users, users_whole, file_format is TEXT)
        items = _as_ids(batch.items, items_whole, file_format is TEXT)
        rest = np.concatenate([rest, as_pairs(users, items).astype(rest.dtype, copy=False)])
        complete = len(rest) - len(rest) % size
        for start in range(0, complete, size):
            yield rest[start : start + size]
        rest = rest[complete:]
    if len(rest):
        yield rest


def _as_ids(batch: IdBatch, whole: bool, untyped: bool) -> IdArray:
    """Return ids; in a text, numbers are names where not all of the column are numbers."""
    if isinstance(batch, np.ndarray):
        if whole or not untyped:
            return batch
        batch = _encode(batch, untyped)
    return as_objects(batch.values)[batch.codes]


def _encode(numbers: Int64Array, untyped: bool) -> Encoded:
    """Encode whole numbers: as names where the file has no types, else as numbers."""
    values, codes = np.unique(numbers, return_inverse=True)
    return Encoded((values.astype(np.str_) if untyped else values).tolist(), codes)


def _join_ids(batches: list[IdBatch], untyped: bool) -> IdArray:
    """Return one column; in a file without types, numbers among names are names too."""
    if all(isinstance(batch, np.ndarray) for batch in batches):
        return np.concatenate(batches)  # type: ignore[arg-type]
    # An id that is looked up for the first time gets the next index.
    vocabulary: dict[Any, int] = defaultdict(count().__next__)
    codes = []
    for batch in batches:
        encoded = _encode(batch, untyped) if isinstance(batch, np.ndarray) else batch
        indices = map(vocabulary.__getitem__, encoded.values)
        codes.append(np.fromiter(indices, np.int32, len(encoded.values))[encoded.codes])
    return as_objects(vocabulary)[np.concatenate(codes)]


def _join_numbers(columns: list[Any]) -> Array | None:
    """Return one column, or None: what is not a time in one row is not one in any."""
    return None if any(column is None for column in columns) else np.concatenate(columns)
