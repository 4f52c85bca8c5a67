"""Parquet, Arrow and Feather files, read and written. This and `arrow_sizes` alone need pyarrow."""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from marginmf._utils.ids import are_plain, as_objects, shown
from marginmf._utils.types import Float64Array
from marginmf.datasets.files import convert
from marginmf.datasets.files.arrow_sizes import claimed_bytes, decoded_bytes
from marginmf.datasets.files.columns import Wanted, find_named, name_columns
from marginmf.datasets.files.convert import CellError, Encoded, IdBatch, Int64Array
from marginmf.datasets.files.packed import beyond_limit, first_reason
from marginmf.datasets.files.source import Source
from marginmf.datasets.table import Columns

PARQUET_MARK, ARROW_MARK, STREAM_MARK = b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff"
NAMES = {PARQUET_MARK: "Parquet", ARROW_MARK: "Arrow", STREAM_MARK: "Arrow stream"}
#: How an Arrow file ends.
ARROW_END = b"ARROW1"
BATCH_ROWS = 1 << 18
#: Bytes of the values of a column whose type says how many each has, such as decimal numbers.
MOST_FIXED = 1 << 10
DAY = 86_400
TICKS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def require_pyarrow(what: str) -> Any:
    """Return pyarrow, or raise ImportError that says what to install."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            f"{what} needs pyarrow, which is not installed: pip install 'marginmf[io]'."
        ) from error
    return pyarrow


class ColumnarFile:
    """An open file: the names and types of its columns (`schema`), and blocks of their rows.

    All that is read of it takes at most so many bytes of memory: `most`.
    """

    def __init__(self, file: Any, mark: bytes, where: str, most: int) -> None:
        self._file, self._mark, self._where, self._most = file, mark, where, most
        if mark == PARQUET_MARK:
            from pyarrow import parquet

            self.schema = parquet.read_schema(file)
        else:
            if mark == ARROW_MARK and not _ends_with(file, ARROW_END):
                raise OSError("it is cut short")
            if claimed_bytes(file, self._start) > most:
                raise beyond_limit(where, most)
            self.schema = self._ipc_reader(()).schema

    @property
    def _start(self) -> int:
        """Where the stream begins, which an Arrow file has inside."""
        return len(ARROW_MARK) if self._mark == ARROW_MARK else 0

    def blocks(
        self, positions: Sequence[int], most_rows: int | None = None
    ) -> Iterator[dict[int, Any]]:
        """Yield some columns, by their positions, at most `most_rows` rows at a time."""
        most_rows = BATCH_ROWS if most_rows is None else most_rows
        read = self._parquet_blocks if self._mark == PARQUET_MARK else self._ipc_blocks
        taken = 0
        for block in read(positions, most_rows):
            for k, column in block.items():
                try:
                    taken += decoded_bytes(column)
                except ValueError as error:
                    name = shown(self.schema.names[k])
                    raise ValueError(f"{self._where}: the column {name} {error}.") from None
            if taken > self._most:
                raise beyond_limit(self._where, self._most)
            yield block

    def _parquet_blocks(self, positions: Sequence[int], most_rows: int) -> Iterator[dict[int, Any]]:
        from pyarrow import parquet

        # Columns are chosen by name, so with a name that occurs twice all of them are read.
        names = self.schema.names
        unique = len(set(names)) == len(names)
        chosen = [names[k] for k in positions] if unique else None
        self._file.seek(0)
        columns = parquet.read_metadata(self._file).schema
        leaves = [columns.column(k) for k in range(len(columns))]
        widest = max((leaf.length for leaf in leaves), default=0)
        if widest > MOST_FIXED:
            raise ValueError(
                f"{self._where} has values of {widest:,} bytes each; store them as text."
            )
        # A text that occurs often is kept once, until it is known how much all of them take.
        texts = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        self._file.seek(0)
        file = parquet.ParquetFile(self._file, read_dictionary=texts)
        for batch in file.iter_batches(most_rows, columns=chosen):
            yield {k: batch.column(names[k] if unique else k) for k in positions}

    def _ipc_blocks(self, positions: Sequence[int], most_rows: int) -> Iterator[dict[int, Any]]:
        for batch in self._ipc_reader(positions):
            batch.validate(full=True)  # pyarrow trusts the file, and would read beyond its end
            for start in range(0, batch.num_rows, most_rows):
                rows = batch.slice(start, most_rows)
                yield dict(zip(positions, rows.columns, strict=True))

    def _ipc_reader(self, positions: Sequence[int]) -> Any:
        """Open a reader of some columns; of all, if none are named."""
        from pyarrow import ipc

        self._file.seek(self._start)
        options = ipc.IpcReadOptions(included_fields=list(positions))
        return ipc.open_stream(self._file, options=options)


def _ends_with(file: Any, mark: bytes) -> bool:
    file.seek(max(0, file.size() - len(mark)))
    return bool(file.read() == mark)


@contextmanager
def open_columnar(source: Source) -> Iterator[ColumnarFile]:
    """Open a file; what pyarrow finds wrong with it is a ValueError of one sentence."""
    mark = next(one for one in NAMES if source.head.startswith(one))
    pa = require_pyarrow(f"Reading {source.where}, which is of the kind {NAMES[mark]},")
    in_memory = source.data is not None
    try:
        with pa.BufferReader(source.data) if in_memory else pa.OSFile(source.where) as file:
            yield ColumnarFile(file, mark, source.where, source.most)
    except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError, struct.error) as error:
        raise ValueError(
            f"{source.where} is a damaged {NAMES[mark]} file, or of a form that pyarrow cannot "
            f"read ({first_reason(error)}); write it again."
        ) from error


def read_columnar_batches(source: Source, wanted: Wanted) -> Iterator[convert.Batch]:
    """Yield the rows of a file."""
    n_rows = 0
    with open_columnar(source) as file:
        names = file.schema.names
        layout = find_named(names, source.where, wanted)
        source.columns, positions = layout.names, layout.positions
        for role, k in positions.items():
            field = file.schema.field(k)
            if field.type.num_fields and "maybe" not in role:
                raise ValueError(
                    f"{source.where}: the column {shown(field.name)}, which is the {role}, is "
                    f"nested ({field.type!s:.100}); take it apart into columns of single values."
                )
        for block in file.blocks(sorted(positions.values())):
            raw = {role: block[k] for role, k in positions.items()}
            numbers = range(n_rows + 1, n_rows + 1 + len(raw["user"]))
            n_rows += len(numbers)
            yield convert.make_batch(raw, ArrowValues(layout.words), source.where, "row", numbers)
    if not n_rows:
        raise ValueError(f"{source.where} has no rows; add some.")


def read_columnar_columns(source: Source) -> Columns:
    """Return all columns by their names."""
    with open_columnar(source) as file:
        names = file.schema.names
        cells: list[list[Any]] = [[] for _ in names]
        for block in file.blocks(range(len(names))):
            for k, column in block.items():
                cells[k].extend(column.to_pylist())
    if not cells or not cells[0]:
        raise ValueError(f"{source.where} has no rows; add some.")
    return name_columns(zip(names, map(as_objects, cells), strict=True), source.where)


class ArrowValues(convert.TypedValues):
    """The meaning of Arrow's columns: numbers and texts at once, the rest value by value."""

    def __init__(self, words: Mapping[str, float]) -> None:
        from pyarrow import types

        super().__init__(words)
        self._types = types

    def ids(self, column: Any, what: str) -> IdBatch:
        """Return whole numbers if all values are, else texts and numbers as they are."""
        column = self._complete(column, f"{what} id")
        if self._fits_int64(column.type):
            return _as_int64(column)
        if self._types.is_dictionary(column.type) or self._is_text(column.type):
            encoded = column.dictionary_encode()
            # Through NumPy, which is ten times as quick as Arrow's own ``to_pylist``.
            values = encoded.dictionary.to_numpy(zero_copy_only=False).tolist()
            if all(map(str.strip, values)) and are_plain(values):
                return Encoded(values, encoded.indices.to_numpy())
        return super().ids(column.to_pylist(), what)

    def ratings(self, column: Any) -> Float64Array:
        """Return finite numbers."""
        column = self._complete(column, "rating")
        plain = self.ratings_read.words is convert.WORDS
        if plain and (self._types.is_integer(column.type) or self._types.is_floating(column.type)):
            numbers = column.to_numpy(zero_copy_only=False).astype(np.float64)
            if convert.are_ratings(numbers):
                return numbers
        return super().ratings(column.to_pylist())

    def times(self, column: Any) -> Int64Array:
        """Return seconds since 1970."""
        column = self._complete(column, "timestamp")
        if self._fits_int64(column.type):
            return _as_int64(column)
        if self._types.is_timestamp(column.type):
            return _as_int64(column) // TICKS_PER_SECOND[column.type.unit]
        if self._types.is_date(column.type):
            return _as_int64(column.cast("date32").cast("int32")) * DAY
        return super().times(column.to_pylist())

    def maybe_times(self, column: Any) -> Int64Array | None:
        """Return the values if all are whole numbers."""
        if column.null_count or not self._types.is_integer(column.type):
            return None
        return super().maybe_times(column.to_pylist())

    def _complete(self, column: Any, what: str) -> Any:
        """Return a column in which no value is missing, its dictionary resolved if not of texts."""
        if self._types.is_dictionary(column.type) and not (
            self._is_text(column.type.value_type) and column.dictionary.null_count == 0
        ):
            column = column.dictionary_decode()
        if column.null_count:
            row = column.is_null().index(True).as_py()
            raise CellError(row, f"the {what} is missing", "fill it in")
        return column

    def _is_text(self, type_: Any) -> bool:
        return bool(self._types.is_string(type_) or self._types.is_large_string(type_))

    def _fits_int64(self, type_: Any) -> bool:
        return bool(self._types.is_integer(type_) and not self._types.is_uint64(type_))


def _as_int64(column: Any) -> Int64Array:
    return column.cast("int64").to_numpy(zero_copy_only=False)


def write_columnar(file: IO[Any], batches: Iterable[Columns], mark: bytes) -> None:
    """Write a file of the kind that begins with `mark`; Arrow files are Feather version 2 too."""
    ipc = require_pyarrow(f"Writing {NAMES[mark].partition(' ')[0]}").ipc
    from pyarrow import parquet

    writers = {ARROW_MARK: ipc.new_file, STREAM_MARK: ipc.new_stream}
    records = _record_batches(batches)
    first = next(records)
    with writers.get(mark, parquet.ParquetWriter)(file, first.schema) as writer:
        writer.write_batch(first)
        for record in records:
            writer.write_batch(record)


def _record_batches(batches: Iterable[Columns]) -> Iterator[Any]:
    """Yield Arrow's form of batches; the types of the first are those of all."""
    import pyarrow as pa

    types: dict[str, Any] = {}
    for batch in batches:
        arrays = {}
        for name, column in batch.items():
            values = column.tolist() if column.dtype == object else column
            try:
                arrays[name] = pa.array(values, type=types.get(name))
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                raise ValueError(
                    f"The column {name!r} does not hold values of one type, as Parquet and Arrow "
                    f"need ({first_reason(error)}); write CSV or JSON lines."
                ) from error
        types = {name: array.type for name, array in arrays.items()}
        yield pa.record_batch(list(arrays.values()), names=list(arrays))
