"""Words with code among them, which stands between backticks."""

from collections.abc import Callable


def with_code(text: str, words: Callable[[str], str], code: Callable[[str], str]) -> str:
    """Return a text with its words and its code each written in their own way.

    A backtick without a second one is a backtick.

    >>> with_code("run `a` or `b", str.upper, lambda code: f"<{code}>")
    'RUN <a> OR `B'
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:
        parts[-2:] = [f"{parts[-2]}`{parts[-1]}"]
    return "".join(
        code(part) if place % 2 else words(part) for place, part in enumerate(parts) if part
    )
