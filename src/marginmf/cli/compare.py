"""``marginmf compare``: several methods on the same splits of the same ratings."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginmf.cli.options import (
    METHODS,
    DataOptions,
    ModelOptions,
    ProtocolOptions,
    TalkOptions,
    takes_groups,
)

if TYPE_CHECKING:
    from marginmf.cli.comparison import Scores

EXAMPLE = "marginmf compare ratings.csv --models mmmf,als,bias --out table.md"
SHOWN = ("mae", "zero_one", "rmse", "nmae", "seconds")
#: Narrower terminals do without the NMAE, which is the MAE in another unit.
WIDE = 96


@takes_groups
def compare(
    *,
    names: Annotated[
        str,
        typer.Option("--models", metavar="NAME,NAME,...", help=f"Some of {', '.join(METHODS)}."),
    ] = "hmf,pmmmf,mmmf,als",
    out: Annotated[
        Path | None,
        typer.Option(help="Keep the table: a .csv, .md, .json, .png, .svg or .pdf file."),
    ] = None,
    protocol: ProtocolOptions,
    model: ModelOptions,
    data: DataOptions,
    talk: TalkOptions,
) -> None:
    """Fit several methods to the same ratings and put their errors into one table.

    Every cell is a mean and, after ±, the standard deviation over the splits; the best of each
    column is marked. Seconds are those of a fit.
    """
    from marginmf.cli import comparison
    from marginmf.cli.data import checked_ratings
    from marginmf.cli.destination import PICTURES, check_destination
    from marginmf.cli.models import make_models
    from marginmf.cli.printing import to_json
    from marginmf.cli.steps import steps
    from marginmf.cli.tables import show_scores, summary

    if out is not None:
        check_destination(out, "table", formats=(*WRITERS, *PICTURES))
        if out.suffix.lower() in PICTURES:
            from marginmf.plots.style import require_matplotlib

            require_matplotlib()
    models = make_models([name.strip() for name in names.split(",") if name.strip()], model)
    if not models:
        raise ValueError("--models names no method: give names with commas, such as hmf,als.")
    splitter = comparison.make_protocol(protocol, model.seed)
    source, _ = checked_ratings(data, talk.progress)
    with steps(protocol.splits * len(models) + 1, talk.progress) as step:
        scores = comparison.compare(models, source.table, splitter, step)
    result = {
        "data": source.summary(),
        "protocol": protocol.summary(),
        "seed": model.seed,
        "models": {name: summary(own) for name, own in scores.items()},
        "best": {metric: comparison.best(scores, metric) for metric in SHOWN},
        "out": None if out is None else str(out),
    }
    if out is not None:
        _keep(scores, result, out)
    if talk.as_json:
        typer.echo(to_json(result))
        return
    talk.out.print(f"{source.title}: {source.facts()}.", markup=False, soft_wrap=True)
    talk.out.print(f"Protocol {protocol.words()}.", markup=False, soft_wrap=True)
    wide = talk.out.width >= WIDE
    show_scores(talk.out, scores, tuple(name for name in SHOWN if wide or name != "nmae"))
    if out is not None:
        talk.out.print(f"The table is in {out}.", markup=False, soft_wrap=True)


def _as_markdown(scores: "Mapping[str, Scores]", result: dict[str, Any]) -> str:
    from marginmf.cli.tables import as_markdown

    return as_markdown(scores, SHOWN)


def _as_csv(scores: "Mapping[str, Scores]", result: dict[str, Any]) -> str:
    from marginmf.cli.tables import as_csv

    return as_csv(scores, SHOWN)


def _as_json(scores: "Mapping[str, Scores]", result: dict[str, Any]) -> str:
    from marginmf.cli.printing import to_json

    return to_json(result) + "\n"


#: How a table is written, by the ending of the file.
WRITERS: dict[str, Callable[..., str]] = {
    ".csv": _as_csv,
    ".md": _as_markdown,
    ".json": _as_json,
}


def _keep(scores: "Mapping[str, Scores]", result: dict[str, Any], out: Path) -> None:
    """Write the table in the form that the ending of the file says."""
    from marginmf.cli.destination import write_text

    ending = out.suffix.lower()
    if ending in WRITERS:
        write_text(out, WRITERS[ending](scores, result))
        return
    from marginmf import plots
    from marginmf.cli.picture import save_figure

    shown = [metric for metric in SHOWN if metric != "nmae"]
    values = {name: {m: own.values[m] for m in shown} for name, own in scores.items()}
    save_figure(plots.error_bars(values), out)
