"""The demo's results as tables for people and as JSON for programs."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.text import Text

from marginmf._utils.types import Float64Array
from marginmf.cli.comparison import Trial
from marginmf.cli.data import Source
from marginmf.cli.example import Example
from marginmf.cli.methods import DESCRIPTIONS
from marginmf.cli.printing import new_table, to_json
from marginmf.cli.scores import Scores, best
from marginmf.cli.tables import show_scores
from marginmf.protocols import RatingsSplit as Split

#: Narrower terminals do without the words that say what each method is.
WIDE = 96
MOST_STARS = 6
#: What the demo measures.
SHOWN = ("mae", "zero_one", "rmse", "seconds")


def scores_of(trials: Mapping[str, Trial]) -> dict[str, Scores]:
    """Return the numbers that the demo shows of every method."""
    return {
        name: Scores({key: [{**trial.errors, "seconds": trial.seconds}[key]] for key in SHOWN})
        for name, trial in trials.items()
    }


def show_comparison(
    console: Console, source: Source, split: Split, scores: Mapping[str, Scores]
) -> None:
    """Print what the ratings are, and a table of errors."""
    held_out = f"{len(split.test_ratings):,} of them are held out."
    console.print(Text.assemble((source.title, "bold"), f": {source.facts()}; {held_out}"))
    wide = console.width >= WIDE
    show_scores(console, scores, SHOWN, DESCRIPTIONS if wide else None)


def show_example(console: Console, example: Example, levels: Float64Array) -> None:
    """Print one user's held-out ratings beside those that HMF predicted."""
    plain = console.options.ascii_only
    console.print(
        Text.assemble(
            "Held-out ratings of ", (f"user {example.user}", "bold"), ", and what HMF predicts:"
        )
    )
    grid = new_table("item", "true", "predicted")
    grid.columns[0].max_width = 48
    grid.columns[0].no_wrap = True
    for one in example.ratings:
        predicted = Text(stars(one.predicted, levels, plain), "yellow")
        if one.predicted == one.true:
            predicted.append("" if plain else "  ✓", "green")
        title = Text(one.title or f"item {one.item}")
        grid.add_row(title, Text(stars(one.true, levels, plain), "yellow"), predicted)
    console.print(grid)


def closing(scores: Mapping[str, Scores], picture: Path | None, seconds: float) -> str:
    """Return the last line: what to look at, and how long everything took."""
    name = best(scores, "mae")
    error = scores[name].mean("mae")
    text = f"Look at {name}, the best by mean absolute error ({error:.4f})"
    if picture is not None:
        text += f", and at {picture}"
    return f"{text}; all took {seconds:.1f} seconds."


def as_json(
    source: Source,
    split: Split,
    scores: Mapping[str, Scores],
    example: Example,
    picture: Path | None,
    seed: int,
    seconds: float,
) -> str:
    """Return everything as one JSON object."""
    return to_json(
        {
            "data": source.summary(),
            "split": {
                "seed": seed,
                "n_train": len(split.train),
                "n_test": len(split.test_ratings),
            },
            "methods": {
                name: {key: own.mean(key) for key in SHOWN} for name, own in scores.items()
            },
            "best": best(scores, "mae"),
            "example": asdict(example),
            "picture": None if picture is None else str(picture),
            "seconds": seconds,
        }
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
