"""``marginmf labels evaluate``: the measures of one method on rows held out."""

import typer

from marginmf.cli.labels.options import (
    DecisionOptions,
    FoldOptions,
    LabelModel,
    LabelsData,
    MethodName,
)
from marginmf.cli.options import TalkOptions, takes_groups

EXAMPLE = "marginmf labels evaluate songs.csv --labels 2 --model plst --cv 3"


@takes_groups
def evaluate(
    *,
    name: MethodName = "grople",
    folds: FoldOptions,
    model: LabelModel,
    decision: DecisionOptions,
    data: LabelsData,
    talk: TalkOptions,
) -> None:
    """Fit a method to some of the rows and measure the labels it predicts for the others.

    Prints the mean and the standard deviation of every measure over the folds. Of Hamming loss
    and coverage less is better, of all others more; accuracy is the mean Jaccard index.
    """
    from marginmf.cli.labels.data import facts, read_table, summary
    from marginmf.cli.labels.judging import compare
    from marginmf.cli.labels.models import check_models, make_models
    from marginmf.cli.printing import to_json
    from marginmf.cli.scores import LABELS
    from marginmf.cli.steps import steps
    from marginmf.cli.tables import show_measures
    from marginmf.cli.tables import summary as measures

    check_models([name], model)
    table = read_table(data)
    models = make_models([name], model, decision, table)
    with steps(folds.n_folds + 1, talk.progress) as step:
        scores = compare(models, table, folds, model.seed, step)[name]
    if talk.as_json:
        result = {
            "data": summary(table),
            "model": name,
            "folds": folds.summary(),
            "decision": decision.parameters(),
            "seed": model.seed,
            "metrics": measures(scores),
        }
        typer.echo(to_json(result))
        return
    talk.out.print(f"{table.name}: {facts(table)}.", markup=False, soft_wrap=True)
    talk.out.print(
        f"Held out: {folds.words()}. Decision: {decision.words()}.", markup=False, soft_wrap=True
    )
    show_measures(talk.out, name, scores, [one for one in LABELS if one in scores.values])
