"""Text from files as it can be shown: nothing in it moves a cursor, hides, or runs as a formula.

Terminals obey control characters (an escape sequence repaints the screen or fills the clipboard),
readers cannot see characters of no width or those that turn the direction of writing, and
spreadsheets compute cells that begin as a formula does.
"""

import re

#: The longest that quoted input may be in a message, that a cell of a table, and that all of a
#: message may be.
LONGEST_QUOTE, LONGEST_CELL, LONGEST_MESSAGE = 80, 200, 1500
#: Controls (C0, DEL, C1), soft hyphens, what has no width or turns the direction of writing, ends
#: of lines and paragraphs, notes between lines, halves of surrogate pairs, and tags.
UNSEEN = (
    "\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f"
)
#: The joiners of words and emoji are seen by what they join, which is not ASCII.
JOINERS = "\u200c\u200d"
JOINED = f"[^\x00-\x7f{JOINERS}{UNSEEN}]"
#: What is escaped, and before it the tags that are not: flags such as that of Scotland.
HIDDEN = re.compile(
    "(?P<flag>\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f)"
    rf"|[{UNSEEN}]|(?<!{JOINED})[{JOINERS}]|[{JOINERS}](?!{JOINED})"
)
#: Backslashes before what is, or would become, an escape.
SLASHES = re.compile(
    rf"(?<!\\)\\++(?=x[0-9a-f]{{2}}|u[0-9a-f]{{4}}|U[0-9a-f]{{8}}|[{UNSEEN}{JOINERS}])"
)
#: How a formula begins, also in letters of full or of small size; a sign alone is none.
FORMULA = re.compile(r"[\s']*[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b]\s*\S")
#: A number is none, whatever its sign.
NUMBER = re.compile(r"[+-](?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def printable(text: str, most: int | None = None) -> str:
    r"""Return text with what is obeyed rather than seen written as in Python, such as ``\x1b``.

    Words of all languages and emoji stay as they are, and so does what was escaped before.  Of a
    text longer than ``most`` characters, the beginning and the end are left.

    >>> print(printable("\x1b[31mred\x07"), printable("Zoë 東京"), printable(r"C:\new"))
    \x1b[31mred\x07 Zoë 東京 C:\new
    >>> printable("a" * 20, most=10)
    'aaaaa...aa'
    """
    text = _cut(text, most)
    return text if text.isprintable() else _cut(HIDDEN.sub(_escape, text), most)


def spreadsheet_cell(text: str) -> str:
    r"""Return text that no spreadsheet computes, escaped so that different texts stay different.

    >>> spreadsheet_cell("=1+2"), spreadsheet_cell("-1.5e3"), spreadsheet_cell("rock;-jazz")
    ("'=1+2", '-1.5e3', "rock;'-jazz")
    """
    if not text.isprintable() or "\\" in text:
        text = printable(SLASHES.sub(r"\g<0>\g<0>", text))
    # Where commas stand in numbers, spreadsheets split the cells of a CSV file at semicolons.
    return ";".join(map(_without_formula, text.split(";")))


def _without_formula(text: str) -> str:
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def _cut(text: str, most: int | None) -> str:
    if most is None or len(text) <= most:
        return text
    end = most // 5
    return f"{text[: most - end - 3]}...{text[len(text) - end :]}"


def _escape(match: re.Match[str]) -> str:
    if match["flag"]:
        return match[0]
    code = ord(match[0])
    letter, digits = ("x", 2) if code < 0x100 else ("u", 4) if code < 0x10000 else ("U", 8)
    return f"\\{letter}{code:0{digits}x}"
