"""Read svmlight files with several labels a line: ``1,3,5 4:0.2 7:1``."""

import re
from collections.abc import Iterator
from dataclasses import replace

from marginmf.datasets.files.source import OTHER_ENCODING, Source, likely_encoding, read_chunks
from marginmf.datasets.labels import svmlight_columns
from marginmf.datasets.labels.choice import LabelsChoice
from marginmf.datasets.labels.svmlight_columns import Numbering, Sizes
from marginmf.datasets.labels.svmlight_rows import BLANKS, SvmlightRows
from marginmf.datasets.labels.table import LabelsTable

#: The first line of a file of extreme classification: samples, features, labels.
SIZES = re.compile(r"\s*(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})\s*", re.ASCII)
LINE = re.compile(r"\s*(?:\d+(?:,\d+)*(?:\s+|\Z))?(?:\d+:[^\s:,]+(?:\s+|\Z))*(?:#.*)?", re.ASCII)
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


def read_svmlight(source: Source, labels: LabelsChoice | None, numbering: Numbering) -> LabelsTable:
    """Read a file; `labels` are a count of labels, or their names in the order of the numbers."""
    try:
        return _read(source, labels, numbering, likely_encoding(source))
    except UnicodeDecodeError:
        return _read(source, labels, numbering, OTHER_ENCODING)


def _read(
    source: Source, labels: LabelsChoice | None, numbering: Numbering, encoding: str
) -> LabelsTable:
    lines = _Lines(source, encoding)
    rows = SvmlightRows(source.where)
    for numbers, texts in lines:
        rows.add(numbers, texts)
    sizes = lines.sizes
    if sizes is not None:
        _make_up(rows, sizes, lines.blank_at_end)
    if not len(rows):
        raise ValueError(f"{source.where} has no rows; it needs lines such as 1,3 4:0.2 7:1.")
    if sizes is not None:
        if sizes.n_samples != len(rows):
            raise ValueError(
                f"{source.where} says in its first line that it has {sizes.n_samples:,} samples, "
                f"but it has {len(rows):,}; it is cut short or joined, so fetch or write it again."
            )
        # Such files count from 0, whatever their rows name.
        known = sizes.n_features if numbering.names is None else numbering.names
        zero_based = numbering.zero_based is not False
        numbering = replace(numbering, features=known, zero_based=zero_based)
    X, features = svmlight_columns.features(rows, numbering)
    Y, names = svmlight_columns.labels(rows, sizes, labels)
    return LabelsTable(
        source.path.name,
        X,
        Y,
        feature_names=features,
        label_names=names,
        source=f"read from {source.where}",
    )


def _make_up(rows: SvmlightRows, sizes: Sizes, blank_at_end: list[int]) -> None:
    """Take blank lines as samples, or not, so that there are as many as the first line says."""
    missing = sizes.n_samples - len(rows)
    if 0 < missing <= len(blank_at_end):
        rows.add(blank_at_end[:missing], [""] * missing)
    elif missing < 0 and rows.n_blank == -missing:
        rows.remove_blank()


class _Lines:
    """The lines of a file without comments, some at a time.

    A blank line between others is a sample without labels and features; those at the end of the
    file are not, and are kept in `blank_at_end`. `sizes` is what the first line says of them.
    """

    def __init__(self, source: Source, encoding: str) -> None:
        self.sizes: Sizes | None = None
        self.blank_at_end: list[int] = []
        self._pieces = read_chunks(source, encoding)

    def __iter__(self) -> Iterator[tuple[list[int], list[str]]]:
        numbers: list[int] = []
        lines: list[str] = []
        first = True
        for number, line in self._numbered():
            if not line:
                self.blank_at_end.append(number)
                continue
            if first and (match := SIZES.fullmatch(line)):
                self.sizes = Sizes(*map(int, match.groups()))
                self.blank_at_end.clear()
                first = False
                continue
            first = False
            numbers += [*self.blank_at_end, number]
            lines += [*([""] * len(self.blank_at_end)), line]
            self.blank_at_end.clear()
            if len(lines) >= LOT_LINES:
                yield numbers, lines
                numbers, lines = [], []
        if lines:
            yield numbers, lines

    def _numbered(self) -> Iterator[tuple[int, str]]:
        for piece in self._pieces:
            lines = piece.text.removesuffix("\n").split("\n")
            for number, line in enumerate(lines, piece.lines_before + 1):
                text = line.partition("#")[0]
                if not text.strip(BLANKS):
                    if text != line:
                        continue  # nothing but a comment
                    text = ""
                yield number, text
