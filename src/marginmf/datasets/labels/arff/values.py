"""Cut ARFF's lines into values: separated by commas or blanks, quoted where they hold any."""

import re

QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
VALUE = re.compile(rf"""\s*({QUOTED}|[^\s,'"{{}}][^\s,{{}}]*)\s*(,?)""")
ESCAPE = re.compile(r"\\(.)")
ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


class ValuesFault(ValueError):  # noqa: N818, the file is at fault
    """A line that cannot be cut into values."""


def cut(text: str) -> list[str]:
    r"""Return the values of a list, without their quotes.

    >>> cut(r"1, 'rock \'n\' roll',?")
    ['1', "rock 'n' roll", '?']
    """
    values: list[str] = []
    place, more = 0, False
    end = len(text.rstrip())
    while place < end:
        match = VALUE.match(text, place, end)
        if match is None:
            rest = text[place:end].strip()
            if rest[0] in "'\"":
                raise ValuesFault("a quote is not closed; close it")
            if rest[0] == ",":
                raise ValuesFault("a value between two commas is missing; fill it in")
            raise ValuesFault(f"{rest[:20]!r} does not begin a value; quote it")
        values.append(unquote(match[1]))
        more = bool(match[2])
        place = match.end()
    if more:
        raise ValuesFault("the line ends with a comma; complete or remove the line")
    return values


def unquote(value: str) -> str:
    """Return what a value stands for: without its quotes and escapes."""
    if len(value) < 2 or value[0] not in "'\"" or value[-1] != value[0]:
        return value
    return ESCAPE.sub(lambda match: ESCAPED.get(match[1], match[1]), value[1:-1])
