"""``marginmf evaluate`` and ``marginmf labels evaluate``: one method on held-out data."""

from dataclasses import asdict

from marginmf.cli import comparisons, options
from marginmf.cli.commands import command


@command("marginmf evaluate ratings.csv --model mmmf --protocol holdout")
def evaluate(
    *,
    name: options.MethodName = "hmf",
    lists: comparisons.ListOptions,
    protocol: comparisons.ProtocolOptions,
    model: options.ModelOptions,
    data: options.DataOptions,
    console: options.ConsoleOptions,
) -> None:
    """Fit a method to some of the ratings and measure its errors on the others.

    Prints the mean and the standard deviation of every error over the splits. Lower is better;
    the standard deviation is that of a sample. With --lists, the lists that the method recommends
    are judged: do they have the held-out items that users like?
    """
    protocol = protocol.resolve(lists.lists)
    source, found = comparisons.compare_ratings([name], lists, protocol, model, data, console)
    result = {
        "data": source.summary(),
        "model": name,
        "protocol": protocol.summary(),
        "seed": model.seed,
        "metrics": found.summary(name),
    }
    if found.rule is not None:
        result |= {"lists": asdict(found.rule), "n_users": len(found.user_values(name))}
    console.print_json(result)
    console.print(source.lines())
    console.print(f"Protocol {protocol.describe()}{lists.describe()}.")
    comparisons.show_method(console.out, found, name)


@command("marginmf labels evaluate songs.csv --labels 2 --model plst --cv 3", name="evaluate")
def evaluate_labels(
    *,
    name: options.LabelMethodName = "grople",
    folds: comparisons.FoldOptions,
    model: options.LabelModelOptions,
    decision: options.DecisionOptions,
    data: options.LabelDataOptions,
    console: options.ConsoleOptions,
) -> None:
    """Fit a method to some of the rows and measure the labels it predicts for the others.

    Prints the mean and the standard deviation of every metric over the folds. Lower is better for
    Hamming loss and coverage, higher for all others; accuracy is the mean Jaccard index.
    """
    from marginmf.cli import inputs

    table, found = comparisons.compare_label_sets([name], folds, model, decision, data, console)
    console.print_json(
        {
            "data": inputs.summarise_labels(table),
            "model": name,
            "folds": folds.summary(),
            "decision": decision.parameters(),
            "seed": model.seed,
            "metrics": found.summary(name),
        }
    )
    console.print(inputs.describe_labels(table))
    console.print(f"Held out: {folds.describe()}. Decision: {decision.describe()}.")
    comparisons.show_method(console.out, found, name)
