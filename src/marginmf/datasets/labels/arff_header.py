"""The header of an ARFF file, and how its labels are found: by MEKA's count or MULAN's XML file."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from marginmf._utils.types import Float64Array
from marginmf.datasets.files.convert import parse_number
from marginmf.datasets.labels.columns import LabelsChoice, find_columns, quote_names

QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
VALUE = re.compile(rf"""\s*({QUOTED}|[^\s,'"{{}}][^\s,{{}}]*)\s*(,?)""")
ATTRIBUTE = re.compile(rf"\s*({QUOTED}|[^\s{{}}'\"][^\s{{}}]*)\s*(.*)", re.DOTALL)
ESCAPE = re.compile(r"\\(.)")
ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
NUMERIC = ("numeric", "real", "integer")
OTHER_KINDS = ("string", "date")
# Where MEKA says how many attributes are labels: the first n, or the last where it is negative.
MEKA_COUNT = re.compile(r"(?:^|\s)-[Cc]\s+(-?\d{1,9})\b")
# Filters that take attributes out or move them, after which the count says nothing any more.
MOVED = re.compile(r"weka\.filters\.\w+\.attribute\.(?:Remove|Reorder|Add|Copy)")
#: What a file may have at the end of its stem that its XML has not.
SUFFIXES = ("-sparse", "-train", "-test", "_train", "_test")
SHOWN = 60
#: How XML files begin that are not in an encoding with ASCII in it; the longest marks first.
XML_MARKS = {
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"<\0\0\0": "utf-32-le",
    b"\0\0\0<": "utf-32-be",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
    b"<\0": "utf-16-le",
    b"\0<": "utf-16-be",
    b"\xef\xbb\xbf": "utf-8-sig",
}
XML_ENCODING = re.compile(rb"""\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([\w.-]{1,40})["']""")
#: Python has others too, some of them no encodings of text, and some slow.
TEXT_ENCODINGS = re.compile(
    r"(utf|us-ascii|ascii|iso|latin|windows|cp|mac|koi8|gb|big5|shift|sjis|euc)", re.IGNORECASE
).match


@dataclass(frozen=True)
class Attribute:
    """A column of the file; `values` are those of a nominal one, `kind` is its type."""

    name: str
    kind: str
    values: tuple[str, ...]
    line: int

    @cached_property
    def numbers(self) -> Float64Array | None:
        """The values of a nominal attribute, if all are numbers."""
        try:
            return np.array([parse_number(value) for value in self.values])
        except ValueError:
            return None


@dataclass(frozen=True)
class ArffHeader:
    """What an ARFF file says of itself, and in how many lines."""

    relation: str
    attributes: tuple[Attribute, ...]
    n_lines: int

    @property
    def names(self) -> list[str]:
        """Names of the attributes."""
        return [attribute.name for attribute in self.attributes]


def read_header(lines: Iterable[str], where: str) -> ArffHeader:
    """Read lines up to ``@data``, or raise an error that names the line at fault."""
    relation, attributes, number = "", list[Attribute](), 0
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        keyword = line.split(maxsplit=1)[0].lower()
        rest = line[len(keyword) :].strip()
        try:
            if keyword == "@relation":
                relation = unquote(rest)
            elif keyword == "@attribute":
                attributes.append(_parse_attribute(rest, number))
            elif keyword == "@data" and attributes:
                return ArffHeader(relation, tuple(attributes), number)
            elif keyword == "@data":
                raise ValueError("@data comes before any @attribute; declare some")
            else:
                raise ValueError(
                    f"{line[:SHOWN]!r} is not a line of an ARFF header; it needs @relation, "
                    f"@attribute or @data, and comments begin with %"
                )
        except ValueError as error:
            raise ValueError(f"{where}, line {number}: {error}.") from None
    if not number:
        raise ValueError(f"{where} is empty; an ARFF file has a header and rows.")
    raise ValueError(
        f"{where}, line {number}: the file ends in its header, before @data; it is cut short, so "
        f"fetch or write it again."
    )


def _parse_attribute(text: str, line: int) -> Attribute:
    match = ATTRIBUTE.fullmatch(text)
    if match is None or not match[2]:
        example = "write @attribute name numeric, or @attribute name {0,1}"
        raise ValueError(f"{text[:SHOWN]!r} is not a name and a type; {example}")
    name, kind = unquote(match[1]), match[2].strip()
    if kind.startswith("{"):
        if not kind.endswith("}"):
            raise ValueError(f"the values of {name!r:.60} have no closing brace; complete the line")
        try:
            values = tuple(split_values(kind[1:-1]))
        except ValueError as error:
            raise ValueError(f"in the values of {name!r:.60}, {error}") from None
        if not values:
            raise ValueError(f"the attribute {name!r:.60} has no values; name some")
        return Attribute(name, "nominal", values, line)
    word = kind.split()[0].lower()
    if word not in NUMERIC + OTHER_KINDS:
        raise ValueError(
            f"the attribute {name!r:.60} has the type {kind[:SHOWN]!r}, which is none that can be "
            f"read; make it numeric or {{0,1}}"
        )
    return Attribute(name, "numeric" if word in NUMERIC else word, (), line)


def split_values(text: str) -> list[str]:
    """Return the values of a list without their quotes; commas or blanks separate them."""
    values: list[str] = []
    position, more = 0, False
    end = len(text.rstrip())
    while position < end:
        match = VALUE.match(text, position, end)
        if match is None:
            rest = text[position:end].strip()
            if rest[0] in "'\"":
                raise ValueError("a quote is not closed; close it")
            if rest[0] == ",":
                raise ValueError("a value between two commas is missing; fill it in")
            raise ValueError(f"{rest[:20]!r} does not begin a value; quote it")
        values.append(unquote(match[1]))
        more = bool(match[2])
        position = match.end()
    if more:
        raise ValueError("the line ends with a comma; complete or remove the line")
    return values


def unquote(value: str) -> str:
    """Return what a value stands for: without its quotes and escapes."""
    if len(value) < 2 or value[0] not in "'\"" or value[-1] != value[0]:
        return value
    return ESCAPE.sub(lambda match: ESCAPED.get(match[1], match[1]), value[1:-1])


#: XML files that may name labels, and how each is read.
XmlFiles = Mapping[str, Callable[[], bytes]]
#: From the header of a file and its path to the indices of its labels.
FindLabels = Callable[[ArffHeader, str], list[int]]


def find_labels(
    header: ArffHeader,
    where: str,
    labels: LabelsChoice | None,
    xml: str | PathLike[str] | None,
    beside: XmlFiles,
) -> list[int]:
    """Return the indices of the labels.

    What the caller gives as `labels` or `xml` comes first; then the XML file that belongs to the
    ARFF file by its name, MEKA's count, and the only XML file beside it.
    """
    stems = {Path(file).stem.lower(): file for file in beside}
    stem = Path(where).name.lower().removesuffix(".gz").removesuffix(".arff")
    while stem not in stems and stem.endswith(SUFFIXES):
        stem = next(stem.removesuffix(one) for one in SUFFIXES if stem.endswith(one))
    own = stems.get(stem)
    if xml is not None:
        path = Path(xml)
        if not path.is_file():
            raise FileNotFoundError(
                f"There is no file {path}; xml= is the file that names the labels."
            )
        own = str(path)
        beside = {own: path.read_bytes}
    if labels is not None:
        return find_columns(header.names, labels, where)
    match = MEKA_COUNT.search(header.relation)
    count = None if match is None else int(match[1])
    if own is None and count is not None and MOVED.search(header.relation) is None:
        return find_columns(header.names, -count, where)  # MEKA's first are our negative
    if own is None and len(beside) != 1:
        why = "does not say which attributes are labels"
        if count is not None:
            why = f"counts labels (-C {count}) that filters have moved since"
        raise ValueError(
            f"{where} {why}; give the XML file that names them with xml=, their names with "
            f"labels=[...], or their number with labels=n (the last n attributes) or labels=-n "
            f"(the first)."
        )
    xml_file = own or next(iter(beside))
    names = read_label_names(beside[xml_file](), xml_file)
    if count is not None and abs(count) != len(names):
        raise ValueError(
            f"{where}: its relation counts {abs(count)} labels (-C {count}), but {xml_file} "
            f"names {len(names)}; give the right one with labels= or xml=."
        )
    missing = sorted(set(names).difference(header.names))
    if missing:
        raise ValueError(
            f"{xml_file} names the label {missing[0]!r:.60}, which is no attribute of {where}; its "
            f"attributes end with {quote_names(header.names[-3:])}."
        )
    return find_columns(header.names, names, where)


class _LabelNames:
    """Takes names of labels from a parser, so that no tree of elements is made."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Note the name of an element if it is a label."""
        if tag.rpartition("}")[2] == "label":
            self.names.append(attributes.get("name", ""))


def _decode_xml(content: bytes) -> str:
    """Return the text of an XML file, in the encoding that its first bytes tell."""
    for mark, encoding in XML_MARKS.items():
        if content.startswith(mark):
            return content.decode(encoding)
    declared = XML_ENCODING.match(content)
    encoding = "utf-8" if declared is None else declared[1].decode()
    if not TEXT_ENCODINGS(encoding):
        raise LookupError(f"unknown encoding {encoding:.40}")
    return content.decode(encoding)


def read_label_names(content: bytes, where: str) -> list[str]:
    """Return the names of all labels, also of those below others in a hierarchy."""
    if not content.strip():
        raise ValueError(f"{where} is empty; it needs <labels> with a <label name=...> for each.")
    found = _LabelNames()
    parser = ElementTree.XMLParser(target=found)
    try:
        text = _decode_xml(content)
        if "\0" in text:  # which the parser would take for UTF-16, and find another text in it
            raise UnicodeError("null characters")
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            # Entities can refer to other files, or swell without bound.
            problem = "has a document type, which label files do not need; remove it"
            raise ValueError(f"{where} {problem}.")
        parser.feed(text)  # as text, whatever encoding it says it has: this is what was looked at
        parser.close()
    except (ElementTree.ParseError, LookupError, UnicodeError) as error:
        raise ValueError(
            f"{where} is not XML, or is cut short ({error}); fetch or write it again."
        ) from error
    names = found.names
    if "" in names:
        raise ValueError(f"{where}: label {names.index('') + 1} has no name; give it one.")
    if not names:
        raise ValueError(
            f"{where} names no labels; it needs <labels> with a <label name=...> for each."
        )
    twice, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise ValueError(f"{where} names the label {twice!r:.60} {times} times; leave one of them.")
    return names
