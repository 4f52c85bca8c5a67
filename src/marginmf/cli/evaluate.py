"""``marginmf evaluate``: the errors of one method on held-out ratings."""

import typer

from marginmf.cli.options import (
    DataOptions,
    ListOptions,
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
    lists: ListOptions,
    protocol: ProtocolOptions,
    model: ModelOptions,
    data: DataOptions,
    talk: TalkOptions,
) -> None:
    """Fit a method to some of the ratings and measure its errors on the others.

    Prints the mean and the standard deviation of every error over the splits. All errors are
    the smaller the better; the standard deviation is that of a sample. With --lists, the lists
    that the method recommends are judged: do they have the held-out items that users like?
    """
    from marginmf.cli.comparison import compare, compare_lists, make_protocol
    from marginmf.cli.data import checked_for_lists
    from marginmf.cli.list_tables import ListTable
    from marginmf.cli.models import make_models
    from marginmf.cli.printing import to_json
    from marginmf.cli.scores import RATINGS
    from marginmf.cli.steps import steps
    from marginmf.cli.tables import show_measures, summary

    rule = lists.rule
    protocol = protocol if rule is None else protocol.for_lists()
    models = make_models([name], model, lists=rule is not None)
    splitter = make_protocol(protocol, model.seed)
    source, ratings = checked_for_lists(data, models, lists.positive_only, talk.progress)
    lists.check_scale(ratings)
    work = models, source.table, splitter
    with steps(protocol.splits + 1, talk.progress) as step:
        if rule is None:
            scores = compare(*work, step, source.features)[name]
            measured = {"metrics": summary(scores)}
        else:
            judged = ListTable(compare_lists(*work, rule, step, source.features))
            measured = judged.result_of(name)
    if talk.as_json:
        typer.echo(
            to_json(
                {
                    "data": source.summary(),
                    "model": name,
                    "protocol": protocol.summary(),
                    "seed": model.seed,
                    **measured,
                }
            )
        )
        return
    talk.out.print(source.lines(), markup=False, soft_wrap=True)
    talk.out.print(f"Protocol {protocol.words()}{lists.words()}.", markup=False, soft_wrap=True)
    if rule is None:
        show_measures(talk.out, name, scores, RATINGS)
    else:
        judged.show_one(talk.out, name)
