"""How commands print: one look for tables, one form of JSON."""

import codecs
import json
import math
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text


def new_table(*columns: str, numbers: int = 0) -> Table:
    """Return an empty table whose last columns, so many of them, hold numbers."""
    table = Table(box=SIMPLE_HEAD, header_style="none", pad_edge=False)
    for place, heading in enumerate(columns):
        table.add_column(heading, justify="right" if place >= len(columns) - numbers else "left")
    return table


def to_json(value: Any, encoding: str | None = None) -> str:
    """Return a value as JSON; numbers that it does not have are null, and objects are text.

    Letters are written as they are if the encoding, by default that of standard output, is UTF-8
    and has them; otherwise all of it is ASCII, so that none is lost.

    >>> print(to_json({"a": [1, float("nan")]}).replace(chr(10), ""))
    {  "a": [    1,    null  ]}
    """
    encoding = getattr(sys.stdout, "encoding", None) if encoding is None else encoding
    plain = partial(json.dumps, _finite(value), indent=2, allow_nan=False, default=str)
    text: str = plain(ensure_ascii=False)
    try:
        text.encode(encoding or "utf-8")
        kept = codecs.lookup(encoding or "utf-8").name.startswith("utf-8")
    except (UnicodeEncodeError, LookupError):
        kept = False
    return text if kept else plain(ensure_ascii=True)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show_facts(console: Console, title: str, facts: Mapping[str, str]) -> None:
    """Print a title, and under it a line for every fact."""
    console.print(title, style="bold", markup=False, soft_wrap=True)
    table = Table.grid(padding=(0, 2))
    for name, words in facts.items():
        table.add_row(f"  {name}", Text(words))
    console.print(table)


def size(n_bytes: int) -> str:
    """Write the size of a file.

    >>> size(900), size(51_200), size(3_000_000)
    ('900 bytes', '51.2 kB', '3.0 MB')
    """
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    return f"{n_bytes / 1e3:.1f} kB" if n_bytes < 1e6 else f"{n_bytes / 1e6:.1f} MB"
