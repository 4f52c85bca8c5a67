"""The table of file formats: how each is recognised, read and written.

To add a format, write a module with functions like those of `text` and `arrow`, and add a row.
"""

import gzip
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from io import TextIOBase
from os import PathLike
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

import numpy as np

from marginmf._utils.files import atomic_write, check_destination, named
from marginmf._utils.ids import as_objects
from marginmf.datasets.files import arrow, text
from marginmf.datasets.files.columns import Wanted
from marginmf.datasets.files.convert import Batch
from marginmf.datasets.files.source import SAMPLE_LINES, UTF_16_MARKS, Source
from marginmf.datasets.table import Columns

OLD_FEATHER = b"FEA1"
STANDARD_OUTPUT = "-"
# A brace alone does not make JSON: ids such as {3F25-04E0} begin with one too.
JSON_OBJECT = re.compile(r'\s*\{\s*(["}]|\Z)')
#: How files of features and labels begin: ARFF, and the lines of svmlight.
ARFF = re.compile(r"(?:\s|%[^\n]*\n)*@(?:relation|attribute|data)\b", re.IGNORECASE)
#: The first line of a file of extreme classification: samples, features, labels.
SIZES = re.compile(r"\s*(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})\s*", re.ASCII).fullmatch
SVMLIGHT_LINE = re.compile(
    r"\s*(?:\d+(?:,\d+)*(?:\s+|\Z))?(?:\d+:[^\s:,]+(?:\s+|\Z))*(?:#.*)?", re.ASCII
)
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
            if source.compressed or source.archive is not None:
                packed = "gzip" if source.compressed else "a zip archive"
                raise ValueError(
                    f"{source.where} is a file of kind {format_.name} inside {packed}; unpack it "
                    "first."
                )
            return format_
    if head.startswith(UTF_16_MARKS):
        begin = head.decode("utf-16", errors="ignore")
    elif b"\0" in head:
        expected = FORMATS.get(BY_ENDING.get(named, ""), TEXT)
        problem = f"is not a text file; export the {source.content} as CSV or another text form"
        if head.startswith(OLD_FEATHER):
            problem = "is a Feather file of the old version 1; write it again as version 2"
        elif expected.columnar:
            problem = f"is called a file of kind {expected.name} but is none, or is damaged"
            problem += "; write it again"
        raise ValueError(f"{source.where} {problem}.")
    else:
        begin = head.decode("utf-8-sig", errors="ignore")
    if JSON_OBJECT.match(begin) or (named in JSON_ENDINGS and begin.lstrip()[:1] in ("{", "[")):
        return JSON_LINES
    return TEXT


def looks_like_svmlight(text: str) -> bool:
    """Tell whether the first lines of a text are of this form."""
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    if lines and SIZES(lines[0]):
        lines = lines[1:]
    incomplete = len(lines) > 1 and not text.endswith("\n")  # the last line may go on
    whole = lines[:-1] if incomplete else lines
    # A line without a colon may be a sample without features.
    return any(":" in line for line in whole) and all(
        map(SVMLIGHT_LINE.fullmatch, whole[:SAMPLE_LINES])
    )


def write_columns(
    target: str | PathLike[str] | IO[Any],
    columns: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    *,
    kind: str | None = None,
) -> int:
    """Write columns under their names; a file appears whole or not at all.

    Parameters
    ----------
    target : path-like or stream
        A file; ``"-"`` for standard output; or a stream that is open for writing. Streams get
        each batch as it comes.
    columns : mapping, or iterable of mappings
        Arrays of one length by name; or batches of rows, each such a mapping with the same names.
        Batches are written as they come, so that a generator of them needs little memory.
    kind : {"csv", "tsv", "jsonl", "parquet", "arrow", "arrows"}, optional
        By default that of the file's name: ``.csv``, ``.tsv``, ``.jsonl`` (or ``.ndjson``), each
        also with ``.gz`` after it; ``.parquet``, ``.arrow`` (or ``.feather``), ``.arrows`` (a
        stream of Arrow batches). CSV for streams. The last three need the extra ``marginmf[io]``.

    Returns
    -------
    int
        How many rows were written.

    Raises
    ------
    ValueError
        If the kind is not known, or the columns do not fit together or into a file of the kind.
    OSError, ImportError
        If the file cannot be written, or pyarrow is needed and not installed.

    Notes
    -----
    Numbers are written with all their digits, and ids as they are. JSON lines, Parquet and Arrow
    keep the difference between ``7`` and ``"7"``; delimited text cannot. NaN is an empty cell in
    text, null in JSON lines, and NaN in Parquet and Arrow.

    Examples
    --------
    >>> import numpy as np
    >>> rows = {"user": np.array(["ann", "bob"]), "item": np.array([7, 9]), "rating": [4.5, 3.0]}
    >>> write_columns("-", rows)
    user,item,rating
    ann,7,4.5
    bob,9,3.0
    2
    """
    path = None
    if isinstance(target, str | PathLike):
        path = Path(target) if str(target) != STANDARD_OUTPUT else None
        target = sys.stdout
    if kind is None:
        kind = "csv" if path is None else BY_ENDING.get(ending(path.name))
    if path is not None and kind is None:
        raise ValueError(
            f"The name {path.name!r} does not say what kind of file to write; let it end in one of "
            f"{', '.join(BY_ENDING)}, or give kind=."
        )
    if kind not in FORMATS:
        raise ValueError(f"There is no kind of file {kind!r} to write; kinds are {list(FORMATS)}.")
    file_format, batches = FORMATS[kind], _Batches(columns)
    if path is not None:
        if file_format.columnar and path.name.lower().endswith(".gz"):
            raise ValueError(f"A file of kind {kind} is not compressed with gzip: leave .gz out.")
        with _open_whole(path) as file:
            file_format.write(file, batches)
        return batches.n_rows
    if isinstance(target, TextIOBase):
        target.flush()
    stream = getattr(target, "buffer", target)  # the bytes below a stream of text, if there are any
    if not file_format.columnar:
        file_format.write(stream, batches)
    elif isinstance(stream, TextIOBase):
        raise ValueError(f"A file of kind {kind} is bytes, which a stream of text cannot take.")
    else:
        # These writers ask for their position, which a pipe does not know.
        with TemporaryFile() as file:
            file_format.write(file, batches)
            file.seek(0)
            shutil.copyfileobj(file, stream)
    return batches.n_rows


@contextmanager
def _open_whole(path: Path) -> Iterator[IO[Any]]:
    """Open a file that appears when it is whole, compressed if its name says so."""
    check_destination(path)
    # A pipe or a device is written to; a file is replaced, also where a link leads to it.
    special = path.exists() and not path.is_file()
    with named(path), open(path, "wb") if special else atomic_write(path) as file:
        if not path.name.lower().endswith(".gz"):
            yield file
        else:
            # Without a time and a name, so that the same rows make the same file.
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                yield packed  # type: ignore[misc]


class _Batches:
    """Batches that fit together, and how many rows they had."""

    def __init__(self, columns: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> None:
        self._given = [columns] if isinstance(columns, Mapping) else columns
        self.n_rows = 0

    def __iter__(self) -> Iterator[Columns]:
        names: list[str] | None = None
        for given in self._given:
            batch = {}
            for name, values in given.items():
                column = values if isinstance(values, np.ndarray) else as_objects(values)
                if column.ndim != 1:
                    raise ValueError(
                        f"The column {name!r} must be one-dimensional, not {column.shape}."
                    )
                batch[name] = column
            names = list(batch) if names is None else names
            lengths = {name: len(column) for name, column in batch.items()}
            if not lengths or list(batch) != names:
                raise ValueError(
                    f"A batch has the columns {list(batch)} where {names or 'some'} are expected."
                )
            if len(set(lengths.values())) > 1:
                raise ValueError(f"The columns of a batch differ in length: {lengths}.")
            self.n_rows += lengths[names[0]]
            yield batch
        if names is None:
            raise ValueError("There is no batch to write; give one, if need be without rows.")
