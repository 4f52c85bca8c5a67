"""Read ARFF files, dense or sparse, and the XML files of MULAN that name their labels.

By hand, because no library reads sparse multi-label ARFF with exact errors: scipy.io.arff reads no
sparse files, and liac-arff is slow and unmaintained.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from scipy import sparse

from marginmf.datasets.files.source import (
    Chunk,
    Source,
    lines_of,
    read_chunks,
    read_decoded,
    skip_lines,
)
from marginmf.datasets.labels.arff_header import ArffColumns, ArffHeader, read_header
from marginmf.datasets.labels.arff_rows import Matrices, RowError, read_rows
from marginmf.datasets.labels.columns import (
    IgnoredChoice,
    LabelsChoice,
    find_columns,
    find_ignored,
    quote_names,
)
from marginmf.datasets.labels.table import LabelsTable, stack_features

#: Bytes of rows to parse at once, which may need a text for each value.
CHUNK_BYTES = 1 << 21
#: What a file may have at the end of its stem that its XML has not.
SUFFIXES = ("-sparse", "-train", "-test", "_train", "_test")


class LabelsXml(NamedTuple):
    """An XML file that may name labels, and how to read it."""

    where: str
    read: Callable[[], bytes]

    def find_labels(self, header: ArffHeader, where: str) -> list[int]:
        """Return the indices of its labels, in the order of the ARFF file."""
        names = read_label_names(self.read(), self.where)
        count = header.meka_count
        if count is not None and abs(count) != len(names):
            raise ValueError(
                f"{where}: its relation counts {abs(count)} labels (-C {count}), but {self.where} "
                f"names {len(names)}; give the right one with labels= or xml=."
            )
        missing = sorted(set(names).difference(header.names))
        if missing:
            raise ValueError(
                f"{self.where} names the label {missing[0]!r}, which is no attribute of {where}; "
                f"its attributes end with {quote_names(header.names[-3:])}."
            )
        return find_columns(header.names, names, where)


class LabelsRule(NamedTuple):
    """How the labels of an ARFF file are found.

    What the caller says comes first; then the XML file that belongs to the ARFF file, MEKA's
    count, and the only XML file beside it.
    """

    labels: LabelsChoice | None
    own: LabelsXml | None = None
    only: LabelsXml | None = None

    def find_labels(self, header: ArffHeader, where: str) -> list[int]:
        """Return the indices of the labels."""
        if self.labels is not None:
            return find_columns(header.names, self.labels, where)
        if self.own is not None:
            return self.own.find_labels(header, where)
        count = header.meka_count
        if count is not None and not header.moved:
            return find_columns(header.names, -count, where)  # MEKA's first are our negative
        if self.only is not None:
            return self.only.find_labels(header, where)
        why = "does not say which attributes are labels"
        if count is not None:
            why = f"counts labels (-C {count}) that filters have moved since"
        raise ValueError(
            f"{where} {why}; give the XML file that names them with xml=, their names with "
            f"labels=[...], or their number with labels=n (the last n attributes) or labels=-n "
            f"(the first)."
        )


def make_rule(
    labels: LabelsChoice | None,
    xml: str | PathLike[str] | None,
    name: str,
    beside: Sequence[LabelsXml],
) -> LabelsRule:
    """Return the rule for a file of some name; `xml` is what the caller gives."""
    if xml is not None:
        path = Path(xml)
        if not path.is_file():
            raise FileNotFoundError(
                f"There is no file {path}; xml= is the file that names the labels."
            )
        return LabelsRule(labels, LabelsXml(str(path), path.read_bytes))
    stems = {Path(file.where).stem.lower(): file for file in beside}
    stem = name.lower().removesuffix(".gz").removesuffix(".arff")
    while stem not in stems and stem.endswith(SUFFIXES):
        stem = next(stem.removesuffix(one) for one in SUFFIXES if stem.endswith(one))
    return LabelsRule(labels, stems.get(stem), beside[0] if len(beside) == 1 else None)


def read_label_names(content: bytes, where: str) -> list[str]:
    """Return the names of all labels, also of those below others in a hierarchy.

    >>> read_label_names(b'<labels><label name="a"><label name="b"/></label></labels>', "f.xml")
    ['a', 'b']
    """
    if not content.strip():
        raise ValueError(f"{where} is empty; it needs <labels> with a <label name=...> for each.")
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        # Entities can refer to other files, or swell without bound.
        raise ValueError(f"{where} has a document type, which label files do not need; remove it.")
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise ValueError(
            f"{where} is not XML, or is cut short ({error}); fetch or write it again."
        ) from error
    names: list[str] = []
    for element in root.iter():
        if element.tag.rpartition("}")[2] == "label":
            name = element.get("name")
            if not name:
                raise ValueError(f"{where}: label {len(names) + 1} has no name; give it one.")
            names.append(name)
    if not names:
        raise ValueError(
            f"{where} names no labels; it needs <labels> with a <label name=...> for each."
        )
    twice, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise ValueError(f"{where} names the label {twice!r} {times} times; leave one of them.")
    return names


def read_arff(
    source: Source,
    labels: LabelsChoice | None,
    xml: str | PathLike[str] | None,
    ignore: IgnoredChoice,
) -> LabelsTable:
    """Read a file whose labels are given by the caller, by an XML file, or by the file itself."""
    beside: list[LabelsXml] = []
    with suppress(OSError):  # what comes through a pipe has no folder of its own
        paths = sorted(source.path.parent.iterdir()) if labels is None else []
        xml_paths = [path for path in paths if path.suffix.lower() == ".xml"]
        beside = [LabelsXml(str(path), path.read_bytes) for path in xml_paths]
    return read_relation(source, make_rule(labels, xml, source.path.name, beside), ignore)


def read_relation(
    source: Source, rule: LabelsRule, ignore: IgnoredChoice, origin: str | None = None
) -> LabelsTable:
    """Read a file; the table's source says that it was read from `origin`."""
    return read_decoded(source, partial(_read, source, rule, ignore, origin))


def _read(
    source: Source, rule: LabelsRule, ignore: IgnoredChoice, origin: str | None, encoding: str
) -> LabelsTable:
    where = source.where
    header = read_header(lines_of(read_chunks(source, encoding)), where)
    labels = rule.find_labels(header, where)
    ignored = find_ignored(header.names, ignore, where)
    columns = ArffColumns(header.attributes, labels, ignored, where)
    chunks = skip_lines(read_chunks(source, encoding, CHUNK_BYTES), header.n_lines)
    blocks = list(_read_blocks(chunks, columns, where))
    if not blocks:
        raise ValueError(f"{where} has no rows after @data; add some.")
    X, Y = zip(*blocks, strict=True)
    without = f" without {quote_names(columns.left_out)}" if columns.left_out else ""
    return LabelsTable(
        source.path.name,
        stack_features(X),
        sparse.vstack(Y, format="csr"),
        feature_names=tuple(name for column in columns.features for name in column.names),
        label_names=tuple(name for column in columns.labels for name in column.names),
        source=f"read from {origin or where}{without}",
    )


def _read_blocks(chunks: Iterator[Chunk], columns: ArffColumns, where: str) -> Iterator[Matrices]:
    is_sparse: bool | None = None
    for chunk in chunks:
        split = enumerate(map(str.strip, chunk.text.split("\n")), chunk.lines_before + 1)
        rows = {number: line for number, line in split if line and not line.startswith("%")}
        if not rows:
            continue
        lines = list(rows.values())
        is_sparse = lines[0].startswith("{") if is_sparse is None else is_sparse
        try:
            yield read_rows(lines, columns, is_sparse)
        except RowError as error:
            raise ValueError(f"{where}, line {list(rows)[error.row]}: {error}.") from None
