"""Ids on the command line and in files are text; a model's own may be whole numbers or anything."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from marginmf._utils.ids import as_objects, shown
from marginmf._utils.types import Array
from marginmf.ratings.ids import IdIndex

#: Among more ids than this, close ones are looked for where the first letter is the same.
MANY = 20_000


def find_ids(index: IdIndex, texts: Sequence[str]) -> Array:
    """Return the ids that some words mean, or say which word means none.

    >>> find_ids(IdIndex([7, 42], "user"), ["42"]).tolist()
    [42]
    """
    written = _by_text(index, texts)
    for text in texts:
        if text not in written:
            raise ValueError(_unknown(index, text))
    found = [written[text] for text in texts]
    return np.array(found, np.int64) if index.ids.dtype == np.int64 else as_objects(found)


def as_known(index: IdIndex, ids: Array) -> Array:
    """Return a column of ids in the type that the vocabulary has them in; others stay as they are.

    A column of whole numbers only is read as numbers, also where a single name in another file
    made the same column text.

    >>> as_known(IdIndex(["7", "x"], "item"), np.array([7, 8])).tolist()
    ['7', 8]
    """
    if ids.dtype == np.int64 and index.ids.dtype == np.int64:
        return ids
    texts = {value: str(value) for value in set(ids.tolist())}
    written = _by_text(index, list(texts.values()))
    known = {value: written.get(text, value) for value, text in texts.items()}
    return as_objects(known[value] for value in ids.tolist())


def _by_text(index: IdIndex, texts: Sequence[str]) -> dict[str, Any]:
    """Return, for those of the words that an id is written as, that id."""
    if index.ids.dtype == np.int64:
        # The id 7 is written 7, and not 07 or +7; what is too long for int64 is no id.
        numbers = {text: int(text) for text in set(texts) if _is_number(text)}
        codes = index.encode(np.fromiter(numbers.values(), np.int64, len(numbers)))
        return {text: numbers[text] for text, code in zip(numbers, codes, strict=True) if code >= 0}
    wanted = set(texts)
    written = {str(value): value for value in index.ids.tolist() if str(value) in wanted}
    # A text of exactly this spelling goes before a number that is written in the same way.
    return written | {text: text for text in _exact(index, wanted)}


def _exact(index: IdIndex, wanted: set[str]) -> set[str]:
    return wanted.intersection(value for value in index.ids.tolist() if isinstance(value, str))


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
