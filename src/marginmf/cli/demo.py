"""``marginmf demo``: the methods side by side on real ratings."""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from marginmf._utils.printable import LONGEST_CELL, LONGEST_MESSAGE, printable
from marginmf.cli.commands import command
from marginmf.cli.options import ConsoleOptions, Threads

if TYPE_CHECKING:
    from marginmf._utils.types import Float64Array, IntArray
    from marginmf.datasets import RatingsTable
    from marginmf.protocols import RatingsSplit
    from marginmf.ratings import Ratings

#: What each method is, in a few words.
DESCRIPTIONS = {
    "BiasOnly": "averages of users and items",
    "ALS with biases": "ordinary matrix factorisation",
    "MMMF": "thresholds of each user's own",
    "PMMMF": "a prototype score for each level",
    "HMF": "a factorisation for each step",
    "MMMF, raters": "MMMF with who rated what",
    "MarginEnsemble": "many small MMMFs and HMFs with it",
}
MOST_FACTORS, FEWEST_RATINGS = 100, 20
METRICS = ("mae", "zero_one", "rmse", "seconds")
#: The methods whose training curves are drawn.
DRAWN = ("MMMF", "PMMMF", "HMF")
#: Ratings of one user to show, and the longest scale that is shown as stars.
N_SHOWN, MOST_STARS = 5, 6


@command("marginmf demo ratings.csv --seed 1")
def demo(
    *,
    file: Annotated[str | None, Argument(metavar="FILE", help="Your ratings, one a line.")] = None,
    seed: Annotated[int, Option(min=0, help="Seed of the split and the fits.")] = 0,
    picture: Annotated[Path, Option(help="Where to draw: .png, .svg or .pdf.")] = Path(
        "marginmf-demo.png"
    ),
    threads: Threads = None,
    console: ConsoleOptions,
) -> None:
    """Fit seven methods to MovieLens 100K, compare their errors, and draw a picture.

    MovieLens is downloaded the first time; without a network, made-up ratings take its place.
    Name a FILE of lines with user, item and rating to use your own.
    """
    started = time.perf_counter()
    # The numerical libraries are imported here, so that --help does not wait for them.
    from marginmf.cli import comparisons, inputs, output
    from marginmf.cli.terminal import styled
    from marginmf.progress import show_bar
    from marginmf.protocols import Comparison, HoldOut, split_ratings
    from marginmf.ratings import Ratings

    output.check_destination(picture, "picture", "--picture", output.PICTURES)
    source = inputs.read_demo_ratings(file, seed, console.progress)
    if source.note:
        console.note(source.note)
    if len(source.table) < FEWEST_RATINGS:
        raise ValueError(
            f"{source.title} has {len(source.table)} ratings, too few to hold some of them out: "
            f"give at least {FEWEST_RATINGS}."
        )
    Ratings.of(source.table.pairs, source.table.ratings)  # a fault is found before the fits
    split = next(split_ratings(source.table, HoldOut(n_splits=1, random_state=seed)))
    models = demo_methods(split.train, seed, threads or -1, console.progress)
    label = "Compiling the kernels, which takes long only the first time"
    with show_bar(label, visible=console.progress):
        for model in models.values():
            split.warm_up(model)
    trials = {name: split.evaluate(model) for name, model in models.items()}
    scores = {name: {key: own.values[key] for key in METRICS} for name, own in trials.items()}
    found = Comparison("ratings", METRICS)
    for name, values in scores.items():
        found.add(name, values)
    best = str(found.best("mae"))
    example = pick_example(source.table, split, trials["HMF"].predicted)
    held_out = f"{len(split.test_ratings):,} of them are held out."
    title, counted = styled(source.title, "bold", LONGEST_CELL), source.counts()
    console.out.print(title + styled(f": {counted}; {held_out}", most=LONGEST_MESSAGE))
    comparisons.show_comparison(console.out, found, DESCRIPTIONS)
    _show_example(console, example, split.train.levels)
    drawn: str | None = str(picture)
    try:
        _draw(trials, split.test_ratings, picture)
    except ImportError as error:
        drawn = None
        console.note(f"There is no picture. {error}")
    seconds = time.perf_counter() - started
    counts = {"seed": seed, "n_train": len(split.train), "n_test": len(split.test_ratings)}
    result = {"data": source.summary(), "split": counts, "methods": scores, "best": best}
    console.print_json({**result, "example": example, "picture": drawn, "seconds": seconds})
    look = f"Look at {best}, the best by mean absolute error ({found.mean(best):.4f})"
    also = f", and at {drawn}" if drawn else ""
    console.print(f"{look}{also}; all took {seconds:.1f} seconds.")


def demo_methods(train: "Ratings", seed: int, n_jobs: int, progress: bool) -> dict[str, Any]:
    """Return the methods to compare by name, all with their defaults."""
    from marginmf.ratings import ALS, HMF, MMMF, PMMMF, BiasOnly, MarginEnsemble

    common: dict[str, Any] = {"random_state": seed, "n_jobs": n_jobs, "verbose": int(progress)}
    shared = {"n_factors": min(MOST_FACTORS, train.n_users, train.n_items), **common}
    return {
        "BiasOnly": BiasOnly(n_jobs=n_jobs),
        "ALS with biases": ALS(bias=True, **shared),
        "MMMF": MMMF(**shared),
        "PMMMF": PMMMF(**shared),
        "HMF": HMF(**shared),
        "MMMF, raters": MMMF(implicit="both", **common),
        "MarginEnsemble": MarginEnsemble(**common),
    }


def _show_example(console: ConsoleOptions, example: dict[str, Any], levels: "Float64Array") -> None:
    """Print one user's held-out ratings beside those that HMF predicted."""
    from marginmf.cli.output import new_table
    from marginmf.cli.terminal import styled

    out = console.out
    plain = out.options.ascii_only
    user = styled(f"user {example['user']}", "bold", LONGEST_CELL)
    out.print(styled("Held-out ratings of ") + user + styled(", and what HMF predicts:"))
    grid = new_table("item", "true", "predicted")
    grid.columns[0].max_width = 48
    grid.columns[0].no_wrap = True
    for one in example["ratings"]:
        predicted = styled(format_stars(one["predicted"], levels, plain), "yellow")
        if one["predicted"] == one["true"]:
            predicted.append("" if plain else "  ✓", "green")
        title = printable(one["title"] or f"item {one['item']}", LONGEST_CELL)
        grid.add_row(title, styled(format_stars(one["true"], levels, plain), "yellow"), predicted)
    out.print(grid)


def format_stars(rating: float, levels: Iterable[float], plain: bool = False) -> str:
    """Write a rating as stars where the scale is whole numbers from 1, else as a number.

    >>> format_stars(4, [1, 2, 3, 4, 5]), format_stars(2, [2, 3]), format_stars(3.5, [3, 3.5, 4])
    ('★★★★☆', '★★☆', '3.5')
    """
    scale = list(levels)
    whole = all(level == int(level) and 1 <= level <= MOST_STARS for level in scale)
    if plain or not whole:
        return f"{rating:g}"
    return "★" * int(rating) + "☆" * int(max(scale) - rating)


def pick_example(
    table: "RatingsTable", split: "RatingsSplit", predicted: "Float64Array"
) -> dict[str, Any]:
    """Return a few held-out ratings of the user whose ratings spread the most.

    The choice never sees predictions.
    """
    import numpy as np

    from marginmf.ratings.ids import IdIndex

    index = IdIndex(table.users[split.test_rows], "user")
    users = index.encode(table.users[split.test_rows])
    own = np.flatnonzero(users == most_varied(users, split.test_ratings, len(index)))
    codes = split.train.items.encode(table.items[split.test_rows[own]])
    counts = np.bincount(split.train.indices, minlength=split.train.n_items)
    popularity = np.where(codes >= 0, counts[codes], 0)
    shown = own[spread(split.test_ratings[own], popularity)]
    rows, titles = split.test_rows[shown], table.titles or {}
    columns = table.items[rows], table.ratings[rows], predicted[shown]
    ratings = [
        {"item": item, "title": titles.get(item), "true": true, "predicted": guess}
        for item, true, guess in zip(*(one.tolist() for one in columns), strict=True)
    ]
    return {"user": table.users[rows[:1]].tolist()[0], "ratings": ratings}


def most_varied(users: "IntArray", ratings: "Float64Array", n_users: int) -> int:
    """Return who used the most levels and, of those, has the most ratings at the rarest of them."""
    import numpy as np

    levels, codes = np.unique(ratings, return_inverse=True)
    counts = np.zeros((n_users, len(levels)), np.int64)
    np.add.at(counts, (users, codes), 1)
    rarest = np.where(counts > 0, counts, len(ratings)).min(axis=1)
    return int(np.lexsort((counts.sum(axis=1), rarest, (counts > 0).sum(axis=1)))[-1])


def spread(ratings: "Float64Array", popularity: "IntArray") -> "IntArray":
    """Return the positions of a few ratings, the highest first, as different as can be.

    The most popular item stands for each level: more readers will know it.
    """
    import numpy as np

    by_popularity = np.argsort(-popularity, kind="stable")
    chosen = by_popularity[np.unique(ratings[by_popularity], return_index=True)[1]]
    if len(chosen) > N_SHOWN:
        chosen = chosen[np.linspace(0, len(chosen) - 1, N_SHOWN).round().astype(int)]
    others = by_popularity[~np.isin(by_popularity, chosen)]
    chosen = np.concatenate((chosen, others))[:N_SHOWN]
    return chosen[np.lexsort((-popularity[chosen], -ratings[chosen]))]


def _draw(trials: Mapping[str, Any], true: "Float64Array", path: Path) -> None:
    """Draw training curves beside HMF's confusion of levels."""
    from marginmf import plots
    from marginmf.cli.output import save_figure
    from marginmf.plots.style import new_figure

    figure = new_figure(11, 4.5)
    left, right = figure.subplots(1, 2)
    models, hmf = {name: trials[name].model for name in DRAWN}, trials["HMF"]
    plots.training_curves(models, left, title="How the fits went")
    title = "What HMF predicts for held-out ratings"
    plots.level_confusion(true, hmf.predicted, hmf.model.levels_, right, title=title)
    save_figure(figure, path)
