"""Small files of every kind, made of columns, for the tests of readers."""

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import feather, parquet

ROWS: dict[str, list[Any]] = {
    "when": [7, 8, 9],
    "user": ["ann", "bob", "ann"],
    "film": [10, 20, 10],
    "stars": [5.0, 3.5, 1.0],
}


def as_json(rows: dict[str, list[Any]]) -> bytes:
    objects = (dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True))
    return "".join(f"{json.dumps(one)}\n" for one in objects).encode()


def as_csv(rows: dict[str, list[Any]], separator: str = ",") -> bytes:
    lines = [list(rows), *zip(*rows.values(), strict=True)]
    return "".join(f"{separator.join(map(str, line))}\n" for line in lines).encode()


def table(rows: dict[str, list[Any]] | pa.Table) -> pa.Table:
    return rows if isinstance(rows, pa.Table) else pa.table(rows)


def as_parquet(rows: dict[str, list[Any]] | pa.Table) -> bytes:
    buffer = io.BytesIO()
    parquet.write_table(table(rows), buffer)
    return buffer.getvalue()


def as_feather(rows: dict[str, list[Any]] | pa.Table) -> bytes:
    buffer = io.BytesIO()
    feather.write_feather(table(rows), buffer)
    return buffer.getvalue()


def as_stream(rows: dict[str, list[Any]] | pa.Table) -> bytes:
    buffer = io.BytesIO()
    with pa.ipc.new_stream(buffer, table(rows).schema) as writer:
        writer.write_table(table(rows), max_chunksize=2)
    return buffer.getvalue()


COLUMNAR: dict[str, Callable[[Any], bytes]] = {
    "parquet": as_parquet,
    "feather": as_feather,
    "arrows": as_stream,
}
KINDS: dict[str, Callable[[Any], bytes]] = COLUMNAR | {
    "csv": as_csv,
    "tsv": lambda rows: as_csv(rows, "\t"),
    "dat": lambda rows: as_csv(rows, "::"),
    "jsonl": as_json,
    "csv.gz": lambda rows: gzip.compress(as_csv(rows)),
    "ndjson.gz": lambda rows: gzip.compress(as_json(rows)),
}


def write(folder: Path, content: bytes, name: str) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path
