"""Which kind of file it is: by its content, and by its name where the content does not say."""

import re
from enum import Enum

from marginmf.datasets.files.sources import Source


class Kind(Enum):
    """A form in which a table travels, as it is called in messages."""

    TEXT = "text"
    JSON_LINES = "JSON lines"
    PARQUET = "Parquet"
    ARROW_FILE = "Arrow"
    ARROW_STREAM = "Arrow stream"


# Endings of names, without the .gz that may follow. Any other name is that of a text file.
ENDINGS = {
    ".csv": Kind.TEXT,
    ".tsv": Kind.TEXT,
    ".jsonl": Kind.JSON_LINES,
    ".ndjson": Kind.JSON_LINES,
    ".json": Kind.JSON_LINES,
    ".parquet": Kind.PARQUET,
    ".pq": Kind.PARQUET,
    ".arrow": Kind.ARROW_FILE,
    ".feather": Kind.ARROW_FILE,
    ".ipc": Kind.ARROW_FILE,
    ".arrows": Kind.ARROW_STREAM,
}
COLUMNAR = (Kind.PARQUET, Kind.ARROW_FILE, Kind.ARROW_STREAM)
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
OLD_FEATHER = b"FEA1"
# A brace alone does not make JSON: ids such as {3F25-04E0} begin with one too.
OBJECT = re.compile(r'\s*\{\s*(["}]|\Z)')


def ending(name: str) -> str:
    """Return how a file's name ends, in small letters and without ``.gz``.

    >>> ending("Ratings.CSV.gz"), ending("ratings")
    ('.csv', '')
    """
    name = name.lower().removesuffix(".gz")
    return name[name.rindex(".") :] if "." in name else ""


def recognise(source: Source) -> Kind:
    """Return the kind of a file, or say why it cannot be read."""
    head = source.head
    named = ENDINGS.get(ending(source.path.name), Kind.TEXT)
    kind = _binary_kind(head, named)
    if kind is not None:
        if source.compressed:
            raise ValueError(
                f"{source.where} is a file of kind {kind.value} inside gzip; unpack it first."
            )
        return kind
    if head.startswith(UTF_16_MARKS):
        text = head.decode("utf-16", errors="ignore")
    else:
        if b"\0" in head:
            _refuse_binary(source, named)
        text = head.decode("utf-8-sig", errors="ignore")
    if OBJECT.match(text) or (named is Kind.JSON_LINES and text.lstrip()[:1] in ("{", "[")):
        return Kind.JSON_LINES
    return Kind.TEXT


def _binary_kind(head: bytes, named: Kind) -> Kind | None:
    # Parquet's mark could begin a text too, but a text has no null byte.
    if head.startswith(b"PAR1") and (b"\0" in head or named is Kind.PARQUET):
        return Kind.PARQUET
    if head.startswith(b"ARROW1\0\0"):
        return Kind.ARROW_FILE
    return Kind.ARROW_STREAM if head.startswith(b"\xff\xff\xff\xff") else None


def _refuse_binary(source: Source, named: Kind) -> None:
    if source.head.startswith(OLD_FEATHER):
        raise ValueError(
            f"{source.where} is a Feather file of the old version 1; write it again as version 2."
        )
    if named in COLUMNAR:
        raise ValueError(
            f"{source.where} is called a file of kind {named.value} but is none, or is damaged; "
            f"write it again."
        )
    raise ValueError(
        f"{source.where} is not a text file; export the {source.content} as CSV or another text "
        f"form."
    )
