"""What people read in a terminal: the one place through which all text goes there.

Text may come from files, so none of it is read as markup, and what a terminal would obey is
escaped. Lines and cells are strings, or `styled`; nothing else makes a `rich.text.Text`.
"""

from typing import Any

from rich.console import Console
from rich.text import Text

from marginmf._utils.printable import printable


class PlainConsole(Console):
    """A console to which a string is text of one line, whatever characters it has."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    def render_str(self, text: str, **settings: Any) -> Text:
        """Return a string as text to print: a line, or a cell of a table."""
        return super().render_str(printable(text), **settings)


def styled(text: str, style: str = "", most: int | None = None) -> Text:
    """Return text in a style, cut where it is longer than it may be."""
    return Text(printable(text, most), style)


def mark_best(console: Console, text: str, best: bool) -> Text:
    """Write the best of a column in bold where there are colours, else with a star before it."""
    mark = "*" if best and not console.color_system else ""
    if console.options.ascii_only:
        text = text.replace("±", "+-")
    return styled(mark + text, "bold green" if best else "")
