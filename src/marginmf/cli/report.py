"""The demo's results as tables for people and as JSON for programs."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from marginmf._typing import Float64Array
from marginmf.cli.comparison import Comparison, Split
from marginmf.cli.data import Source
from marginmf.cli.example import Example
from marginmf.cli.methods import DESCRIPTIONS

#: Narrower terminals do without the words that say what each method is.
WIDE = 96
MOST_STARS = 6

COLUMNS = {
    "mae": ("MAE", "{:.4f}"),
    "zero_one": ("zero-one", "{:.4f}"),
    "rmse": ("RMSE", "{:.4f}"),
    "seconds": ("seconds", "{:.2f}"),
}


def show_scores(console: Console, source: Source, split: Split, comparison: Comparison) -> None:
    """Print what the ratings are, and a table of errors with the best of each column in bold."""
    table = source.table
    levels = split.train.levels
    facts = (
        f"{len(table):,} ratings ({levels[0]:g} to {levels[-1]:g}) of {table.n_items:,} items by "
        f"{table.n_users:,} users; {len(split.test_ratings):,} of them are held out."
    )
    console.print(Text.assemble((source.title, "bold"), ": ", facts))
    grid = Table(box=SIMPLE_HEAD, header_style="none", pad_edge=False)
    grid.add_column("method")
    wide = console.width >= WIDE
    if wide:
        grid.add_column("what it is", style="dim")
    for heading, _ in COLUMNS.values():
        grid.add_column(heading, justify="right")
    written = {
        column: [form.format(getattr(score, column)) for score in comparison.scores.values()]
        for column, (_, form) in COLUMNS.items()
    }
    for row, name in enumerate(comparison.scores):
        numbers = [_bold_if(cells[row], min(cells, key=float)) for cells in written.values()]
        grid.add_row(name, *([DESCRIPTIONS[name]] if wide else []), *numbers)
    console.print(grid)


def show_example(console: Console, example: Example, levels: Float64Array) -> None:
    """Print one user's held-out ratings beside those that HMF predicted."""
    plain = console.options.ascii_only
    console.print(
        Text.assemble(
            "Held-out ratings of ", (f"user {example.user}", "bold"), ", and what HMF predicts:"
        )
    )
    grid = Table(box=SIMPLE_HEAD, header_style="none", pad_edge=False)
    grid.add_column("item", max_width=48, no_wrap=True)
    grid.add_column("true")
    grid.add_column("predicted")
    for one in example.ratings:
        predicted = Text(stars(one.predicted, levels, plain), "yellow")
        if one.predicted == one.true:
            predicted.append("" if plain else "  ✓", "green")
        title = Text(one.title or f"item {one.item}")
        grid.add_row(title, Text(stars(one.true, levels, plain), "yellow"), predicted)
    console.print(grid)


def closing(comparison: Comparison, picture: Path | None, seconds: float) -> str:
    """Return the last line: what to look at, and how long everything took."""
    best = comparison.best
    text = f"Look at {best}, the best by mean absolute error ({comparison.scores[best].mae:.4f})"
    if picture is not None:
        text += f", and at {picture}"
    return f"{text}; all took {seconds:.1f} seconds."


def as_json(
    source: Source,
    split: Split,
    comparison: Comparison,
    example: Example,
    picture: Path | None,
    seed: int,
    seconds: float,
) -> str:
    """Return everything as one JSON object."""
    table = source.table
    return json.dumps(
        {
            "data": {
                "name": table.name,
                "origin": source.origin,
                "source": table.source,
                "n_ratings": len(table),
                "n_users": table.n_users,
                "n_items": table.n_items,
                "levels": split.train.levels.tolist(),
            },
            "split": {
                "seed": seed,
                "n_train": len(split.train),
                "n_test": len(split.test_ratings),
            },
            "methods": {name: asdict(score) for name, score in comparison.scores.items()},
            "best": comparison.best,
            "example": asdict(example),
            "picture": None if picture is None else str(picture),
            "seconds": seconds,
        },
        indent=2,
        ensure_ascii=False,
        allow_nan=False,
    )


def stars(rating: float, levels: Iterable[float], plain: bool = False) -> str:
    """Write a rating as stars where the scale is whole numbers from 1, else as a number.

    >>> stars(4, [1, 2, 3, 4, 5]), stars(2, [2, 3]), stars(3.5, [3, 3.5, 4])
    ('★★★★☆', '★★☆', '3.5')
    """
    scale = list(levels)
    whole = all(level == int(level) and 1 <= level <= MOST_STARS for level in scale)
    if plain or not whole:
        return f"{rating:g}"
    return "★" * int(rating) + "☆" * int(max(scale) - rating)


def _bold_if(cell: str, best: str) -> Text:
    return Text(cell, "bold green" if cell == best else "")
