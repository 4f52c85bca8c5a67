"""Side information of users and items: tables of features, and features in the order of codes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar

import narwhals as nw
import numpy as np
from scipy import sparse

from marginmf._utils.ids import as_id_column, as_objects, check_names, is_missing, shown
from marginmf._utils.parameters import LARGEST, warn
from marginmf._utils.saved import Stored, saved
from marginmf._utils.sparse import check_sparse, settled
from marginmf._utils.types import Array, IntArray
from marginmf.datasets.files.columns import listed
from marginmf.ratings import feature_columns
from marginmf.ratings.feature_columns import MOST_WEIGHTS, Encoder, FeatureColumn
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.tables import is_frame


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Features of users or items as they were given, checked; make one with `FeatureTable.of`.

    Columns are numbers (NaN where missing) or objects (None where missing); there are none if a
    matrix was given, which is in ``weights`` then.
    """

    what: str
    ids: Array
    columns: Mapping[str, Array]
    weights: Any = None

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(cls, source: Any, what: str = "item", id: str | None = None) -> "FeatureTable":  # noqa: A002
        """Read features from whatever holds them.

        Parameters
        ----------
        source : data frame, dict of columns, or pair (ids, matrix)
            A frame (pandas, polars, pyarrow) or a dict with a column of ids; or ids and a matrix
            (dense or sparse) whose numbers are taken as they are.
        what : {"user", "item"}
            Whose features they are.
        id : str, optional
            The column of ids; by default one with a usual name, such as ``item`` or ``movieId``.

        Examples
        --------
        >>> films = {"item": [1, 2, 3], "genres": ["Crime|Drama", "Drama", ["Crime"]]}
        >>> FeatureTable.of(films).encoder().names
        ('genres=Crime', 'genres=Drama', 'any')
        """
        if isinstance(source, FeatureTable):
            return source
        if isinstance(source, tuple | list) and len(source) == 2:
            return cls(what, ids := _ids(source[0], what), {}, _weights(source[1], ids, what))
        if is_frame(source):
            columns = _frame(source, what, id)
        elif isinstance(source, Mapping):
            columns = {str(name): _cells(values, str(name)) for name, values in source.items()}
        else:
            raise ValueError(
                f"Features of {what}s must be a data frame, a dict of columns or a pair "
                f"(ids, matrix), not {type(source).__name__}."
            )
        name = _id_name(columns, what, id)
        if name is None:
            wanted = f"known as the ids of {what}s" if id is None else f"called {id!r}"
            raise ValueError(
                f"No column is {wanted}; there are {listed(columns)}. Rename the column of ids to "
                f"{what!r}, or name it with id=."
            )
        ids = _ids(columns.pop(name), what)
        uneven = [other for other in columns if len(columns[other]) != len(ids)]
        if uneven:
            raise ValueError(
                f"The column {uneven[0]!r} has {len(columns[uneven[0]])} cells where the column "
                f"{name!r} has {len(ids)}: all columns need the same length."
            )
        check_names(columns, "column")
        table = cls(what, ids, {key: _plain(key, cells) for key, cells in columns.items()})
        counts = {key: feature_columns.n_missing(cells) for key, cells in table.columns.items()}
        some = [f"{key!r} ({n})" for key, n in counts.items() if 0 < n < len(table)]
        if some:
            warn(
                f"Features of {what}s have cells that are missing, and say nothing: "
                f"{', '.join(some)}.",
            )
        return table

    def encoder(self) -> "Encoder":
        """Return how these columns become numbers; warns, once, of columns that are left out."""
        return self._encoder

    @cached_property
    def _encoder(self) -> "Encoder":
        if self.weights is not None:
            return Encoder((FeatureColumn("", "weights", (self.weights.shape[1],)),))
        fitted = feature_columns.fitted_column
        found = {name: fitted(name, cells) for name, cells in self.columns.items()}
        left_out = {name: why for name, why in found.items() if isinstance(why, str)}
        reasons = ", ".join(f"{name!r} ({why})" for name, why in left_out.items())
        columns = tuple(one for one in found.values() if isinstance(one, FeatureColumn))
        if not columns:
            raise ValueError(
                f"No column says anything about {self.what}s: {reasons or 'there is none'}. Give "
                "numbers that vary, or categories that several ids have."
            )
        if left_out:
            warn(f"Left out of the features of {self.what}s: {reasons}.")
        return Encoder(columns, left_out)


@saved
@dataclass(frozen=True, eq=False)
class Features:
    """A row of unit length, or an empty one, for each id of a vocabulary; see `Features.of`."""

    _saved: ClassVar[dict[str, Any]] = {
        "matrix": Stored(("rows of features", "columns of features")),
        "encoder": "Encoder",
    }
    matrix: sparse.csr_array
    encoder: Encoder

    def __post_init__(self) -> None:
        settled(self.matrix)

    @classmethod
    def of(cls, source: Any, index: IdIndex, encoder: Encoder | None = None) -> "Features":
        """Encode features, from what `FeatureTable.of` takes, in the order of a vocabulary.

        Ids without features get empty rows.  Features that have to fit others need their encoder.

        >>> films = {"item": ["x", "y", "z"], "genre": ["Crime", "Crime", "Drama"]}
        >>> Features.of(films, IdIndex(["w", "x", "z"], "item")).matrix.toarray().round(2)
        array([[0.  , 0.  ],
               [0.71, 0.71],
               [0.  , 1.  ]], dtype=float32)
        """
        table = FeatureTable.of(source, index.what)
        # Of its own categories none is unknown: those of a single id were left out on purpose.
        rows = (encoder or table.encoder()).encode(table, quiet=encoder is None)
        spread = _spread(rows, index.encode(table.ids), len(index))
        return cls(spread, encoder or table.encoder())

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        if type(self.matrix) is not sparse.csr_array or self.matrix.dtype != np.float32:
            yield ".matrix is not a sparse matrix of float32"
        elif self.matrix.shape[1] != self.encoder.n_columns:
            yield ".matrix has other columns than its encoder"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.encoder.names

    @property
    def arrays(self) -> dict[str, Array]:
        """Everything that is known: two objects hold the same if these are the same."""
        return {
            "names": as_objects(self.names),
            "weights": self.matrix.data,
            "columns": self.matrix.indices,
            "columns per row": self.matrix.indptr,
        }

    def joined(
        self, index: IdIndex, ours: IdIndex, other: "Features | None" = None, theirs: Any = None
    ) -> "Features":
        """Return the rows for a vocabulary: the other's where it has them, else our own."""
        matrix = _spread(self.matrix, index.encode(ours.ids), len(index))
        if other is not None and theirs is not None:
            if other.encoder != self.encoder:
                raise ValueError("Features of two encoders cannot be joined: encode them alike.")
            codes = index.encode(theirs.ids)
            given = np.flatnonzero((codes >= 0) & (np.diff(other.matrix.indptr) > 0))
            at = np.arange(len(index))
            at[codes[given]] = len(index) + np.arange(len(given))
            matrix = sparse.vstack([matrix, other.matrix[given]], format="csr")[at]
        return Features(matrix, self.encoder)


def _ids(values: Any, what: str) -> Array:
    """Return ids as a column, or say which are missing or occur twice."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"The ids of {what}s with features must be a column, not {values!r:.60}.")
    column = values if isinstance(values, np.ndarray) else as_objects(values)
    if column.ndim != 1 or len(column) == 0:
        raise ValueError(
            f"The ids of {what}s with features must be a column: its shape is {column.shape}."
        )
    ids = as_id_column(column, what)
    repeated = [one for one, n in Counter(ids.tolist()).items() if n > 1]
    if repeated:
        raise ValueError(
            f"The ids of some {what}s with features occur more than once ({len(repeated)}): "
            f"{', '.join(map(shown, repeated[:3]))}{', ...' if len(repeated) > 3 else ''}. Keep "
            "one row for each."
        )
    return ids


def _id_name(names: Iterable[str], what: str, named: str | None) -> str | None:
    """Return which of the columns holds the ids: the one that is named, or one known as such."""
    # Here, because datasets are not imported before they are needed.
    from marginmf.datasets.files.columns import find_id_column

    if named is not None:
        return named if named in names else None
    return find_id_column(names, what)


def _frame(source: Any, what: str, named: str | None) -> dict[str, Array]:
    """Return the columns of a data frame, and the index of pandas if that holds the ids."""
    index = getattr(getattr(source, "index", None), "name", None)
    if index is not None and index not in source and _id_name([str(index)], what, named):
        source = source.reset_index()
    frame = nw.from_native(source, eager_only=True)
    return {str(name): _series_cells(frame.get_column(name)) for name in frame.columns}


def _series_cells(series: Any) -> Array:
    if series.dtype.is_integer() and not series.is_null().any():
        return series.to_numpy()
    if series.dtype.is_numeric():
        return series.cast(nw.Float64).to_numpy()
    cells = series.to_list()
    if series.dtype in (nw.Categorical, nw.Enum):  # of numbers, perhaps
        cells = [None if is_missing(cell) else str(cell) for cell in cells]
    return as_objects(cells)


def _cells(values: Any, name: str) -> Array:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"The column {name!r} must hold a cell for each id, not {values!r:.60}.")
    if not isinstance(values, np.ndarray):
        series = nw.from_native(values, series_only=True, pass_through=True)
        return as_objects(series.to_list() if isinstance(series, nw.Series) else values)
    if values.ndim != 1:
        raise ValueError(f"The column {name!r} must be one column: its shape is {values.shape}.")
    if values.dtype.kind in "mM":  # finer times would become numbers
        values = values.astype(f"{values.dtype.kind}8[us]")
    return values if values.dtype.kind in "iuf" else as_objects(values.tolist())


def _plain(name: str, cells: Array) -> Array:
    """Return finite numbers, or objects with None for what is missing."""
    if cells.dtype == object:
        cells = as_objects(None if _is_empty(cell) else cell for cell in cells)
        there = [cell for cell in cells if cell is not None]
        if not there or not all(map(_is_number, there)):
            return cells
    numbers = feature_columns.as_numbers(cells, name)
    beyond = np.abs(numbers) > LARGEST
    if beyond.any():
        row = int(np.argmax(beyond))
        raise ValueError(
            f"The column {name!r} has {numbers[row]:g} in row {row}: numbers must be finite, up to "
            f"{LARGEST:g}, and cells that are not known empty."
        )
    return numbers


def _is_empty(cell: Any) -> bool:
    empty = not cell.strip() if isinstance(cell, str) else is_missing(cell)
    return empty and not isinstance(cell, feature_columns.SEVERAL)


def _is_number(cell: Any) -> bool:
    return isinstance(cell, int | float | np.number | Decimal) and not isinstance(cell, bool)


def _weights(matrix: Any, ids: Array, what: str) -> sparse.csr_array:
    """Return a matrix of finite numbers with a row for each id."""
    try:
        given = matrix if sparse.issparse(matrix) else np.asarray(matrix, np.float64)
    except (TypeError, ValueError):
        given = None
    if given is None or given.dtype.kind not in "biuf":
        raise ValueError(
            f"The second of a pair of features of {what}s must be a matrix of numbers: give "
            "anything else as a data frame or a dict of columns."
        )
    if given.ndim != 2 or given.shape[0] != len(ids) or given.shape[1] == 0:
        raise ValueError(
            f"The matrix of features has the shape {given.shape}, but {len(ids)} {what}s need "
            f"{len(ids)} rows and some columns."
        )
    if given.shape[1] > MOST_WEIGHTS:
        raise ValueError(
            f"The matrix of features of {what}s has {given.shape[1]:,} columns, and may have "
            f"{MOST_WEIGHTS:,}: leave out those that hardly any {what} has."
        )
    check_sparse(given, f"The matrix of features of {what}s")
    rows = sparse.csr_array(given, copy=True)  # what was given is not put in order
    rows.sum_duplicates()
    faulty = np.flatnonzero(~(np.abs(rows.data) <= LARGEST))
    if len(faulty):
        row = int(np.searchsorted(rows.indptr, faulty[0], side="right")) - 1
        raise ValueError(
            f"The matrix of features has {rows.data[faulty[0]]} in row {row} ({what} "
            f"{shown(ids[row])}), column {rows.indices[faulty[0]]}: give finite "
            f"numbers up to {LARGEST:g}, or 0."
        )
    return rows


def _spread(matrix: sparse.csr_array, codes: IntArray, n: int) -> sparse.csr_array:
    """Return a matrix of n rows with the given ones at those codes; the others are empty."""
    known = np.flatnonzero(codes >= 0)
    at = np.full(n, matrix.shape[0])
    at[codes[known]] = known
    empty = sparse.csr_array((1, matrix.shape[1]), dtype=matrix.dtype)
    return sparse.vstack([matrix, empty], format="csr")[at]
