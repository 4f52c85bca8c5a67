"""``marginmf demo``: the methods side by side on real ratings."""

import time
from pathlib import Path
from typing import Annotated

import typer

from marginmf.cli.options import TalkOptions, takes_groups

EXAMPLE = "marginmf demo ratings.csv --seed 1"


@takes_groups
def demo(
    *,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="Your own ratings, one a line.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seeds the split and the fits.")] = 0,
    picture: Annotated[Path, typer.Option(help="Where to draw: a .png, .svg or .pdf file.")] = Path(
        "marginmf-demo.png"
    ),
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; all cores unless told.", show_default=False)
    ] = None,
    talk: TalkOptions,
) -> None:
    """Fit every method to MovieLens 100K, compare their errors, and draw a picture.

    MovieLens is downloaded the first time; without a network, made-up ratings take its place.
    Name a FILE of lines with user, item and rating to use your own.
    """
    started = time.perf_counter()
    # The numerical libraries are imported here, so that --help does not wait for them.
    from marginmf.cli import report
    from marginmf.cli.comparison import judge, split_ratings, warm_up
    from marginmf.cli.data import demo_ratings
    from marginmf.cli.destination import PICTURES, check_destination
    from marginmf.cli.example import pick_example
    from marginmf.cli.methods import demo_methods
    from marginmf.cli.picture import draw
    from marginmf.protocols import HoldOut

    notes, console = talk.notes, talk.out
    check_destination(picture, "picture", "--picture", PICTURES)
    source = demo_ratings(file, seed, talk.progress)
    if source.note:
        notes.print(source.note, style="yellow", soft_wrap=True)
    split = next(split_ratings(source.table, HoldOut(n_splits=1, random_state=seed)))
    models = demo_methods(split.train, seed, threads or -1, talk.progress)
    with notes.status("Compiling the kernels, which takes long only the first time"):
        warm_up(models.values(), split)
    trials = {name: judge(model, split) for name, model in models.items()}
    scores = report.scores_of(trials)
    example = pick_example(source.table, split, trials["HMF"].predicted)
    report.show_comparison(console, source, split, scores)
    report.show_example(console, example, split.train.levels)
    drawn: Path | None = picture
    try:
        draw(trials, split.test_ratings, picture)
    except ImportError as error:
        drawn = None
        notes.print(f"There is no picture. {error}", style="yellow", soft_wrap=True, markup=False)
    seconds = time.perf_counter() - started
    if talk.as_json:
        typer.echo(report.as_json(source, split, scores, example, drawn, seed, seconds))
    console.print(report.closing(scores, drawn, seconds), markup=False, soft_wrap=True)
