"""Drawings as SVG that is small, the same every time, and fit to stand inside a page with others.

Text stays text: it can be read, searched and made larger.  Matplotlib measures it in DejaVu Sans,
and Verdana, which most systems have, is as wide.
"""

import re
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, fromstring, tostring

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FONTS = "'DejaVu Sans', Verdana, Geneva, sans-serif"
NAMESPACE = "http://www.w3.org/2000/svg"
#: What Matplotlib says of itself, which no reader needs, and rules, which would hold for a page.
DROPPED = ("metadata", "style")
POINTS_TO_PIXELS = 4 / 3

_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_USUAL_FONTS = re.compile(r"font-family: 'DejaVu Sans'(, [^;]*)?(; |$)")
#: How one element names another: by a link, or in an attribute or a style.
_REFERENCE = re.compile(r"(^#|url\(#)([^)]+)")


@dataclass(frozen=True)
class Svg:
    """A drawing as text, and how large it wants to be, in pixels."""

    text: str
    width: int
    height: int


def svg_of(figure: "Figure", name: str) -> Svg:
    """Return a figure as SVG.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The drawing.
    name : str
        Begins every id in it, so that no two drawings of a page share one.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> drawing = svg_of(Figure(figsize=(3, 1)), "nothing")
    >>> drawing.width, drawing.height, drawing.text[:40]
    (288, 96, '<svg xmlns="http://www.w3.org/2000/svg" ')
    """
    from matplotlib import rc_context

    written = BytesIO()
    # The salt makes the ids depend on what is drawn alone.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    root = fromstring(written.getvalue())
    view_box = root.get("viewBox", "")
    _use_own_ids(root, name)
    _simplify(root)
    width, height = (round(float(side) * POINTS_TO_PIXELS) for side in view_box.split()[2:])
    root.attrib = {
        "xmlns": NAMESPACE,
        "viewBox": view_box,
        "width": str(width),
        "height": str(height),
        "font-family": FONTS,
        "stroke-linejoin": "round",
    }
    return Svg(tostring(root, encoding="unicode"), width, height)


def _use_own_ids(root: Element, prefix: str) -> None:
    """Give what is referred to a name that begins with the prefix, and nothing else any name."""
    texts = [text for element in root.iter() for text in element.attrib.values()]
    used = {found[1] for text in texts for found in _REFERENCE.findall(text)}
    for element in root.iter():
        own = element.attrib.pop("id", "")
        element.attrib = {
            _local(name): _REFERENCE.sub(rf"\g<1>{prefix}-\g<2>", text)
            for name, text in element.attrib.items()
        }
        if own in used:
            element.set("id", f"{prefix}-{own}")


def _simplify(element: Element) -> None:
    """Leave out namespaces, empty space, groups that say nothing, and needless digits."""
    element.tag = _local(element.tag)
    short = {name: _short(name, text) for name, text in element.attrib.items()}
    element.attrib = {name: text for name, text in short.items() if text}
    if len(element):
        element.text = None
    children: list[Element] = []
    for child in element:
        if _local(child.tag) in DROPPED:
            continue
        _simplify(child)
        child.tail = None
        if child.tag == "g" and not child.attrib:
            children += child
        elif len(child) or child.tag != "defs":
            children.append(child)
    element[:] = children


def _local(name: str) -> str:
    """Return a name without its namespace: HTML knows what belongs to SVG by itself."""
    return name.rpartition("}")[2]


def _short(name: str, text: str) -> str:
    if name == "style":
        return _USUAL_FONTS.sub("", text).removesuffix("; ")
    if name == "transform":
        if text.startswith("rotate(-0 "):
            return ""
        # A scale would lose too much with two digits.
        return text if "scale" in text or "matrix" in text else _LONG_NUMBER.sub(_rounded, text)
    if name in ("d", "x", "y", "width", "height"):
        return " ".join(_LONG_NUMBER.sub(_rounded, text).split())
    return text


def _rounded(number: re.Match[str]) -> str:
    short = f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if short == "-0" else short
