"""The table of file formats: how each is recognised, read and written.

To add a format, write a module with functions like those of `text` and `arrow`, and add a row.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import IO, Any, NamedTuple

from marginmf.datasets.files import arrow, text
from marginmf.datasets.files.columns import Wanted
from marginmf.datasets.files.convert import Batch
from marginmf.datasets.files.source import UTF_16_MARKS, Source
from marginmf.datasets.table import Columns

OLD_FEATHER = b"FEA1"
# A brace alone does not make JSON: ids such as {3F25-04E0} begin with one too.
JSON_OBJECT = re.compile(r'\s*\{\s*(["}]|\Z)')
JSON_ENDINGS = (".jsonl", ".ndjson", ".json")


class Format(NamedTuple):
    """A format: its name in messages, endings of files, functions, and mark if it is binary."""

    name: str
    endings: tuple[str, ...]
    read_batches: Callable[[Source, Wanted], Iterator[Batch]]
    read_columns: Callable[[Source], Columns]
    write: Callable[[IO[Any], Iterable[Columns]], None]
    mark: bytes = b""

    @property
    def columnar(self) -> bool:
        """Whether files hold whole columns in binary form, for which pyarrow is needed."""
        return bool(self.mark)


def _delimited(ending: str, separator: str) -> Format:
    write = partial(text.write_delimited, separator=separator)
    return Format("text", (ending,), text.read_text_batches, text.read_text_columns, write)


def _columnar(mark: bytes, *endings: str) -> Format:
    readers = arrow.read_columnar_batches, arrow.read_columnar_columns
    write = partial(arrow.write_columnar, mark=mark)
    return Format(arrow.NAMES[mark], endings, *readers, write, mark)


#: By the word for each that `write_columns` takes.
FORMATS: dict[str, Format] = {
    "csv": _delimited(".csv", ","),
    "tsv": _delimited(".tsv", "\t"),
    "jsonl": Format(
        "JSON lines",
        (".jsonl", ".ndjson"),
        text.read_json_batches,
        text.read_json_columns,
        text.write_json_lines,
    ),
    "parquet": _columnar(arrow.PARQUET_MARK, ".parquet", ".pq"),
    "arrow": _columnar(arrow.ARROW_MARK, ".arrow", ".feather", ".ipc"),
    "arrows": _columnar(arrow.STREAM_MARK, ".arrows"),
}
TEXT, JSON_LINES, PARQUET = FORMATS["csv"], FORMATS["jsonl"], FORMATS["parquet"]
#: By the ending of a file's name, without ``.gz``; any other name is that of a text file.
BY_ENDING = {ending: kind for kind, format_ in FORMATS.items() for ending in format_.endings}


def ending(name: str) -> str:
    """Return how a file's name ends, in small letters and without ``.gz``."""
    name = name.lower().removesuffix(".gz")
    return name[name.rindex(".") :] if "." in name else ""


def recognise(source: Source) -> Format:
    """Return the format of a file by its content, or say why it cannot be read."""
    head, named = source.head, ending(source.path.name)
    for format_ in FORMATS.values():
        if format_.mark and head.startswith(format_.mark):
            # Parquet's mark could begin a text too, but a text has no null byte.
            if format_ is PARQUET and b"\0" not in head and named not in PARQUET.endings:
                continue
            if source.compressed:
                raise ValueError(
                    f"{source.where} is a file of kind {format_.name} inside gzip; unpack it first."
                )
            return format_
    if head.startswith(UTF_16_MARKS):
        begin = head.decode("utf-16", errors="ignore")
    elif b"\0" in head:
        raise _binary_file(source, named)
    else:
        begin = head.decode("utf-8-sig", errors="ignore")
    if JSON_OBJECT.match(begin) or (named in JSON_ENDINGS and begin.lstrip()[:1] in ("{", "[")):
        return JSON_LINES
    return TEXT


def _binary_file(source: Source, named: str) -> ValueError:
    expected = FORMATS.get(BY_ENDING.get(named, ""), TEXT)
    if source.head.startswith(OLD_FEATHER):
        problem = "is a Feather file of the old version 1; write it again as version 2"
    elif expected.columnar:
        problem = f"is called a file of kind {expected.name} but is none, or is damaged; write it "
        problem += "again"
    else:
        problem = f"is not a text file; export the {source.content} as CSV or another text form"
    return ValueError(f"{source.where} {problem}.")
