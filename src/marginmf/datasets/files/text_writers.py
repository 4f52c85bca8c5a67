"""Columns as text: CSV, tab-separated, JSON lines. Each writer yields the text of each batch."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from marginmf._utils.types import Array

Batches = Iterable[dict[str, Array]]


def delimited_text(batches: Batches, separator: str) -> Iterator[str]:
    """Yield rows of cells, after a header, with quotes where they are needed."""
    header = True
    for batch in batches:
        columns = [_plain(column) for column in batch.values()]
        buffer = io.StringIO()
        # By itself the writer would not quote a carriage return, which ends a line for readers.
        returns = any("\r" in cell for column in columns for cell in column if _is_text(cell))
        quoting: Any = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
        writer = csv.writer(buffer, delimiter=separator, quoting=quoting, lineterminator="\n")
        if header:
            writer.writerow(batch)
            header = False
        writer.writerows(zip(*columns, strict=True))
        yield buffer.getvalue()


def json_lines(batches: Batches) -> Iterator[str]:
    """Yield one object a line."""
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    for batch in batches:
        columns = [_plain(column) for column in batch.values()]
        rows = (dict(zip(batch, row, strict=True)) for row in zip(*columns, strict=True))
        try:
            yield "".join(f"{encode(row)}\n" for row in rows)
        except (TypeError, ValueError):
            _refuse(batch, encode)
            raise


#: By the ending of a file's name.
TEXT_WRITERS: dict[str, Callable[[Batches], Iterator[str]]] = {
    "csv": partial(delimited_text, separator=","),
    "tsv": partial(delimited_text, separator="\t"),
    "jsonl": json_lines,
}


def _plain(column: Array) -> list[Any]:
    """Return values as Python's own, with None where there is no number."""
    if column.dtype.kind == "f":
        if column.dtype.itemsize < 8:
            # 0.1 in single precision is written so, and not as the 0.10000000149 that it is.
            column = column.astype(np.str_).astype(np.float64)
        if np.isnan(column).any():
            column = column.astype(object)
    values: list[Any] = column.tolist()
    if column.dtype == object:
        values = [value.item() if isinstance(value, np.generic) else value for value in values]
        values = [None if value != value else value for value in values]  # NaN alone
    return values


def _is_text(cell: Any) -> bool:
    return isinstance(cell, str)


def _refuse(batch: dict[str, Array], encode: Callable[[Any], str]) -> None:
    for name, column in batch.items():
        for value in _plain(column):
            try:
                encode(value)
            except (TypeError, ValueError):
                raise ValueError(
                    f"The column {name!r} holds {value!r}, which JSON lines cannot hold; "
                    f"write CSV or another kind of file."
                ) from None
