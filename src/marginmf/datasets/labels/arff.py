"""Read ARFF files: dense (``0.5,1,0``) or sparse (``{3 1, 17 0.5}``).

By hand, because no library reads sparse multi-label ARFF with exact errors: scipy.io.arff reads no
sparse files, and liac-arff is slow and unmaintained. Rows are read as numbers, all at once, where
they hold nothing else; value by value where they do.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from marginmf._utils.printable import printable
from marginmf._utils.types import BoolArray, Float64Array, IntArray
from marginmf.datasets.files.convert import parse_number
from marginmf.datasets.files.source import Chunk, Source, lines_of, skip_lines
from marginmf.datasets.labels.arff_header import (
    QUOTED,
    Attribute,
    FindLabels,
    XmlFiles,
    find_labels,
    read_header,
    split_values,
    unquote,
)
from marginmf.datasets.labels.columns import (
    NO_FEATURES,
    Ignored,
    LabelsChoice,
    parse_matrix,
    parse_numbers,
    quote_names,
    refuse_duplicates,
)
from marginmf.datasets.labels.table import LabelsTable, compress_features, stack_features

#: Bytes of rows to parse at once, which may need a text for each value.
CHUNK_BYTES = 1 << 21
#: Values to hold at once as columns of nominal attributes, each of which may become many.
BLOCK_VALUES = 1 << 22
#: How many values of nominal attributes sparse rows may leave out that do not stand for 0.
MOST_LEFT_OUT = 1 << 26
#: A nominal attribute of more values than this names the rows and is no feature of them.
MOST_VALUES = 100
YES_AND_NO = (("yes", "no"), ("y", "n"), ("true", "false"), ("t", "f"), ("on", "off"))
PLAIN_PAIR = r"\s*\d+\s+[^\s,{}'\"]+\s*"
# Possessive, because there is only one way to match a row, and rows are long.
PLAIN_ROW = re.compile(rf"\s*\{{(?:{PLAIN_PAIR}(?:,{PLAIN_PAIR})*+|\s*)\}}\s*")
PAIR = re.compile(rf"\s*(\d{{1,18}})\s+({QUOTED}|[^\s,{{}}'\"]+)\s*(,|$)")
PUNCTUATION = str.maketrans("{},", "   ")
SHOWN = 40

#: The values that sparse rows name: row, index of the attribute, raw value.
Triplets = tuple[IntArray, IntArray, Float64Array]


@dataclass(frozen=True)
class ArffColumn:
    """An attribute and the columns that it becomes: `width` of them, from `start` on.

    Its values are numbers that are taken as they are; or, where it `is_coded`, the index of each
    in the declaration, whose row of `codes` has the numbers of the columns.
    """

    attribute: Attribute
    index: int
    is_label: bool
    start: int
    codes: Float64Array

    @property
    def is_coded(self) -> bool:
        """Whether values are read as indices in the declaration."""
        return len(self.codes) > 0

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.codes.shape[1])

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        name = self.attribute.name
        return [name] if self.width == 1 else [f"{name}={one}" for one in self.attribute.values]

    def find_numbers(self, numbers: Float64Array) -> IntArray | None:
        """Return the index of each number in the declaration, or None if one is not declared."""
        if self.attribute.numbers is None:
            return None
        equal = numbers[:, None] == self.attribute.numbers
        return equal.argmax(axis=1) if equal.any(axis=1).all() else None

    def parse(self, value: str) -> float:
        """Return the number, or the index in the declaration, that a text stands for."""
        name, values = self.attribute.name, self.attribute.values
        if value == "?":
            raise ValueError(f"the value of {name!r:.60} is missing (?); fill it in")
        if self.is_coded and value in values:
            return values.index(value)
        problem = self.refuse(repr(value[:SHOWN]))
        try:
            number = parse_number(value)
            found = self.find_numbers(np.array([number])) if self.is_coded else [number]
            if found is not None:  # as is 1.0 for 1
                return found[0]
        except ValueError as error:
            if not self.is_coded:
                what = "label" if self.is_label else "value"
                problem = f"the {what} {value[:SHOWN]!r} of {name!r:.60} {error}; correct it"
        raise ValueError(problem)

    def refuse(self, value: float | str) -> str:
        """Return what is wrong with a value that is not declared."""
        name = self.attribute.name
        declared = printable(",".join(self.attribute.values[:6]), SHOWN)
        if not isinstance(value, str):
            if self.is_label:
                return f"the label {name!r:.60} is {value:g}; labels are 0 or 1"
            value = f"{value:g}"
        return f"{value} is none of the values {{{declared}}} of {name!r:.60}; correct it"


class ArffColumns:
    """The columns that are read, of `features` and of `labels`; other attributes are left out.

    `binary` tells of each attribute whether it must be the number 0 or 1.
    """

    def __init__(
        self,
        attributes: Sequence[Attribute],
        labels: Collection[int],
        ignored: Collection[int],
        where: str,
    ) -> None:
        self.attributes = attributes
        self.by_index: dict[int, ArffColumn] = {}
        self.binary: BoolArray = np.zeros(len(attributes), dtype=bool)
        labels, ignored, widths = set(labels), set(ignored), [0, 0]
        for index, attribute in enumerate(attributes):
            is_label = index in labels
            if not is_label and (index in ignored or len(attribute.values) > MOST_VALUES):
                continue
            codes = _make_codes(attribute, is_label, where)
            column = ArffColumn(attribute, index, is_label, widths[is_label], codes)
            widths[is_label] += column.width
            self.by_index[index] = column
            nominal = is_label or attribute.kind == "nominal"
            self.binary[index] = nominal and not column.is_coded
        columns = list(self.by_index.values())
        self.features = [column for column in columns if not column.is_label]
        self.labels = [column for column in columns if column.is_label]
        self.coded = [column for column in columns if column.is_coded]
        self.left_out = [one.name for k, one in enumerate(attributes) if k not in self.by_index]
        if not self.features:
            raise ValueError(f"{where} {NO_FEATURES}")
        named = ((column.attribute.line, name) for column in columns for name in column.names)
        refuse_duplicates(named, where, "columns of the lines")


class _ParsedValues(dict[str, float]):
    """What each text of a column stands for, parsed once; 0 for a column that is not read."""

    def __init__(self, column: ArffColumn | None) -> None:
        self.column = column

    def __missing__(self, value: str) -> float:
        return self.setdefault(value, 0.0 if self.column is None else self.column.parse(value))


def _make_codes(attribute: Attribute, is_label: bool, where: str) -> Float64Array:
    """Return the numbers that each declared value becomes; none where they are their own."""
    numbers = None if attribute.numbers is None else attribute.numbers.tolist()
    if attribute.kind == "numeric" or numbers in ([0.0], [0.0, 1.0]):
        return np.empty((0, 1))
    if numbers in ([1.0], [1.0, 0.0]):  # the first is what a sparse row leaves out
        return np.array(numbers)[:, None]
    words = tuple(value.lower() for value in attribute.values)
    for yes, no in YES_AND_NO:
        if words in ((yes, no), (no, yes)):
            return np.array([[float(word == yes)] for word in words])
    here, name = f"{where}, line {attribute.line}", f"{attribute.name!r:.60}"
    if is_label:
        declared = quote_names(attribute.values) if attribute.values else attribute.kind
        problem = f"is a label but takes the values {declared}; labels take 0 and 1"
        raise ValueError(f"{here}: {name} {problem}.")
    if attribute.kind != "nominal":
        raise ValueError(
            f"{here}: the attribute {name} is of type {attribute.kind}, which is no number; turn "
            f"it into numbers, or leave it out with ignore=[{name}]."
        )
    return np.eye(len(attribute.values))


def read_arff(
    source: Source, labels: LabelsChoice | None, xml: str | PathLike[str] | None, ignore: Ignored
) -> LabelsTable:
    """Read a file whose labels are given by the caller, by an XML file, or by the file itself."""
    beside: XmlFiles = {}
    with suppress(OSError):  # what comes through a pipe has no folder of its own
        paths = sorted(source.path.parent.iterdir()) if labels is None else []
        beside = {
            str(path): path.read_bytes
            for path in paths
            if path.suffix.lower() == ".xml" and path.is_file()  # a pipe would be waited for
        }
    find = partial(find_labels, labels=labels, xml=xml, beside=beside)
    return source.read_decoded(partial(read_relation, source, find, ignore, source.where))


def read_relation(source: Source, find: FindLabels, ignore: Ignored, origin: str) -> LabelsTable:
    """Read a file whose labels `find` finds; the table says that it was read from `origin`."""
    where = source.where
    header = read_header(lines_of(source.read_chunks()), where)
    ignored = ignore.find(header.names, where)
    columns = ArffColumns(header.attributes, find(header, where), ignored, where)
    chunks = skip_lines(source.read_chunks(CHUNK_BYTES), header.n_lines)
    blocks = list(_read_blocks(chunks, columns, where))
    if not blocks:
        raise ValueError(f"{where} has no rows after @data; add some.")
    X, Y = zip(*blocks, strict=True)
    without = f" without {quote_names(columns.left_out)}" if columns.left_out else ""
    return LabelsTable(
        source.path.name,
        stack_features(X),
        sparse.vstack(Y, format="csr"),
        tuple(name for column in columns.features for name in column.names),
        tuple(name for column in columns.labels for name in column.names),
        source=f"read from {origin}{without}",
    )


def _read_blocks(chunks: Iterator[Chunk], columns: ArffColumns, where: str) -> Iterator[Any]:
    is_sparse: bool | None = None
    left_out = 0
    for chunk in chunks:
        split = enumerate(map(str.strip, chunk.text.split("\n")), chunk.lines_before + 1)
        numbered = {number: line for number, line in split if line and not line.startswith("%")}
        if not numbered:
            continue
        lines = list(numbered.values())
        is_sparse = lines[0].startswith("{") if is_sparse is None else is_sparse
        try:
            other = [k for k, line in enumerate(lines) if line.startswith("{") != is_sparse]
            if other:
                kinds = "dense row among sparse" if is_sparse else "sparse row among dense"
                raise RowError(other[0], f"a {kinds} ones; write all alike")
            raw = (_read_sparse if is_sparse else _read_dense)(lines, columns)
        except RowError as error:
            raise ValueError(f"{where}, line {list(numbered)[error.row]}: {error}.") from None
        if is_sparse:
            left_out += len(lines) * sum(column.codes[0].any() for column in columns.coded)
            if left_out > MOST_LEFT_OUT:
                raise ValueError(
                    f"{where}: its sparse rows leave out {left_out:,} values of nominal attributes "
                    f"that stand for the first declared; write it dense, or with numbers."
                )
        # The rows of a chunk can be short, and become long.
        width = sum(
            one.width for one in (columns.coded if is_sparse else columns.by_index.values())
        )
        step = max(1, BLOCK_VALUES // max(1, width))
        for start in range(0, len(lines), step):
            rows = raw[start : start + step]
            X, Y = (_expand(rows, chosen) for chosen in (columns.features, columns.labels))
            yield X if is_sparse else compress_features(X), sparse.csr_array(Y).astype(np.int8)


class RowError(ValueError):
    """A row that cannot be read: its index among the lines at hand, and what is wrong."""

    def __init__(self, row: Any, problem: object) -> None:
        super().__init__(str(problem))
        self.row = int(row)


def _expand(raw: Any, columns: list[ArffColumn]) -> Any:
    """Return the columns that some attributes become."""
    plain = [column for column in columns if not column.is_coded]
    coded = [column for column in columns if column.is_coded]
    result = raw[:, [column.index for column in plain]]
    if not coded:
        return result
    blocks, order = [result], [column.start for column in plain]
    for column in coded:
        values = raw[:, [column.index]]
        values = values.toarray() if sparse.issparse(raw) else values
        blocks.append(column.codes[values[:, 0].astype(np.int64)])
        order += range(column.start, column.start + column.width)
    if sparse.issparse(raw):
        result = sparse.hstack(list(map(sparse.csr_array, blocks)), format="csr")
    else:
        result = np.hstack(blocks)
    return result[:, np.argsort(order)]


def _read_dense(lines: list[str], columns: ArffColumns) -> Float64Array:
    raw = _dense_numbers(lines, columns)
    raw = _parse_dense(lines, columns) if raw is None else raw
    wrong = np.argwhere(columns.binary & (raw != 0) & (raw != 1))
    if len(wrong):
        row, index = wrong[0]
        raise RowError(row, columns.by_index[index].refuse(raw[row, index]))
    return raw


def _dense_numbers(lines: list[str], columns: ArffColumns) -> Float64Array | None:
    """Return the values of rows if all of them are numbers, and those of words declared."""
    raw = parse_matrix(lines, ",", len(columns.attributes))
    if raw is None:
        return None
    for column in columns.coded:
        found = column.find_numbers(raw[:, column.index])
        if found is None:
            return None
        raw[:, column.index] = found
    return raw


def _parse_dense(lines: list[str], columns: ArffColumns) -> Float64Array:
    width = len(columns.attributes)
    # Rows that are complete have a letter and a comma for each value, so a row beyond is refused.
    n_complete = sum(map(len, lines)) // max(1, 2 * width - 1) + 1
    raw = np.zeros((min(len(lines), n_complete), width))
    known = [_ParsedValues(columns.by_index.get(index)) for index in range(width)]
    for row, line in enumerate(lines):
        simple = "'" not in line and '"' not in line and "{" not in line
        values = [value.strip() for value in line.split(",")] if simple else []
        try:
            if len(values) != width or not all(values):
                values = split_values(line)
            if len(values) != width:
                raise ValueError(
                    f"{len(values):,} values where the header declares {width:,} attributes; "
                    f"complete or remove this line"
                )
            raw[row] = [parsed[value] for parsed, value in zip(known, values, strict=True)]
        except ValueError as error:
            raise RowError(row, error) from None
    return raw


def _read_sparse(lines: list[str], columns: ArffColumns) -> Any:
    """Read rows that name some values; those they leave out are 0, or the first declared."""
    rows, indices, raw = _sparse_numbers(lines, columns) or _parse_sparse(lines, columns)
    width = len(columns.attributes)
    beyond = indices >= width
    if beyond.any():
        first = np.argmax(beyond)
        problem = f"the index {indices[first]} is beyond the header's {width:,} attributes, which"
        raise RowError(rows[first], f"{problem} are counted from 0; correct it")
    keys = rows * width + indices
    if (keys[1:] <= keys[:-1]).any():  # not in order, and so perhaps not distinct
        keys.sort()
        again = keys[1:][keys[1:] == keys[:-1]]
        if len(again):
            row, index = divmod(again[0], width)
            raise RowError(row, f"the index {index} is named twice; remove one of them")
    wrong = columns.binary[indices] & (raw != 0) & (raw != 1)
    if wrong.any():
        first = np.argmax(wrong)
        raise RowError(rows[first], columns.by_index[indices[first]].refuse(raw[first]))
    starts = np.searchsorted(rows, np.arange(len(lines) + 1))
    matrix = sparse.csr_array((raw, indices, starts), shape=(len(lines), width))
    matrix.eliminate_zeros()
    return matrix


def _sparse_numbers(lines: list[str], columns: ArffColumns) -> Triplets | None:
    """Return the values that rows name if all of them are numbers, and those of words declared."""
    if not all(map(PLAIN_ROW.fullmatch, lines)):
        return None
    counts = np.array([line.count(",") + bool(line.strip(" \t{}")) for line in lines])
    numbers = parse_numbers("\n".join(lines).translate(PUNCTUATION), " ", 2 * int(counts.sum()))
    if numbers is None or numbers[::2].max(initial=0) >= 2**53:
        return None
    indices, raw = numbers[::2].astype(np.int64), numbers[1::2]
    for column in columns.coded:
        named = indices == column.index
        if named.any():
            found = column.find_numbers(raw[named])
            if found is None:
                return None
            raw[named] = found
    return np.repeat(np.arange(len(lines)), counts), indices, raw


def _parse_sparse(lines: list[str], columns: ArffColumns) -> Triplets:
    parsed = cache(lambda index: _ParsedValues(columns.by_index.get(index)))
    triplets: list[tuple[int, int, float]] = []
    for row, line in enumerate(lines):
        try:
            pairs = _split_sparse(line.strip())
            triplets += [(row, index, parsed(index)[value]) for index, value in pairs]
        except ValueError as error:
            raise RowError(row, error) from None
    rows, indices, raw = zip(*triplets, strict=True) if triplets else ((), (), ())
    return np.array(rows, np.int64), np.array(indices, np.int64), np.array(raw, np.float64)


def _split_sparse(line: str) -> list[tuple[int, str]]:
    if not line.endswith("}"):
        raise ValueError("the sparse row does not end with its brace; complete or remove this line")
    inner = line[1:-1].strip()
    pairs: list[tuple[int, str]] = []
    position, more = 0, False
    while position < len(inner):
        match = PAIR.match(inner, position)
        if match is None:
            raise ValueError(
                f"{inner[position : position + SHOWN].strip()!r} does not begin with an index and "
                f"a value, such as 3 1; correct it"
            )
        pairs.append((int(match[1]), unquote(match[2])))
        more = match[3] == ","
        position = match.end()
    if more:
        raise ValueError("the sparse row ends with a comma; complete or remove this line")
    return pairs
