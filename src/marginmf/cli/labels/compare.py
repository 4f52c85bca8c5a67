"""``marginmf labels compare``: several methods on the same folds of the same rows."""

from pathlib import Path
from typing import Annotated

import typer

from marginmf.cli.labels.options import (
    METHODS,
    DecisionOptions,
    FoldOptions,
    LabelModel,
    LabelsData,
)
from marginmf.cli.options import TalkOptions, takes_groups

EXAMPLE = "marginmf labels compare songs.csv --labels 2 --models plst,mlknn"
#: What files have, the most wanted first; terminals show as many as there is room for.
MEASURES = ("accuracy", "hamming", "micro_f1", "macro_f1", "example_f1", "subset_accuracy")
SHOWN = (*MEASURES, "seconds")
FIRST_COLUMN, COLUMN = 20, 17


@takes_groups
def compare(
    *,
    names: Annotated[
        str,
        typer.Option("--models", metavar="NAME,NAME,...", help=f"Some of {', '.join(METHODS)}."),
    ] = "grople,mlchmf,binary-relevance,ridge-embedding",
    out: Annotated[
        Path | None,
        typer.Option(help="Keep the table: a .csv, .md, .json, .png, .svg or .pdf file."),
    ] = None,
    folds: FoldOptions,
    model: LabelModel,
    decision: DecisionOptions,
    data: LabelsData,
    talk: TalkOptions,
) -> None:
    """Fit several methods to the same rows, under one decision rule, and compare them in a table.

    Every cell is a mean and, after ±, the standard deviation over the folds; the best of each
    column is marked. Seconds are those of a fit.
    """
    from marginmf.cli.destination import refuse_same
    from marginmf.cli.kept import check_kept, keep_table
    from marginmf.cli.labels import judging
    from marginmf.cli.labels.data import facts, read_table, summary
    from marginmf.cli.labels.models import check_models, make_models
    from marginmf.cli.making import names_in
    from marginmf.cli.printing import to_json
    from marginmf.cli.scores import best
    from marginmf.cli.steps import steps
    from marginmf.cli.tables import show_scores
    from marginmf.cli.tables import summary as measures

    check_kept(out)
    refuse_same(out, data.file, data.xml)
    chosen = names_in(names, "--models", "grople,mlknn")
    check_models(chosen, model)
    table = read_table(data, talk.progress)
    models = make_models(chosen, model, decision, table)
    with steps(folds.n_folds * len(models) + 1, talk.progress) as step:
        scores = judging.compare(models, table, folds, model.seed, step)
    result = {
        "data": summary(table),
        "folds": folds.summary(),
        "decision": decision.parameters(),
        "seed": model.seed,
        "models": {name: measures(own) for name, own in scores.items()},
        "best": {metric: best(scores, metric) for metric in SHOWN},
        "out": None if out is None else str(out),
    }
    if out is not None:
        keep_table(scores, result, out, SHOWN, SHOWN)
    if talk.as_json:
        typer.echo(to_json(result))
        return
    talk.out.print(f"{table.name}: {facts(table)}.", markup=False, soft_wrap=True)
    talk.out.print(
        f"Held out: {folds.words()}. Decision: {decision.words()}.", markup=False, soft_wrap=True
    )
    room = max(1, (talk.out.width - FIRST_COLUMN) // COLUMN - 1)
    show_scores(talk.out, scores, (*MEASURES[:room], "seconds"))
    if out is not None:
        talk.out.print(f"The table is in {out}.", markup=False, soft_wrap=True)
