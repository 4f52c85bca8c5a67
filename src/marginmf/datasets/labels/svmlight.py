"""Read svmlight files with several labels a line: ``1,3,5 4:0.2 7:1``."""

import re
from collections.abc import Iterator

from marginmf.datasets.files.pieces import OTHER_ENCODING, likely_encoding, read_pieces
from marginmf.datasets.files.sources import Source
from marginmf.datasets.labels.choice import LabelsChoice
from marginmf.datasets.labels.svmlight_rows import Sizes, SvmlightRows
from marginmf.datasets.labels.table import LabelsTable

#: The first line of a file of extreme classification: samples, features, labels.
SIZES = re.compile(r"\s*(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})\s*")
LINE = re.compile(r"\s*(?:\d+(?:,\d+)*(?:\s+|\Z))?(?:\d+:[^\s:,]+(?:\s+|\Z))*(?:#.*)?")
LOT_LINES = 1 << 14
SAMPLE_LINES = 20


def looks_like_svmlight(text: str) -> bool:
    """Tell whether the first lines of a text are of this form."""
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    if lines and SIZES.fullmatch(lines[0]):
        lines = lines[1:]
    cut = len(lines) > 1 and not text.endswith("\n")  # the last line may go on
    whole = lines[:-1] if cut else lines
    # A line without a colon may be a sample without features.
    return any(":" in line for line in whole) and all(map(LINE.fullmatch, whole[:SAMPLE_LINES]))


def read_svmlight(
    source: Source, labels: LabelsChoice | None, n_features: int | None
) -> LabelsTable:
    """Read a file; `labels` are a count of labels, or their names in the order of the numbers."""
    try:
        return _read(source, labels, n_features, likely_encoding(source))
    except UnicodeDecodeError:
        return _read(source, labels, n_features, OTHER_ENCODING)


def _read(
    source: Source, labels: LabelsChoice | None, n_features: int | None, encoding: str
) -> LabelsTable:
    rows = SvmlightRows(source.where)
    sizes: Sizes | None = None
    first = True
    for numbers, lines in _lots(source, encoding):
        if first and (match := SIZES.fullmatch(lines[0])):
            sizes = Sizes(*map(int, match.groups()))
            numbers, lines = numbers[1:], lines[1:]
        first = False
        rows.add(numbers, lines)
    if not len(rows):
        raise ValueError(f"{source.where} has no rows; it needs lines such as 1,3 4:0.2 7:1.")
    if sizes is not None and sizes.n_samples != len(rows):
        raise ValueError(
            f"{source.where} says in its first line that it has {sizes.n_samples:,} samples, but "
            f"it has {len(rows):,}; it is cut short or joined, so fetch or write it again."
        )
    X = rows.features(sizes.n_features if sizes else n_features, from_zero=sizes is not None)
    Y, names = rows.labels(sizes, labels)
    return LabelsTable(
        source.path.name, X, Y, label_names=names, source=f"read from {source.where}"
    )


def _lots(source: Source, encoding: str) -> Iterator[tuple[list[int], list[str]]]:
    """Yield the numbers and the text of some lines at a time, without comments."""
    for piece in read_pieces(source, encoding):
        numbers: list[int] = []
        lines: list[str] = []
        for number, line in enumerate(piece.text.split("\n"), piece.lines_before + 1):
            line = line.partition("#")[0] if "#" in line else line
            if not line or line.isspace():
                continue
            numbers.append(number)
            lines.append(line)
            if len(lines) == LOT_LINES:
                yield numbers, lines
                numbers, lines = [], []
        if lines:
            yield numbers, lines
