"""Which attributes of an ARFF file are labels: as the caller, an XML file or MEKA says."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from marginmf.datasets.labels.arff.header import Header
from marginmf.datasets.labels.choice import LabelsChoice, label_places, listed
from marginmf.datasets.labels.mulan_xml import label_names

#: Chooses the places of the labels.
Chooser = Callable[[Header], list[int]]
#: What a file may have at the end of its stem that its XML has not.
PARTS = ("-sparse", "-train", "-test", "_train", "_test")


@dataclass(frozen=True)
class XmlFile:
    """An XML file that may name labels, and how to read it."""

    where: str
    read: Callable[[], bytes]

    def places(self, header: Header, where: str) -> list[int]:
        """Return the places of its labels, in the order of the ARFF file."""
        names = label_names(self.read(), self.where)
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
                f"its attributes end with {listed(header.names[-3:])}."
            )
        return label_places(header.names, names, where)


def named_alike(name: str, files: Sequence[XmlFile]) -> XmlFile | None:
    """Return the file with the stem of a name, or with what it has before ``-train``."""
    stems = {Path(file.where).stem.lower(): file for file in files}
    stem = name.lower().removesuffix(".gz").removesuffix(".arff")
    while stem not in stems:
        part = next((part for part in PARTS if stem.endswith(part)), None)
        if part is None:
            return None
        stem = stem.removesuffix(part)
    return stems[stem]


def chooser(
    where: str,
    labels: LabelsChoice | None,
    xml: XmlFile | None,
    fallback: XmlFile | None = None,
) -> Chooser:
    """Return a function that finds the labels of a header.

    What the caller says comes first; then the XML file that belongs to the ARFF file, MEKA's
    count, and an XML file that only happens to lie beside it.
    """

    def choose(header: Header) -> list[int]:
        if labels is not None:
            return label_places(header.names, labels, where)
        if xml is not None:
            return xml.places(header, where)
        count = header.meka_count
        if count is not None and not header.moved:
            return label_places(header.names, -count, where)  # MEKA's first are our negative
        if fallback is not None:
            return fallback.places(header, where)
        why = (
            f"counts labels (-C {count}) that filters have moved since"
            if count is not None
            else "does not say which attributes are labels"
        )
        raise ValueError(
            f"{where} {why}; give the XML file that names them with xml=, their names with "
            f"labels=[...], or their number with labels=n (the last n attributes) or labels=-n "
            f"(the first)."
        )

    return choose
