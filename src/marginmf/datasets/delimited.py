"""From the bytes of a text file to rows of cells: compression, encoding, separator, quotes."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

# In the order of preference when several fit. None stands for any run of blanks.
SEPARATORS: tuple[str | None, ...] = ("::", "\t", ",", ";", None)
SAMPLE_LINES = 20
SAMPLE_CHARACTERS = 1 << 16

Row = list[str]


def read_text(path: Path) -> str:
    """Read a text file, plain or gzip, UTF-8 or latin-1, with every line end made a newline."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name the file of ratings inside it.")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"There is no file {path}; check the name and the folder (now in {Path.cwd()})."
        ) from None
    if data.startswith(b"\x1f\x8b"):  # the mark of gzip, whatever the file is called
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(
                f"{path} is a damaged gzip file ({error}); fetch or compress it again."
            ) from error
    return decode(data, str(path))


def decode(data: bytes, where: str) -> str:
    """Decode text by its byte-order mark, else as UTF-8, else as latin-1."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", errors="replace")
    elif b"\0" in data[:4096]:
        raise ValueError(
            f"{where} is not a text file; export the ratings as CSV or another text form."
        )
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = data.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def sniff_separator(text: str) -> str | None:
    r"""Find the separator that cuts most of the first lines into three cells or more.

    Examples
    --------
    >>> sniff_separator("1::2::3\n"), sniff_separator("a;b;3,5\n"), sniff_separator("1 2 3")
    ('::', ';', None)
    """
    sample = text[:SAMPLE_CHARACTERS].split("\n")
    if len(text) > SAMPLE_CHARACTERS and len(sample) > 1:
        sample.pop()  # cut in the middle
    lines = [line for line in sample if line.strip()][:SAMPLE_LINES]

    def fit(separator: str | None) -> tuple[int, int]:
        widths = [_width(line, separator) for line in lines]
        wide = sum(width >= 3 for width in widths)
        return wide, 0 if wide else max(widths, default=0)

    return max(SEPARATORS, key=fit)


def iterate_rows(text: str, separator: str | None, where: str) -> Iterator[tuple[int, Row]]:
    """Yield the number and the cells of each line that is not blank.

    Quotes are those of CSV for a separator of one character; with ``::`` and blanks they are
    ordinary characters.
    """
    if separator is None or len(separator) > 1:
        for number, line in enumerate(text.split("\n"), start=1):
            row = line.split(separator)
            if len(row) > 1 or (row and row[0].strip()):
                yield number, row
        return
    reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield reader.line_num, row
    except csv.Error as error:
        raise ValueError(
            f"{where}, line {reader.line_num}: the quotes do not match ({error}); "
            f'close the quote, or write a quote inside a quoted value as "".'
        ) from error


def _width(line: str, separator: str | None) -> int:
    try:
        return max((len(row) for _, row in iterate_rows(line, separator, "")), default=0)
    except ValueError:  # a quote that closes on a later line
        return len(line.split(separator))
