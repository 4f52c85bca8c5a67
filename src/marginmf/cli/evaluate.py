"""``marginmf evaluate``: the errors of one method on held-out ratings."""

import typer

from marginmf.cli.options import (
    DataOptions,
    MethodName,
    ModelOptions,
    ProtocolOptions,
    TalkOptions,
    takes_groups,
)

EXAMPLE = "marginmf evaluate ratings.csv --model mmmf --protocol holdout"


@takes_groups
def evaluate(
    *,
    name: MethodName = "hmf",
    protocol: ProtocolOptions,
    model: ModelOptions,
    data: DataOptions,
    talk: TalkOptions,
) -> None:
    """Fit a method to some of the ratings and measure its errors on the others.

    Prints the mean and the standard deviation of every error over the splits. All errors are
    the smaller the better; the standard deviation is that of a sample.
    """
    from marginmf.cli.comparison import compare, make_protocol
    from marginmf.cli.data import checked_ratings
    from marginmf.cli.models import make_models
    from marginmf.cli.printing import to_json
    from marginmf.cli.scores import RATINGS
    from marginmf.cli.steps import steps
    from marginmf.cli.tables import show_measures, summary

    models = make_models([name], model)
    splitter = make_protocol(protocol, model.seed)
    source, _ = checked_ratings(data, talk.progress)
    with steps(protocol.splits + 1, talk.progress) as step:
        scores = compare(models, source.table, splitter, step, source.features)[name]
    if talk.as_json:
        typer.echo(
            to_json(
                {
                    "data": source.summary(),
                    "model": name,
                    "protocol": protocol.summary(),
                    "seed": model.seed,
                    "metrics": summary(scores),
                }
            )
        )
        return
    talk.out.print(source.lines(), markup=False, soft_wrap=True)
    talk.out.print(f"Protocol {protocol.words()}.", markup=False, soft_wrap=True)
    show_measures(talk.out, name, scores, RATINGS)
