"""``marginmf compare``: several methods on the same splits of the same ratings."""

from pathlib import Path
from typing import Annotated

import typer

from marginmf.cli.options import (
    METHODS,
    DataOptions,
    ModelOptions,
    ProtocolOptions,
    TalkOptions,
    takes_groups,
)

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
    from marginmf.cli.destination import refuse_same
    from marginmf.cli.kept import check_kept, keep_table
    from marginmf.cli.making import names_in
    from marginmf.cli.models import make_models
    from marginmf.cli.printing import to_json
    from marginmf.cli.scores import best
    from marginmf.cli.steps import steps
    from marginmf.cli.tables import show_scores, summary

    refuse_same(out, data.file, *data.feature_files.values())
    check_kept(out)
    models = make_models(names_in(names, "--models", "hmf,als"), model)
    splitter = comparison.make_protocol(protocol, model.seed)
    source, _ = checked_ratings(data, talk.progress)
    with steps(protocol.splits * len(models) + 1, talk.progress) as step:
        scores = comparison.compare(models, source.table, splitter, step, source.features)
    result = {
        "data": source.summary(),
        "protocol": protocol.summary(),
        "seed": model.seed,
        "models": {name: summary(own) for name, own in scores.items()},
        "best": {metric: best(scores, metric) for metric in SHOWN},
        "out": None if out is None else str(out),
    }
    if out is not None:
        keep_table(scores, result, out, SHOWN, [metric for metric in SHOWN if metric != "nmae"])
    if talk.as_json:
        typer.echo(to_json(result))
        return
    talk.out.print(source.lines(), markup=False, soft_wrap=True)
    talk.out.print(f"Protocol {protocol.words()}.", markup=False, soft_wrap=True)
    wide = talk.out.width >= WIDE
    show_scores(talk.out, scores, tuple(name for name in SHOWN if wide or name != "nmae"))
    if out is not None:
        talk.out.print(f"The table is in {out}.", markup=False, soft_wrap=True)
