"""Numbers in text, many at once."""

import warnings

import numpy as np

from marginmf._utils.types import Float64Array


def parse_numbers(text: str, separator: str, count: int) -> Float64Array | None:
    r"""Return the `count` numbers of a text, or None if it holds anything else.

    A blank as separator stands for any run of blanks, tabs and line ends; around any other one
    they are allowed.

    >>> parse_numbers("1,2.5, -3e2", ",", 3)
    array([   1. ,    2.5, -300. ])
    >>> parse_numbers("1,,3", ",", 3) is None
    True
    """
    if count == 0:
        return np.empty(0) if not text.strip() else None
    with warnings.catch_warnings():
        # NumPy is about to turn its warning of an unreadable text into an error.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            numbers: Float64Array = np.fromstring(text, dtype=np.float64, sep=separator)
        except (DeprecationWarning, ValueError):
            return None
    return numbers if len(numbers) == count and np.isfinite(numbers).all() else None


def parse_matrix(lines: list[str], separator: str | None, width: int) -> Float64Array | None:
    """Return rows of `width` numbers each, or None if any line is anything else.

    None as separator stands for any run of blanks.

    >>> parse_matrix(["1,2", "3,4"], ",", 2).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    >>> parse_matrix(["1,2,3", "4"], ",", 2) is None
    True
    """
    if separator is None:
        separator, lines = ",", [",".join(line.split()) for line in lines]
    if any(line.count(separator) != width - 1 for line in lines):
        return None
    text = separator.join(lines)
    if separator.isspace():  # which would match any run of blanks, and so hide an empty cell
        if "," in text:
            return None
        text, separator = text.replace(separator, ","), ","
    numbers = parse_numbers(text, separator, width * len(lines))
    return None if numbers is None else numbers.reshape(len(lines), width)
