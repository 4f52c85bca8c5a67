"""``marginmf demo``: the methods side by side on real ratings."""

import time
from pathlib import Path
from typing import Annotated

import typer


def demo(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Your own ratings, one a line.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seeds the split and the fits.")] = 0,
    picture: Annotated[Path, typer.Option(help="Where to draw: a .png, .svg or .pdf file.")] = Path(
        "marginmf-demo.png"
    ),
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; all cores unless told.", show_default=False)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of tables.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress bars and no notes.")
    ] = False,
) -> None:
    """Fit every method to MovieLens 100K, compare their errors, and draw a picture.

    MovieLens is downloaded the first time; without a network, made-up ratings take its place.
    Name a FILE of lines with user, item and rating to use your own.

    Examples: marginmf demo; marginmf demo ratings.csv --seed 1 --json
    """
    started = time.perf_counter()
    # The numerical libraries are imported here, so that --help does not wait for them.
    from rich.console import Console

    from marginmf.cli import report
    from marginmf.cli.comparison import compare, hold_out, warm_up
    from marginmf.cli.data import demo_ratings
    from marginmf.cli.example import pick_example
    from marginmf.cli.methods import demo_methods
    from marginmf.cli.picture import check_destination, draw

    notes, console = Console(stderr=True, quiet=quiet, highlight=False), Console(highlight=False)
    check_destination(picture)
    source = demo_ratings(file, seed, progress=not quiet)
    if source.note:
        notes.print(source.note, style="yellow", soft_wrap=True)
    split = hold_out(source.table, seed)
    models = demo_methods(split.train, source.origin, seed, threads or -1, progress=not quiet)
    with notes.status("Compiling the kernels, which takes long only the first time"):
        warm_up(models, split)
    comparison = compare(models, split)
    example = pick_example(source.table, split, comparison.predicted["HMF"])
    if not as_json:
        report.show_scores(console, source, split, comparison)
        report.show_example(console, example, split.train.levels)
    drawn: Path | None = picture
    try:
        draw(comparison, split.test_ratings, picture)
    except ImportError as error:
        drawn = None
        notes.print(f"There is no picture. {error}", style="yellow", soft_wrap=True, markup=False)
    seconds = time.perf_counter() - started
    if as_json:
        typer.echo(report.as_json(source, split, comparison, example, drawn, seed, seconds))
    else:
        console.print(report.closing(comparison, drawn, seconds), markup=False, soft_wrap=True)
