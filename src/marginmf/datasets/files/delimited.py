"""From lines of text to rows of cells: separator and quotes."""

import csv
from collections.abc import Iterable, Iterator

# In the order of preference when several fit. None stands for any run of blanks.
SEPARATORS: tuple[str | None, ...] = ("::", "\t", ",", ";", None)
# With two columns only, a semicolon says more than a comma, which also stands in titles and,
# in the files that have semicolons, in numbers.
PAIR_SEPARATORS: tuple[str | None, ...] = ("::", "\t", ";", ",", None)
SAMPLE_LINES = 20
SAMPLE_CHARACTERS = 1 << 16

Row = list[str]


def sniff_separator(text: str, cells: int = 3) -> str | None:
    r"""Find the separator that cuts most of the first rows into `cells` cells or more.

    Examples
    --------
    >>> sniff_separator("1::2::3\n"), sniff_separator("a;b;3,5\n"), sniff_separator("1 2 3")
    ('::', ';', None)
    """
    sample = text[:SAMPLE_CHARACTERS].split("\n")
    if len(text) > SAMPLE_CHARACTERS and len(sample) > 1:
        sample.pop()  # cut in the middle
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
            row = line.rstrip("\n").split(separator)
            if len(row) > 1 or (row and row[0].strip()):
                yield number, row
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
        if not rows or 2 * rows[-1][0] < len(lines):
            return [_width(line, separator) for line in lines]
    return [len(row) for _, row in rows]


def _width(line: str, separator: str | None) -> int:
    try:
        return max((len(row) for _, row in iterate_rows([line], separator, "")), default=0)
    except ValueError:
        return len(line.split(separator))
