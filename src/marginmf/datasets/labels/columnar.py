"""Read Parquet, Arrow and Feather files of numbers."""

import json
from typing import Any

import numpy as np

from marginmf._utils.types import Float64Array
from marginmf.datasets.files.arrow import open_columnar
from marginmf.datasets.files.source import Source
from marginmf.datasets.labels.choice import IgnoredChoice, LabelsChoice
from marginmf.datasets.labels.table import LabelsTable
from marginmf.datasets.labels.tabular import TableBlocks, TableColumns

BLOCK_VALUES = 1 << 22


def read_columnar(
    source: Source, labels: LabelsChoice | None, ignore: IgnoredChoice
) -> LabelsTable:
    """Read a file whose columns are numbers or truth values."""
    n_rows = 0
    with open_columnar(source) as file:
        schema = file.schema
        columns = TableColumns(
            schema.names, labels, ignore, source.where, index=_index_places(schema)
        )
        _refuse_types(schema, columns)
        table = TableBlocks(columns)
        most = max(1, BLOCK_VALUES // len(columns.names))
        for block in file.blocks(columns.read, most):
            values = _values(block, n_rows, columns)
            table.add(values, lambda row, before=n_rows: f"{source.where}, row {before + row + 1}")  # type: ignore[misc]
            n_rows += len(values)
    if not n_rows:
        raise ValueError(f"{source.where} has no rows; add some.")
    return table.finish(source.path.name)


def _index_places(schema: Any) -> list[int]:
    """Return the places of the columns that pandas wrote an index into, as it notes itself."""
    try:
        noted = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
        names = {one for one in noted if isinstance(one, str)}  # one that counts has no column
    except (KeyError, TypeError, ValueError):
        return []
    return [place for place, name in enumerate(schema.names) if name in names]


def _refuse_types(schema: Any, columns: TableColumns) -> None:
    import pyarrow as pa

    for place in columns.read:
        kind = schema.field(place).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_decimal(kind)
        ):
            raise columns.refused(columns.where, place, "what stands", f"is {kind}, not numbers")


def _values(block: dict[int, Any], n_rows: int, columns: TableColumns) -> Float64Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    length = len(next(iter(block.values())))
    values = np.zeros((length, len(columns.names)))
    for place, column in block.items():
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if column.null_count:
            row = pc.index(column.is_null(), True).as_py()
            here = f"{columns.where}, row {n_rows + row + 1}"
            raise columns.refused(here, place, "a value", "is missing")
        values[:, place] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        finite = np.isfinite(values[:, place])
        if not finite.all():
            row = int(np.argmin(finite))
            here = f"{columns.where}, row {n_rows + row + 1}"
            raise columns.refused(here, place, f"{values[row, place]:g}", "is not a finite number")
    return values
