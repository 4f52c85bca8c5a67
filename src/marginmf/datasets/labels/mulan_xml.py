"""The XML file that names the labels of a MULAN dataset."""

from collections import Counter
from xml.etree import ElementTree


def label_names(content: bytes, where: str) -> list[str]:
    """Return the names of all labels, also of those below others in a hierarchy.

    >>> label_names(b'<labels><label name="a"><label name="b"/></label></labels>', "f.xml")
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
