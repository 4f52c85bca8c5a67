"""``marginmf compare`` and ``marginmf labels compare``: several methods on the same splits."""

from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from marginmf.cli.commands import command
from marginmf.cli.evaluation import FoldOptions, ListOptions, ProtocolOptions
from marginmf.cli.options import (
    LABEL_METHODS,
    METHODS,
    POSITIVE,
    ConsoleOptions,
    DataOptions,
    DecisionOptions,
    LabelDataOptions,
    LabelModelOptions,
    ModelOptions,
    TableOut,
)

if TYPE_CHECKING:
    from marginmf.protocols import Comparison

#: What is compared by default: by errors, and by lists.
RATED, LISTED = "hmf,pmmmf,mmmf,als", "hmf,mmmf,ease,itemknn,popular"


@command("marginmf compare ratings.csv --models mmmf,als,bias --out table.md")
def compare(
    *,
    names: Annotated[
        str | None,
        Option(
            "--models",
            metavar="NAME,NAME,...",
            help=f"Some of {', '.join(METHODS)}; with --lists, of {', '.join(POSITIVE)} too.  By "
            f"default {RATED}, or {LISTED}.",
            show_default=False,
        ),
    ] = None,
    out: TableOut = None,
    lists: ListOptions,
    protocol: ProtocolOptions,
    model: ModelOptions,
    data: DataOptions,
    console: ConsoleOptions,
) -> None:
    """Fit several methods to the same ratings and put their errors into one table.

    Every cell is a mean and, after ±, the standard deviation over the splits; the best of each
    column is marked, and p is that of the difference from the best. Seconds are those of a fit.
    With --lists, the lists that the methods recommend are judged: every cell is a mean over users
    and its 95 % interval.
    """
    from marginmf.cli.estimators import parse_model_names
    from marginmf.cli.evaluation import check_table, compare_ratings
    from marginmf.cli.output import refuse_same

    refuse_same(out, data.file, *data.feature_files.values())
    check_table(out)
    protocol = protocol.resolve(lists.lists)
    usual = RATED if not lists.lists else ",".join(POSITIVE) if lists.positive_only else LISTED
    chosen = parse_model_names(usual if names is None else names, "hmf,als")
    source, found = compare_ratings(chosen, lists, protocol, model, data, console)
    about = {"data": source.summary(), "protocol": protocol.summary(), "seed": model.seed}
    heading = f"{source.lines()}\nProtocol {protocol.describe()}{lists.describe()}."
    _report(found, about, heading, out, console)


@command("marginmf labels compare songs.csv --labels 2 --models plst,mlknn", name="compare")
def compare_labels(
    *,
    names: Annotated[
        str,
        Option("--models", metavar="NAME,NAME,...", help=f"Some of {', '.join(LABEL_METHODS)}."),
    ] = "grople,mlchmf,binary-relevance,ridge-embedding",
    out: TableOut = None,
    folds: FoldOptions,
    model: LabelModelOptions,
    decision: DecisionOptions,
    data: LabelDataOptions,
    console: ConsoleOptions,
) -> None:
    """Fit several methods to the same rows, under one decision rule, and compare them in a table.

    Every cell is a mean and, after ±, the standard deviation over the folds; the best of each
    column is marked, and p is that of the difference from the best. Seconds are those of a fit.
    """
    from marginmf.cli.estimators import parse_model_names
    from marginmf.cli.evaluation import check_table, compare_label_sets
    from marginmf.cli.inputs import describe_labels, summarise_labels
    from marginmf.cli.output import refuse_same

    check_table(out)
    refuse_same(out, data.file, data.xml)
    chosen = parse_model_names(names, "grople,mlknn")
    table, found = compare_label_sets(chosen, folds, model, decision, data, console)
    about = {
        "data": summarise_labels(table),
        "folds": folds.summary(),
        "decision": decision.parameters(),
        "seed": model.seed,
    }
    held_out = f"Held out: {folds.describe()}. Decision: {decision.describe()}."
    _report(found, about, f"{describe_labels(table)}\n{held_out}", out, console)


def _report(
    found: "Comparison", about: dict[str, Any], heading: str, out: Any, console: ConsoleOptions
) -> None:
    """Print a comparison, and write it to a file if one was named."""
    from marginmf.cli.evaluation import show_comparison, write_table

    measured = found.as_dict()
    tested = measured["tested"]
    tested["best"] = tested.pop("against")
    result = {**about, **measured, "out": None if out is None else str(out)}
    if out is not None:
        write_table(found, result, out)
    console.print_json(result)
    console.print(heading)
    show_comparison(console.out, found)
    if out is not None:
        console.print(f"The table is in {out}.")
