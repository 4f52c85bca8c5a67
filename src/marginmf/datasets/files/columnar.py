"""Read Parquet, Arrow and Feather files in batches."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from marginmf.datasets.files import arrow_values
from marginmf.datasets.files.arrow import require_pyarrow
from marginmf.datasets.files.blocks import Batch, CellFault, make_batch, said
from marginmf.datasets.files.headers import Layout, Wanted, find_layout, refuse_narrow
from marginmf.datasets.files.kinds import Kind
from marginmf.datasets.files.sources import Source

BLOCK_ROWS = 1 << 18

#: Some rows: an Arrow array for each place of a column.
Block = dict[int, Any]


def columnar_batches(source: Source, wanted: Wanted, kind: Kind) -> Iterator[Batch]:
    """Yield the rows of a file."""
    require_pyarrow(f"Reading {source.where}, which is of the kind {kind.value},")
    n_rows = 0
    with opened(source, kind) as file:
        schema = schema_of(file, kind)
        layout = find_layout(schema.names, source.where, wanted)
        refuse_narrow(layout, schema.names, source.where)
        places = _places(layout, schema, source.where)
        for block in blocks_of(file, kind, schema, sorted(places.values())):
            raw = {role: block[place] for role, place in places.items()}
            try:
                batch = make_batch(raw, arrow_values)
            except CellFault as fault:
                raise said(fault, source.where, "row", n_rows + fault.row + 1) from None
            n_rows += len(batch)
            yield batch
    if not n_rows:
        raise ValueError(f"{source.where} has no rows; add some.")


def _places(layout: Layout, schema: Any, where: str) -> dict[str, int]:
    """Return the place of each column to read, none of which may hold several values a row."""
    import pyarrow as pa

    places = layout.places
    for role, place in places.items():
        field = schema.field(place)
        if pa.types.is_nested(field.type):
            raise ValueError(
                f"{where}: the column {field.name!r}, which is the {role}, is nested ({field.type})"
                f"; take it apart into columns of single values."
            )
    perhaps = layout.perhaps_time
    fourth = None if perhaps is None or perhaps >= len(schema.names) else schema.field(perhaps)
    if perhaps is not None and fourth is not None and pa.types.is_integer(fourth.type):
        places["perhaps_time"] = perhaps
    return places


@contextmanager
def opened(source: Source, kind: Kind) -> Iterator[Any]:
    """Open a file for pyarrow, and say in one sentence what pyarrow finds wrong with it."""
    import pyarrow as pa

    in_memory = source.data is not None
    try:
        with pa.BufferReader(source.data) if in_memory else pa.OSFile(source.where) as file:
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise ValueError(
            f"{source.where} is a damaged {kind.value} file, or of a form that pyarrow cannot read "
            f"({reason}); write it again."
        ) from error


def schema_of(file: Any, kind: Kind) -> Any:
    """Return the names and types of all columns."""
    if kind is Kind.PARQUET:
        from pyarrow import parquet

        return parquet.read_schema(file)
    return _arrow_reader(file, kind).schema


def blocks_of(
    file: Any, kind: Kind, schema: Any, places: Sequence[int], most_rows: int = BLOCK_ROWS
) -> Iterator[Block]:
    """Yield the columns at some places, at most `most_rows` rows at a time."""
    if kind is Kind.PARQUET:
        yield from _parquet_blocks(file, schema.names, places, most_rows)
        return
    for batch in _arrow_batches(file, kind, places):
        batch.validate(full=True)  # pyarrow trusts the file, and would read beyond its end
        for start in range(0, batch.num_rows, most_rows):
            rows = batch.slice(start, most_rows)
            yield dict(zip(places, rows.columns, strict=True))


def _parquet_blocks(
    file: Any, names: list[str], places: Sequence[int], most_rows: int
) -> Iterator[Block]:
    from pyarrow import parquet

    # Columns are chosen by name, so names that occur twice need all of them to be read.
    unique = len(set(names)) == len(names)
    chosen = [names[place] for place in places] if unique else None
    file.seek(0)
    for batch in parquet.ParquetFile(file).iter_batches(most_rows, columns=chosen):
        if chosen is None:
            yield {place: batch.column(place) for place in places}
        else:
            yield {place: batch.column(names[place]) for place in places}


def _arrow_batches(file: Any, kind: Kind, places: Sequence[int]) -> Iterator[Any]:
    reader = _arrow_reader(file, kind, places)
    if kind is Kind.ARROW_STREAM:
        yield from reader
    else:
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def _arrow_reader(file: Any, kind: Kind, places: Sequence[int] = ()) -> Any:
    """Open a reader of some columns; of all, if none are named."""
    from pyarrow import ipc

    file.seek(0)
    options = ipc.IpcReadOptions(included_fields=list(places))
    if kind is Kind.ARROW_STREAM:
        return ipc.open_stream(file, options=options)
    return ipc.open_file(file, options=options)
