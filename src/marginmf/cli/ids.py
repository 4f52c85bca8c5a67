"""Ids on the command line and in files are text; a model's own may be numbers or anything."""

import csv
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from marginmf._utils.ids import as_objects, shown
from marginmf._utils.types import Array
from marginmf.ratings.ids import IdIndex

#: Among more ids than this, close ones are looked for where the first letter is the same.
MANY = 20_000
#: A character that no id has, so that each line is one cell, with quotes around it or without.
NO_SEPARATOR = "\x1f"


def find_ids(index: IdIndex, texts: Sequence[str]) -> Array:
    """Return the ids that are written like this, or say which text is no id.

    >>> find_ids(IdIndex([7, 42], "user"), ["42"]).tolist()
    [42]
    """
    written = _by_text(index, texts)
    for text in texts:
        if text not in written:
            raise ValueError(_unknown(index, text))
    found = [written[text] for text in texts]
    return np.array(found, np.int64) if index.ids.dtype == np.int64 else as_objects(found)


def convert_ids(index: IdIndex, ids: Array) -> Array:
    """Return a column of ids in the type that the index has them in; others stay as they are.

    A column of whole numbers only is read as numbers, also where a single name in another file
    made the same column text.

    >>> convert_ids(IdIndex(["7", "x"], "item"), np.array([7, 8])).tolist()
    ['7', 8]
    """
    if ids.dtype == np.int64 and index.ids.dtype == np.int64:
        return ids
    texts = {value: str(value) for value in set(ids.tolist())}
    written = _by_text(index, list(texts.values()))
    known = {value: written.get(text, value) for value, text in texts.items()}
    return as_objects(known[value] for value in ids.tolist())


def read_ids(path: Path, what: str) -> list[str]:
    """Read the ids of users or items from a text file, one a line, each once.

    A first line such as ``user`` or ``movieId`` is a header.
    """
    from marginmf.datasets.files.columns import is_column_name

    lines = csv.reader(_lines(path, what), delimiter=NO_SEPARATOR)
    found = [cells[0].strip() for cells in lines if cells and cells[0].strip()]
    ids = found[1:] if found and is_column_name(found[0], what) else found
    if not ids:
        raise ValueError(f"{path} names no {what}; write one id a line.")
    return list(dict.fromkeys(ids))


def _lines(path: Path, what: str) -> list[str]:
    from marginmf.datasets.files.source import Source

    with Source(path, f"{what}s").open() as file:
        data = file.read()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace").splitlines()
    if b"\0" in data:
        raise ValueError(f"{path} is not a text file; write one {what} id a line.")
    try:
        return data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        return data.decode("latin-1").splitlines()


def _by_text(index: IdIndex, texts: Sequence[str]) -> dict[str, Any]:
    """Return, for those of the texts that an id is written as, that id."""
    if index.ids.dtype == np.int64:
        # The id 7 is written 7, and not 07 or +7; what is too long for int64 is no id.
        numbers = {text: int(text) for text in set(texts) if _is_number(text)}
        codes = index.encode(np.fromiter(numbers.values(), np.int64, len(numbers)))
        return {text: numbers[text] for text, code in zip(numbers, codes, strict=True) if code >= 0}
    wanted, ids = set(texts), index.ids.tolist()
    written = {str(value): value for value in ids if str(value) in wanted}
    # A text of exactly this spelling goes before a number that is written in the same way.
    return written | {value: value for value in ids if isinstance(value, str) and value in wanted}


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 18 and str(int(text)) == text


def _unknown(index: IdIndex, text: str) -> str:
    candidates = [str(value) for value in index.ids.tolist()]
    if len(candidates) > MANY:
        candidates = [one for one in candidates if one[:1] == text[:1]][:MANY]
    close = get_close_matches(text, candidates, n=3, cutoff=0.5)
    if close:
        hint = f"close to it are {', '.join(close)}"
    elif len(index):
        hint = f"its {index.what}s are such as {shown(index.ids[0])}"
    else:
        hint = f"it knows no {index.what}s at all"
    return f"The model does not know the {index.what} {text!r}; {hint}."
