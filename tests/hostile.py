"""Text that is obeyed by a terminal, hidden from readers or computed, and files full of it."""

import csv
import json
import os
import re
import unicodedata
from pathlib import Path

import numpy as np

HOSTILE = (
    *("\x1b[8mhidden", "\x1b[2J\x1b[1;1Hcleared", "\x1b]0;title\x07", "\x1b]52;c;aGk=\x07"),
    *(
        "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\",
        "\x9b8mcsi",
        "\x9d52;c;aGk=\x9c",
        "back\b\bed",
    ),
    *("bell\x07", "del\x7f", "\u202egnp.exe", "\u2066isolate\u2069", "zero\u200bwidth", "a\ufeffb"),
    *("soft\xadhyphen", "pay\u200dpal", "tag\U000e0041s", "para\u2029graph", "[bold red]rich[/]"),
    *("[link=http://evil]x[/link]", "[/]", ":bomb:", "$\\frac{", "=1+2", "-2+3|cmd", "+1|x!A0"),
    *("@SUM(1)", "\uff1d1+2", "rock;=1+2", f"f({'a=' * 40}", "\\x1b[8m", "x" * 240),
)
#: What no line of text can hold.
TYPED = ("new\nline", "car\rriage", "one\ttab", "\r=1+2", "\n=1+2")
#: What honest people write, and what no spreadsheet takes for a formula.
HONEST = (
    *(
        "Zoë",
        "東京",
        "Ωmega",
        "👨‍👩‍👧 family",
        "می‌خواهم",
        "❤️‍🔥",
        "-5x"[:2],
        "+1.5e3",
        "C:\\new",
        "don't",
    ),
    *("🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "50%", 'say "x"', "[red"),
)
#: A name of a folder: Windows has no names with control characters.
FOLDER = "[red]\u202e" if os.name == "nt" else "[red]\u202e\x1b]52;c;aGk=\x07\x9b8m"
#: Colours and weights, as they are written to a terminal.
STYLING = re.compile(r"\x1b\[(?:\d;)?(?:0|1|2|3\d)m")
#: Signs before numbers, which are seen though Unicode calls them format characters.
SEEN = set("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2")


def obeyed(text: str, styled: bool = False) -> list[str]:
    """Return the characters of an output that are obeyed, or not seen; newlines end its lines."""
    text = STYLING.sub("", text) if styled else text
    for honest in HONEST:
        text = text.replace(honest, "")
    return [
        one
        for one in sorted(set(text) - {"\n"} - SEEN)
        if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ]


def write_csv(path: Path, *columns: tuple[str, ...]) -> Path:
    """Write columns, each with its name first."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(zip(*columns, strict=True))
    return path


def ratings(names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...]]:
    """Return ratings by users of items that are called so."""
    draw = np.random.default_rng(0)
    rows = [
        (user, names[item], int(draw.integers(1, 6)))
        for user in names
        for item in np.sort(draw.permutation(len(names))[:8])
    ]
    users, items, stars = zip(*rows, strict=True)
    return users, items, stars


def write_ratings(path: Path, names: tuple[str, ...] = HOSTILE + HONEST) -> Path:
    """Write ratings in text or, where the name ends so, in JSON lines."""
    users, items, stars = ratings(names)
    if path.suffix != ".jsonl":
        return write_csv(path, ("user", *users), ("item", *items), ("rating", *map(str, stars)))
    rows = zip(users, items, stars, strict=True)
    lines = [json.dumps({"user": user, "item": item, "rating": star}) for user, item, star in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_features(path: Path, side: str, names: tuple[str, ...] = HOSTILE + HONEST) -> Path:
    """Write features and titles of users or items, under names that are hostile too."""
    return write_csv(
        path,
        (side, *names),
        ("title", *(f"{name} {'long ' * 100}" for name in names)),
        (HOSTILE[0], *names),
        (HOSTILE[10], *(str(k) for k in range(len(names)))),
    )


def write_labels(path: Path, names: tuple[str, ...] = HOSTILE + HONEST) -> Path:
    """Write features and, in the last columns, labels that are called so; return the file."""
    draw = np.random.default_rng(0)
    rows = 60
    kinds = draw.integers(0, len(names), (rows, 2))
    features = [(f"{HOSTILE[k]} {k}", *map(str, draw.normal(size=rows).round(3))) for k in range(4)]
    labels = [(name, *np.any(kinds == k, axis=1).astype(int)) for k, name in enumerate(names)]
    return write_csv(path, *features, *labels)
