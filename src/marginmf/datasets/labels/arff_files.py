"""Read an ARFF file, with the XML file beside it that names its labels."""

from contextlib import suppress
from os import PathLike
from pathlib import Path

from marginmf.datasets.files.source import Source
from marginmf.datasets.labels.arff.labels import Chooser, XmlFile, chooser, named_alike
from marginmf.datasets.labels.arff.reader import read_relation
from marginmf.datasets.labels.choice import IgnoredChoice, LabelsChoice, listed
from marginmf.datasets.labels.table import LabelsTable


def read_arff(
    source: Source,
    labels: LabelsChoice | None,
    xml: str | PathLike[str] | None,
    ignore: IgnoredChoice,
) -> LabelsTable:
    """Read a file whose labels are said by the caller, by an XML file, or by the file itself."""
    if xml is not None:
        choose = chooser(source.where, labels, given_xml(xml))
    else:
        there = _beside(source.path) if labels is None else []
        own = named_alike(source.path.name, there)
        choose = chooser(source.where, labels, own, there[0] if len(there) == 1 else None)
    return arff_table(source, choose, ignore, source.where)


def arff_table(source: Source, choose: Chooser, ignore: IgnoredChoice, origin: str) -> LabelsTable:
    """Read a file as a table; its source says what it came from and what was left out."""
    relation = read_relation(source, choose, ignore)
    columns = relation.columns
    without = f" without {listed(columns.left_out)}" if columns.left_out else ""
    return LabelsTable(
        source.path.name,
        relation.X,
        relation.Y,
        feature_names=tuple(columns.feature_names),
        label_names=tuple(columns.label_names),
        source=f"read from {origin}{without}",
    )


def given_xml(xml: str | PathLike[str]) -> XmlFile:
    """Return the XML file that the caller names."""
    path = Path(xml)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}; xml= is the file that names the labels.")
    return XmlFile(str(path), path.read_bytes)


def _beside(path: Path) -> list[XmlFile]:
    with suppress(OSError):  # what comes through a pipe has no folder of its own
        there = sorted(one for one in path.parent.iterdir() if one.suffix.lower() == ".xml")
        return [XmlFile(str(one), one.read_bytes) for one in there]
    return []
