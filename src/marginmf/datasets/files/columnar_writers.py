"""Columns as Parquet and Arrow files."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import IO, Any

from marginmf._utils.types import Array
from marginmf.datasets.files.arrow import require_pyarrow

Batches = Iterable[dict[str, Array]]
Opener = Callable[[IO[Any], Any], AbstractContextManager[Any]]


def write_parquet(file: IO[Any], batches: Batches) -> None:
    """Write a Parquet file, one row group a batch."""
    require_pyarrow("Writing Parquet")
    from pyarrow import parquet

    _write(file, batches, parquet.ParquetWriter)


def write_arrow(file: IO[Any], batches: Batches) -> None:
    """Write an Arrow file, which is Feather version 2 too."""
    pa = require_pyarrow("Writing Arrow")
    _write(file, batches, pa.ipc.new_file)


def write_arrow_stream(file: IO[Any], batches: Batches) -> None:
    """Write a stream of Arrow batches."""
    pa = require_pyarrow("Writing Arrow")
    _write(file, batches, pa.ipc.new_stream)


#: By the ending of a file's name.
COLUMNAR_WRITERS: dict[str, Callable[[IO[Any], Batches], None]] = {
    "parquet": write_parquet,
    "arrow": write_arrow,
    "arrows": write_arrow_stream,
}


def _write(file: IO[Any], batches: Batches, opener: Opener) -> None:
    records = _record_batches(batches)
    first = next(records)
    with opener(file, first.schema) as writer:
        writer.write_batch(first)
        for record in records:
            writer.write_batch(record)


def _record_batches(batches: Batches) -> Iterator[Any]:
    """Yield Arrow's form of batches; the types of the first are those of all."""
    import pyarrow as pa

    types: dict[str, Any] = {}
    for batch in batches:
        arrays = []
        for name, column in batch.items():
            array = _as_arrow(name, column, types.get(name))
            types[name] = array.type
            arrays.append(array)
        yield pa.record_batch(arrays, names=list(batch))


def _as_arrow(name: str, column: Array, wanted: Any) -> Any:
    import pyarrow as pa

    values = column.tolist() if column.dtype == object else column
    try:
        return pa.array(values, type=wanted)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise ValueError(
            f"The column {name!r} does not hold values of one type, as Parquet and Arrow need "
            f"({reason}); write CSV or JSON lines."
        ) from error
