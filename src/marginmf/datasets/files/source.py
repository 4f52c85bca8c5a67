"""A file to read: its bytes, its text in chunks of lines, and its lines as rows of cells.

It may be standard input, or the file of ratings inside a zip archive.
"""

import codecs
import csv
import gzip
import io
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple, TypeVar

HEAD_BYTES = 4096
GZIP_MARK, ZIP_MARK = b"\x1f\x8b", b"PK\x03\x04"
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
#: What a damaged archive, or one with a password, makes zipfile raise.
DAMAGED_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
CHUNK_BYTES = 1 << 23
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
    are left to their reader.
    """

    def __init__(
        self, path: str | PathLike[str], content: str = "ratings", data: bytes | None = None
    ) -> None:
        self.path, self.content, self.data = Path(path), content, data
        #: What the columns are called, once the file has been read and has names for them.
        self.columns: dict[str, str] = {}
        self.archive: Path | None = None
        if data is None and str(path) == STANDARD_INPUT:
            self.path, self.data = Path("standard input"), read_standard_input(content)
        self.where = where = str(self.path)
        if self.data is None:
            if self.path.is_dir():
                raise IsADirectoryError(f"{where} is a folder; name the file of {content} in it.")
            if not self.path.exists():
                raise missing_file(self.path)
            if not self.path.is_file():
                # A pipe can be read only once, but the content is needed several times.
                self.data = self.path.read_bytes()
        self.compressed = False
        with self.open() as file:
            beginning = file.read(HEAD_BYTES)
        if beginning.startswith(ZIP_MARK) and content != "labels":
            self.archive, self.path = self.path, self.path / self._find_table()
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
        try:
            with self._open_packed() as file:
                if self.compressed:
                    with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
                        yield unpacked  # type: ignore[misc]
                else:
                    yield file
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{self.where} is a damaged gzip file ({error}); fetch or compress it again."
            ) from error

    @contextmanager
    def _open_packed(self) -> Iterator[BinaryIO]:
        on_disk = self.path if self.archive is None else self.archive
        with open(on_disk, "rb") if self.data is None else io.BytesIO(self.data) as file:
            if self.archive is None:
                yield file
                return
            with unzip(file, self.archive) as packed:
                yield packed.open(self.path.relative_to(self.archive).as_posix())  # type: ignore[misc]

    def _find_table(self) -> str:
        """Return which member of an archive to read."""
        with self.open() as file, unzip(file, self.path) as packed:
            names = [name for name in packed.namelist() if not NO_DATA.search(name)]
        known = {PurePosixPath(name).name.lower(): name for name in names}
        wanted = RATINGS_FILES if self.content in ("ratings", "pairs") else ()
        found = [known[name] for name in wanted if name in known] or names
        if len(found) > 1 and found is names:
            listed = ", ".join(map(repr, names[:8])) + ", ..." * (len(names) > 8)
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
            yield from decode_chunks(file, self.encoding, size)

    def read_decoded(self, read: Callable[[], Result]) -> Result:
        """Return ``read()``, once more with Latin-1 if the file turns out not to be UTF-8.

        Only the last byte of a file tells whether it is UTF-8; Latin-1 never fails.
        """
        try:
            return read()
        except UnicodeDecodeError:
            self.encoding = OTHER_ENCODING
            return read()


@contextmanager
def unzip(file: BinaryIO, where: str | Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive; a damaged one is a ValueError."""
    try:
        with zipfile.ZipFile(file) as packed:
            yield packed
    except DAMAGED_ZIP as error:
        reason = first_reason(error)
        raise ValueError(f"{where} is a damaged zip file ({reason}); fetch it again.") from error


def read_standard_input(content: str) -> bytes:
    """Return all that comes through standard input, or say that nothing does."""
    stream = sys.stdin
    if stream is None or stream.isatty():
        raise ValueError(
            f"Standard input is not connected to anything: send the {content} through a pipe, or "
            "name a file instead of -."
        )
    data = stream.buffer.read()
    if not data.strip():
        raise ValueError(
            f"Nothing came through standard input, which should hold the {content}; name a file "
            "instead of -."
        )
    return data


def missing_file(path: Path) -> FileNotFoundError:
    """Return the error for a file that does not exist."""
    return FileNotFoundError(
        f"There is no file {path}; check the name and the folder (now in {Path.cwd()})."
    )


def first_reason(error: Exception) -> str:
    """Return why something failed, in one line, also where the error has no message."""
    return str(error).partition("\n")[0].rstrip(".") or type(error).__name__


class Chunk(NamedTuple):
    """Whole lines of a text, and the number of lines before them."""

    lines_before: int
    text: str


def decode_chunks(file: BinaryIO, encoding: str, size: int | None = None) -> Iterator[Chunk]:
    """Yield the text of a file, about `size` bytes at a time, with every line end a newline."""
    errors = "replace" if encoding == "utf-16" else "strict"
    decoder = io.IncrementalNewlineDecoder(
        codecs.getincrementaldecoder(encoding)(errors), translate=True
    )
    rest, lines = "", 0
    while data := file.read(CHUNK_BYTES if size is None else size):
        text = rest + decoder.decode(data)
        end = text.rfind("\n") + 1
        rest = text[end:]
        if end:
            chunk = Chunk(lines, text[:end])
            del text  # only one copy in memory while the consumer works
            yield chunk
            lines += chunk.text.count("\n")
    rest += decoder.decode(b"", final=True)
    if rest:
        yield Chunk(lines, rest)


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
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield lines_before + reader.line_num, row
    except csv.Error as error:
        raise ValueError(
            f"{where}, line {lines_before + reader.line_num}: the quotes do not match ({error}); "
            f'close the quote, or write a quote inside a quoted value as "".'
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
