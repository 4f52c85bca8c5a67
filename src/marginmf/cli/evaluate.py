"""``marginmf evaluate`` and ``compare``, also for labels: methods on held-out data."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from marginmf.cli import comparisons, options
from marginmf.cli.commands import command

if TYPE_CHECKING:
    from marginmf.protocols import Comparison

#: What is compared by default: by errors, by lists, and by label sets.
RATED, LISTED = "hmf,pmmmf,mmmf,als", "hmf,mmmf,ease,itemknn,popular"
LABELLED = "ensemble,kernel,ridge-embedding,grople,mlchmf"


@command("marginmf evaluate ratings.csv --model mmmf --protocol holdout")
def evaluate(
    *,
    name: options.MethodName = "hmf",
    answer: options.Answer = "median",
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
    outcome = comparisons.compare_ratings([name], lists, protocol, model, data, console, answer)
    _report_method(name, *outcome, console)


@command("marginmf labels evaluate songs.csv --labels 2 --model plst --cv 3", name="evaluate")
def evaluate_labels(
    *,
    name: options.LabelMethodName = "ensemble",
    folds: comparisons.FoldOptions,
    model: options.LabelModelOptions,
    decision: options.DecisionOptions,
    data: options.LabelDataOptions,
    console: options.ConsoleOptions,
) -> None:
    """Fit a method to some of the rows and measure the labels it predicts for the others.

    Prints the mean and the standard deviation of every metric over the folds. Lower is better for
    Hamming loss, coverage, log loss and calibration error, higher for all others; accuracy is the
    mean Jaccard index. The last two judge probabilities, and so are left out with --decision sign.
    """
    outcome = comparisons.compare_label_sets([name], folds, model, decision, data, console)
    _report_method(name, *outcome, console)


@command("marginmf compare ratings.csv --models mmmf,als,bias --out table.md")
def compare(
    *,
    names: Annotated[
        str | None,
        Option(
            "--models",
            metavar="NAME,...",
            help=f"Some of {', '.join(options.METHODS)}; with --lists, of "
            f"{', '.join(options.POSITIVE)} too; or all, less those that cannot learn from such "
            f"data.  By default {RATED}, or {LISTED}.",
            autocompletion=options.complete("all", *options.METHODS, *options.POSITIVE),
        ),
    ] = None,
    answer: options.Answer = "median",
    out: options.TableOut = None,
    lists: comparisons.ListOptions,
    protocol: comparisons.ProtocolOptions,
    model: options.ModelOptions,
    data: options.DataOptions,
    console: options.ConsoleOptions,
) -> None:
    """Fit several methods to the same ratings and put their errors into one table.

    Every cell is a mean and, after ±, the standard deviation over the splits; the best of each
    column is marked, and p is that of the difference from the best. Seconds are those of a fit.
    With --lists, the lists that the methods recommend are judged: every cell is a mean over users
    and its 95 % interval.
    """
    comparisons.check_table(out, data.file, *data.feature_files.values())
    usual = LISTED if lists.lists else RATED
    usual = ",".join(options.POSITIVE) if lists.positive_only else usual
    known = [*(() if lists.positive_only else options.METHODS)]
    known += options.POSITIVE if lists.lists else ()
    chosen, every = comparisons.choose_models(usual if names is None else names, known, "hmf,als")
    outcome = comparisons.compare_ratings(
        chosen, lists, protocol, model, data, console, answer, skip_unsuitable=every
    )
    _report_comparison(out, *outcome, console)


@command("marginmf labels compare songs.csv --labels 2 --models plst,mlknn", name="compare")
def compare_labels(
    *,
    names: Annotated[
        str,
        Option(
            "--models",
            metavar="NAME,...",
            help=f"Some of {', '.join(options.LABEL_METHODS)}; or all, less those that cannot "
            "learn from such data.",
            autocompletion=options.complete("all", *options.LABEL_METHODS),
        ),
    ] = LABELLED,
    out: options.TableOut = None,
    folds: comparisons.FoldOptions,
    model: options.LabelModelOptions,
    decision: options.DecisionOptions,
    data: options.LabelDataOptions,
    console: options.ConsoleOptions,
) -> None:
    """Fit several methods to the same rows, with one --decision, and compare them in a table.

    Every cell is a mean and, after ±, the standard deviation over the folds; the best of each
    column is marked, and p is that of the difference from the best. Seconds are those of a fit.
    """
    comparisons.check_table(out, data.file, data.xml)
    chosen, every = comparisons.choose_models(names, options.LABEL_METHODS, "grople,mlknn")
    outcome = comparisons.compare_label_sets(chosen, folds, model, decision, data, console, every)
    _report_comparison(out, *outcome, console)


def _report_method(
    name: str,
    found: "Comparison",
    about: dict[str, Any],
    heading: list[str],
    console: options.ConsoleOptions,
) -> None:
    """Print the metrics of one method."""
    result = {**about, "model": name, "metrics": found.summary(name)}
    if found.rule is not None:
        result |= {"lists": asdict(found.rule), "n_users": len(found.user_values(name))}
    console.print_json(result)
    console.print(*heading)
    comparisons.show_method(console.out, found, name)


def _report_comparison(
    out: Path | None,
    found: "Comparison",
    about: dict[str, Any],
    heading: list[str],
    console: options.ConsoleOptions,
) -> None:
    """Print a comparison, and write it to a file if one was named."""
    measured = found.as_dict()
    tested = measured["tested"]
    tested["best"] = tested.pop("against")
    measured.pop("output", None)  # it is the answer, in the words of the command line
    result = {**about, **measured, "out": None if out is None else str(out)}
    if out is not None:
        comparisons.write_table(found, result, out)
    console.print_json(result)
    console.print(*heading)
    comparisons.show_comparison(console.out, found)
    if out is not None:
        console.print(f"The table is in {out}.")
