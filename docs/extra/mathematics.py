"""Formulas between dollar signs become MathML while the site is built.

Browsers draw MathML by themselves, so that pages need no script, no font and no network, and read
well straight from the disk.  MkDocs calls `on_page_content` for every page.
"""

import re
from html import unescape
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

# What pymdownx.arithmatex makes of $...$ (a span) and $$...$$ (a div).
FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
#: How many parts an element of MathML must have.
PARTS = {"mfrac": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "msubsup": 3, "munderover": 3}


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Return the page with every formula as MathML; a formula that fails stops the build."""

    def as_mathml(found: re.Match[str]) -> str:
        tex, block = unescape(found["tex"]).strip(), found["tag"] == "div"
        try:
            mathml: str = convert(tex, display="block" if block else "inline")
            check(mathml)
        except Exception as error:
            raise PluginError(f"{page.file.src_path}: {error!r} in the formula {tex}") from error
        return f'<div class="formula">{mathml}</div>' if block else mathml

    return FORMULA.sub(as_mathml, html)


def check(mathml: str) -> None:
    """Raise an error if the converter passed over something that it does not understand."""
    if "\\" in mathml:
        raise ValueError("unknown command")
    for element in ElementTree.fromstring(mathml).iter():
        name = element.tag.rpartition("}")[2]
        if len(element) != PARTS.get(name, len(element)):
            raise ValueError(f"{name} of {len(element)} parts")
