"""From the bytes of a file to pieces of text: encoding and line ends, a few megabytes at a time."""

import codecs
import io
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from marginmf.datasets.files.kinds import UTF_16_MARKS
from marginmf.datasets.files.sources import Source

PIECE_BYTES = 1 << 23
OTHER_ENCODING = "latin-1"


class Piece(NamedTuple):
    """Whole lines of a text, and how many lines come before them."""

    lines_before: int
    text: str


def likely_encoding(source: Source) -> str:
    """Return the encoding by the byte-order mark, else UTF-8.

    Only the last byte of a file tells whether it is UTF-8. When it is not, reading starts again
    with `OTHER_ENCODING`, which never fails.
    """
    return "utf-16" if source.head.startswith(UTF_16_MARKS) else "utf-8-sig"


def read_pieces(source: Source, encoding: str, size: int | None = None) -> Iterator[Piece]:
    """Yield the text of a file, about `size` bytes at a time, with every line end a newline."""
    size = PIECE_BYTES if size is None else size
    errors = "replace" if encoding == "utf-16" else "strict"
    decoder = io.IncrementalNewlineDecoder(
        codecs.getincrementaldecoder(encoding)(errors), translate=True
    )
    held, lines = "", 0
    with source.open() as file:
        while data := file.read(size):
            text = held + decoder.decode(data)
            end = text.rfind("\n") + 1
            held = text[end:]
            if end:
                piece = Piece(lines, text[:end])
                del text  # the consumer's turn comes now, with only one copy held here
                yield piece
                lines += piece.text.count("\n")
        held += decoder.decode(b"", final=True)
    if held:
        yield Piece(lines, held)


def skip_lines(pieces: Iterable[Piece], count: int) -> Iterator[Piece]:
    """Leave the first lines of a text out."""
    for lines, text in pieces:
        start = 0
        while count and start < len(text):
            start = text.find("\n", start) + 1 or len(text)
            lines, count = lines + 1, count - 1
        if start < len(text):
            yield Piece(lines, text[start:] if start else text)


def lines_of(pieces: Iterable[Piece]) -> Iterator[str]:
    """Yield line after line, each with its newline."""
    return chain.from_iterable(io.StringIO(piece.text) for piece in pieces)
