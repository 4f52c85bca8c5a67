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
#: More splits than this are not listed one by one.
MOST_LISTED = 5


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
    from marginmf.cli.printing import new_table, to_json
    from marginmf.cli.steps import steps
    from marginmf.cli.tables import METRICS, cell, summary

    models = make_models([name], model)
    splitter = make_protocol(protocol, model.seed)
    source, _ = checked_ratings(data, talk.progress)
    with steps(protocol.splits + 1, talk.progress) as step:
        scores = compare(models, source.table, splitter, step)[name]
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
    n_listed = protocol.splits if 1 < protocol.splits <= MOST_LISTED else 0
    listed = [f"split {number}" for number in range(1, n_listed + 1)]
    table = new_table("error", name, *listed, numbers=1 + n_listed)
    for metric, (heading, digits) in METRICS.items():
        each = [f"{value:.{digits}f}" for value in scores.values[metric][:n_listed]]
        table.add_row(heading, cell(scores, metric), *each)
    talk.out.print(f"{source.title}: {source.facts()}.", markup=False, soft_wrap=True)
    talk.out.print(f"Protocol {protocol.words()}.", markup=False, soft_wrap=True)
    talk.out.print(table)
