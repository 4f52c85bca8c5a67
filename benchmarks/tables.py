"""Markdown tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.summaries import Row, Spread


def number(value: float | None, digits: str = ".4f") -> str:
    """Write a number; nothing for None.

    >>> number(0.5), number(None)
    ('0.5000', '')
    """
    return "" if value is None else format(value, digits)


def brief(spread: Spread) -> str:
    """Write seconds with as many digits as they are worth.

    >>> brief(Spread(0.0123, 0.012, 0.014)), brief(Spread(12.34, 11.0, 15.0))
    ('0.012 (0.012-0.014)', '12.3 (11.0-15.0)')
    """
    return format(spread, ".3f" if spread.median < 1 else ".2f" if spread.median < 10 else ".1f")


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the first column is text and the others are numbers.

    >>> print(markdown(["method", "MAE"], [["HMF", "0.66"]]))
    | method | MAE |
    |---|---:|
    | HMF | 0.66 |
    """
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    text = ["| " + " | ".join(cells) + " |" for cells in lines]
    text[1] = text[1].replace(" ", "")
    return "\n".join(text)


Column = tuple[str, Callable[[Row], str]]


def method_table(rows: Sequence[Row], columns: Sequence[Column]) -> str:
    """Return a row for each method; one that failed has its reason in place of figures."""
    heads = ["method", "n", *(head for head, _ in columns)]
    lines = []
    for row in rows:
        reason = row.reason.replace("|", "/")  # a bar would end the cell
        if row.n == 0:
            cells = [f"failed: {reason}", *[""] * (len(columns) - 1)]
        else:
            cells = [write(row) for _, write in columns]
        name = f"{row.method} (stopped: {reason})" if row.n and reason else row.method
        lines.append([name, str(row.n), *cells])
    return markdown(heads, lines)


def by_place(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield a heading and the rows of each split of each data set, for each number of threads."""
    for data, split, threads in dict.fromkeys((r.data, r.split, r.threads) for r in rows):
        own = [r for r in rows if (r.data, r.split, r.threads) == (data, split, threads)]
        yield f"## {data}, {split}, {threads} thread{'s' if threads > 1 else ''}", own


def times(rows: Sequence[Row], name: str, figure: Callable[[Row], float]) -> Callable[[Row], str]:
    """Return a column: how many times the figure of a baseline; empty where that is not there."""
    base = next((figure(row) for row in rows if row.method == name and row.n), None)
    return lambda row: "" if base is None else f"{figure(row) / base:.2f}"


def publish(file: Path, parts: Iterable[str]) -> None:
    """Print the parts of a report, and write them."""
    report = "\n\n".join(parts)
    print(report)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(report + "\n")


def print_row(*cells: object) -> None:
    """Print one row of a table that is not finished yet, numbers with four digits."""
    shown = (f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in cells)
    print("|", " | ".join(shown), "|", flush=True)


def print_header(*names: str) -> None:
    """Print the head of a table that is not finished yet."""
    print_row(*names)
    print_row(*["---"] * len(names))
