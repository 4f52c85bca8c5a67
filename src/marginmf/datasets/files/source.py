"""A file to read: its bytes, its text in chunks of lines, and its lines as rows of cells.

It may be standard input, or the file of ratings inside a zip archive.
"""

import codecs
import csv
import io
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import chain
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple, TypeVar

from marginmf.datasets.files.packed import (
    GZIP_MARK,
    PIPED_BYTES,
    ZIP_MARK,
    Size,
    beyond_limit,
    first_reason,
    most_bytes,
    open_gzip,
    open_member,
    open_zip,
)

HEAD_BYTES = 4096
STANDARD_INPUT = "-"
#: What files of ratings are called in archives that their owners publish.
RATINGS_FILES = (
    "u.data",
    "ratings.dat",
    "ratings.csv",
    "bx-book-ratings.csv",
    "jester_ratings.dat",
)
#: Members of archives that hold no data.
NO_DATA = re.compile(r"(^|/)(__MACOSX/|\.|read.?me|licen[cs]e|notice|checksums)|/$", re.IGNORECASE)
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
CHUNK_BYTES = 1 << 23
#: How many characters a line may have, and a row of cells whose quotes span lines. The longest
#: in use are dense rows of features, of which a hundred thousand take a megabyte.
LONGEST_LINE = 1 << 24
#: Messages show so much of the name of a file in an archive.
LONGEST_NAME = 200
OTHER_ENCODING = "latin-1"
# In the order of preference when several fit. None stands for any run of blanks.
SEPARATORS: tuple[str | None, ...] = ("::", "\t", ",", ";", None)
# With two columns only, a semicolon says more than a comma, which also stands in titles and,
# in the files that have semicolons, in numbers.
PAIR_SEPARATORS: tuple[str | None, ...] = ("::", "\t", ";", ",", None)
SAMPLE_LINES = 20
SAMPLE_CHARACTERS = 1 << 16

Row = list[str]
Result = TypeVar("Result")


class Source:
    """A file that exists, and how it begins: plain or gzip, on a disk or through a pipe.

    `content` says what it holds, for messages: "ratings" or "pairs". `data` are the bytes of the
    file, where they are known already, as for a file inside an archive. The path ``-`` is standard
    input. Of a zip archive it is the file of ratings, or the only table in it; archives of labels
    are left to their reader. What it unpacks to, or sends through a pipe, is at most `most` bytes:
    `max_bytes`, if that is given.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        content: str = "ratings",
        data: bytes | None = None,
        max_bytes: Size | None = None,
    ) -> None:
        self.path, self.content, self.data = Path(path), content, data
        #: What the columns are called, once the file has been read and has names for them.
        self.columns: dict[str, str] = {}
        self.archive: Path | None = None
        self.member = ""
        piped = PIPED_BYTES if max_bytes is None else most_bytes(0, max_bytes)
        if data is None and str(path) == STANDARD_INPUT:
            self.path = Path("standard input")
            self.data = read_standard_input(content, piped)
        self.where = str(self.path)
        if self.data is None:
            check_source(self.path, content)
            if not self.path.is_file():
                # A pipe can be read only once, but the content is needed several times.
                with open(self.path, "rb") as pipe:
                    self.data = read_at_most(pipe, self.where, piped)
        packed = self.path.stat().st_size if self.data is None else len(self.data)
        self.most = most_bytes(packed, max_bytes)
        self.compressed = False
        with self.open() as file:
            beginning = file.read(HEAD_BYTES)
        if beginning.startswith(ZIP_MARK) and content != "labels":
            self.member = self._find_table()
            # A name in an archive may be that of a folder elsewhere, or very long.
            name = self.member[-LONGEST_NAME:].lstrip("/")
            self.archive, self.path = self.path, self.path / name
            self.where = str(self.path)
            with self.open() as file:
                beginning = file.read(HEAD_BYTES)
        self.compressed = beginning.startswith(GZIP_MARK)  # whatever the file is called
        if self.compressed:
            with self.open() as file:
                beginning = file.read(HEAD_BYTES)
        self.head = beginning
        self.encoding = "utf-16" if beginning.startswith(UTF_16_MARKS) else "utf-8-sig"

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the content, unpacked if it is zip or gzip; a damaged file is a ValueError."""
        with self._open_packed() as file:
            packed = open_gzip(file, self.where, self.most) if self.compressed else None
            with packed or nullcontext(file) as content:
                yield content

    @contextmanager
    def _open_packed(self) -> Iterator[BinaryIO]:
        on_disk = self.path if self.archive is None else self.archive
        with open(on_disk, "rb") if self.data is None else io.BytesIO(self.data) as file:
            if self.archive is None:
                yield file
                return
            with (
                open_zip(file, self.archive) as archive,
                open_member(archive, self.member, self.archive, self.most) as member,
            ):
                yield member

    def _find_table(self) -> str:
        """Return which member of an archive to read."""
        with self.open() as file, open_zip(file, self.path) as packed:
            names = [name for name in packed.namelist() if not NO_DATA.search(name)]
        known = {PurePosixPath(name).name.lower(): name for name in names}
        wanted = RATINGS_FILES if self.content in ("ratings", "pairs") else ()
        found = [known[name] for name in wanted if name in known] or names
        if len(found) > 1 and found is names:
            listed = ", ".join(f"{name!r:.100}" for name in names[:8]) + ", ..." * (len(names) > 8)
            raise ValueError(
                f"{self.where} holds {len(names)} files: {listed}; unpack it, and name the one "
                f"with the {self.content}."
            )
        if not found:
            raise ValueError(f"{self.where} is a zip file without a table in it.")
        return found[0]

    def read_chunks(self, size: int | None = None) -> "Iterator[Chunk]":
        """Yield the text of the file; see `decode_chunks`."""
        with self.open() as file:
            yield from decode_chunks(file, self.encoding, self.where, size)

    def read_decoded(self, read: Callable[[], Result]) -> Result:
        """Return ``read()``, once more with Latin-1 if the file turns out not to be UTF-8.

        Only the last byte of a file tells whether it is UTF-8; Latin-1 never fails.
        """
        try:
            return read()
        except UnicodeDecodeError:
            self.encoding = OTHER_ENCODING
            return read()


def check_source(path: Path, content: str) -> None:
    """Raise an error that says what is wrong unless there is a file, or a pipe, to read."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise missing_file(path) from None
    except (OSError, ValueError) as error:  # a circle of links, a name too long, a null byte in it
        kind = type(error) if isinstance(error, OSError) else ValueError
        reason = getattr(error, "strerror", None) or first_reason(error)
        raise kind(f"{str(path)!r:.100} cannot be read ({reason}); name another file.") from None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a folder; name the file of {content} in it.")
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise OSError(f"{path} is a device; name a file of {content}.")
    if not os.access(path, os.R_OK):
        raise PermissionError(f"{path} may not be read; change its permissions, or copy it.")


def read_standard_input(content: str, most: int) -> bytes:
    """Return all that comes through standard input, or say that nothing does."""
    stream = sys.stdin
    if stream is None or stream.isatty():
        raise ValueError(
            f"Standard input is not connected to anything: send the {content} through a pipe, or "
            "name a file instead of -."
        )
    data = read_at_most(stream.buffer, "standard input", most)
    if not data.strip():
        raise ValueError(
            f"Nothing came through standard input, which should hold the {content}; name a file "
            "instead of -."
        )
    return data


def read_at_most(pipe: BinaryIO, where: str, most: int) -> bytes:
    """Return all that comes through a pipe."""
    data = pipe.read(most + 1)
    if len(data) > most:
        raise beyond_limit(where, most, "sends")
    return data


def missing_file(path: Path) -> FileNotFoundError:
    """Return the error for a file that does not exist."""
    return FileNotFoundError(
        f"There is no file {path!s:.200}; check the name and the folder (now in {Path.cwd()})."
    )


class Chunk(NamedTuple):
    """Whole lines of a text, and the number of lines before them."""

    lines_before: int
    text: str


def decode_chunks(
    file: BinaryIO, encoding: str, where: str, size: int | None = None
) -> Iterator[Chunk]:
    """Yield the text of a file, about `size` bytes at a time, with every line end a newline."""
    errors = "replace" if encoding == "utf-16" else "strict"
    decoder = io.IncrementalNewlineDecoder(
        codecs.getincrementaldecoder(encoding)(errors), translate=True
    )
    # A line that goes on is joined only when it ends, or time would be quadratic in its length.
    begun: list[str] = []
    length = lines = 0
    while data := file.read(CHUNK_BYTES if size is None else size):
        text = decoder.decode(data)
        end = text.rfind("\n") + 1
        length += text.find("\n") if end else len(text)
        if length > LONGEST_LINE:
            raise long_line(where, lines + 1)
        if not end:
            begun.append(text)
            continue
        chunk = Chunk(lines, "".join([*begun, text[:end]]))
        begun, length = [text[end:]], len(text) - end
        del text  # only one copy in memory while the consumer works
        yield chunk
        lines += chunk.text.count("\n")
    rest = "".join([*begun, decoder.decode(b"", final=True)])
    if rest:
        yield Chunk(lines, rest)


def long_line(where: str, number: int) -> ValueError:
    """Return the error for a line, or a row of cells, that is longer than the limit."""
    return ValueError(
        f"{where}, line {number}: the line has more than {LONGEST_LINE:,} characters; end it, or "
        "close its quotes."
    )


def skip_lines(chunks: Iterable[Chunk], count: int) -> Iterator[Chunk]:
    """Leave out the first lines of a text."""
    for lines, text in chunks:
        start = 0
        while count and start < len(text):
            start = text.find("\n", start) + 1 or len(text)
            lines, count = lines + 1, count - 1
        if start < len(text):
            yield Chunk(lines, text[start:] if start else text)


def lines_of(chunks: Iterable[Chunk]) -> Iterator[str]:
    """Yield line after line, each with its newline."""
    return chain.from_iterable(io.StringIO(chunk.text) for chunk in chunks)


def open_rows(
    source: Source, n_cells: int, needs: str, size: int | None = 4 * SAMPLE_CHARACTERS
) -> tuple[str | None, Iterator[tuple[int, Row]]]:
    """Return the separator of a text and its rows, or raise ValueError if it is blank."""
    chunks = source.read_chunks(size)
    first = next((chunk for chunk in chunks if chunk.text.strip()), None)
    if first is None:
        raise ValueError(f"{source.where} is empty; it needs {needs}.")
    separator = sniff_separator(first.text, n_cells)
    lines = lines_of(chain([first], chunks))
    return separator, iterate_rows(lines, separator, source.where, first.lines_before)


def sniff_separator(text: str, cells: int = 3) -> str | None:
    r"""Find the separator that splits most of the first rows into `cells` cells or more.

    >>> sniff_separator("1::2::3\n"), sniff_separator("a;b;3,5\n"), sniff_separator("1 2 3")
    ('::', ';', None)
    """
    sample = text[:SAMPLE_CHARACTERS].split("\n")
    if len(text) > SAMPLE_CHARACTERS and len(sample) > 1:
        sample.pop()  # an incomplete line
    lines = [line for line in sample if line.strip()][:SAMPLE_LINES]

    def fit(separator: str | None) -> tuple[float, int]:
        widths = _widths(lines, separator)
        wide = sum(width >= cells for width in widths)
        return wide / max(len(widths), 1), 0 if wide else max(widths, default=0)

    return max(SEPARATORS if cells > 2 else PAIR_SEPARATORS, key=fit)


def iterate_rows(
    lines: Iterable[str], separator: str | None, where: str, lines_before: int = 0
) -> Iterator[tuple[int, Row]]:
    """Yield the number and the cells of each line that is not blank.

    Quotes are those of CSV for a separator of one character; with ``::`` and blanks they are
    ordinary characters.
    """
    if separator is None or len(separator) > 1:
        for number, line in enumerate(lines, start=lines_before + 1):
            if line.strip():
                yield number, line.rstrip("\n").split(separator)
        return
    length = 0

    def counted() -> Iterator[str]:
        nonlocal length
        for number, line in enumerate(lines, start=lines_before + 1):
            length += len(line)
            if length > LONGEST_LINE:
                raise long_line(where, number)
            yield line

    reader = csv.reader(counted(), delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            length = 0
            if len(row) > 1 or (row and row[0].strip()):
                yield lines_before + reader.line_num, row
    except csv.Error as error:
        problem = f"the quotes do not match ({error})"
        if "field limit" in str(error):
            problem = f"a cell has more than {csv.field_size_limit():,} characters; shorten it"
        raise ValueError(
            f"{where}, line {lines_before + reader.line_num}: {problem}; close the quote, or write "
            f'a quote inside a quoted value as "".'
        ) from error


def _widths(lines: list[str], separator: str | None) -> list[int]:
    rows: list[tuple[int, Row]] = []
    try:
        rows.extend(iterate_rows([f"{line}\n" for line in lines], separator, ""))
    except ValueError:
        # A quote that closes after these lines, if it comes late; else no quote at all.
        if len(lines) == 1:
            return [len(lines[0].split(separator))]
        if not rows or 2 * rows[-1][0] < len(lines):
            return [width for line in lines for width in _widths([line], separator) or [0]]
    return [len(row) for _, row in rows]
