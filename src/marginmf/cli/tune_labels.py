"""``marginmf labels tune``: which parameters of a label method predict held-out rows best."""

import shlex
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from marginmf.cli import options
from marginmf.cli.commands import as_arguments, command
from marginmf.cli.fit import format_value, parse_tries

if TYPE_CHECKING:
    from marginmf.datasets import LabelsTable


@command("marginmf labels tune songs.csv --labels 2 -m plst --try reg=0.1,1", name="tune")
def tune_labels(
    *,
    name: options.LabelMethodName = "grople",
    tries: Annotated[
        list[str] | None,
        Option(
            "--try",
            metavar="NAME=VALUE,...",
            help="Values of a parameter, such as reg=0.1,1,10; may be repeated. All combinations "
            "are tried.",
        ),
    ] = None,
    cv: Annotated[int, Option(min=2, help="Number of folds, each held out once.")] = 3,
    model: options.LabelModelOptions,
    decision: options.DecisionOptions,
    data: options.LabelDataOptions,
    console: options.ConsoleOptions,
) -> None:
    """Try parameters of a method on held-out rows and report which are the best.

    Each candidate predicts the rows of every fold from those of the others, with the threshold
    or the rule that suits it best, and is judged by the measure of --tune-for. The last line is
    the command that fits with what was chosen.
    """
    from sklearn.model_selection import ParameterGrid

    from marginmf.cli import estimators, inputs
    from marginmf.progress import show_bar

    # The sign looks at no thresholds, and those of single labels have no value together: such
    # candidates are compared by their best common threshold.
    fixed = decision.decision in ("sign", "per-label")
    common = replace(decision, decision="global") if fixed else decision
    estimator = estimators.make_label_models([name], model, common)[name]
    known = [key for key in estimators.parameters_of([estimator]) if key not in FIXED]
    grid = parse_tries(tries or [])
    for parameter in grid or [None]:
        if parameter not in known:
            wrong = "name what to try" if parameter is None else f"{name} has no {parameter!r}"
            raise ValueError(f"--try: {wrong}; the parameters of {name} are {', '.join(known)}.")
    table = inputs.read_label_table(data, console.progress)
    inputs.check_folds(table, cv)
    rule = {**common.parameters(), "cv": cv}
    outer = estimators.scale_features({name: estimator}, model, table)[name]
    candidates, values = list(ParameterGrid(grid)), []
    started = time.perf_counter()
    with show_bar(f"Trying {name}", len(candidates), visible=console.progress) as update:
        for number, params in enumerate(candidates):
            update(f"{name} {_in_words(params)}", done=number)
            values.append(_evaluate(outer, params, rule, table))
    seconds = time.perf_counter() - started
    order = sorted(range(len(candidates)), key=lambda k: -values[k])
    best = candidates[order[0]]
    measured = [{"params": candidates[k], "value": _measure(values[k], rule, table)} for k in order]
    settings = [*(model.settings or ()), *(f"{key}={format_value(best[key])}" for key in grid)]
    then = fit_labels_command(data, replace(model, settings=settings), decision, name)
    console.print(inputs.describe_labels(table))
    _show(measured, list(grid), decision.tune_for, console)
    console.print_json(
        {
            "data": inputs.summarise_labels(table),
            "model": name,
            "metric": decision.tune_for,
            "folds": cv,
            "candidates": measured,
            "chosen": best,
            "seconds": seconds,
            "command": then,
        }
    )
    console.print(f"{len(candidates)} candidates on {cv} folds took {seconds:.1f} seconds.")
    console.print(f"Fit with the chosen: {then}", most=None)


#: Parameters that are not tried: options set them, and they decide rather than learn.
FIXED = {"decision", "tune_for", "top1_if_empty", "cv", "calibrate", "n_jobs", "random_state"}


def fit_labels_command(
    data: options.LabelDataOptions,
    model: options.LabelModelOptions,
    decision: options.DecisionOptions,
    name: str,
) -> str:
    """Return the command that fits with these options."""
    words = ["marginmf", "labels", "fit", data.file, "--model", name]
    for group in (data, model, decision):
        words += as_arguments(group)
    return shlex.join([*words, "--out", f"{name}.marginmf"])


def _evaluate(
    estimator: Any, params: Mapping[str, Any], rule: Mapping[str, Any], table: "LabelsTable"
) -> float:
    """Return what a candidate reaches on held-out rows, one candidate at a time.

    That takes a fit to all rows more than a search over all of them, and shows how far it is.
    """
    from marginmf.labels import DecisionTuned, Scaled

    prefix = "estimator__" if isinstance(estimator, Scaled) else ""
    grid = {f"{prefix}{key}": [value] for key, value in params.items()}
    (value,) = DecisionTuned(estimator, grid, **rule).fit(table.X, table.Y).cv_values_
    return float(value)


def _measure(value: float, rule: Mapping[str, Any], table: "LabelsTable") -> float:
    """Return a value as the metric has it: wrong labels become the share that is wrong."""
    if rule["tune_for"] == "hamming":
        return -value / (table.n_samples * table.n_labels)
    return value


def _show(
    measured: list[dict[str, Any]], names: list[str], metric: str, console: options.ConsoleOptions
) -> None:
    """Print a row for each candidate, the best first."""
    from marginmf.cli.output import new_table
    from marginmf.cli.terminal import mark_best

    table = new_table(*names, metric, numbers=len(names) + 1)
    for one in measured:
        value = mark_best(console.out, f"{one['value']:.4f}", one is measured[0])
        table.add_row(*(format_value(one["params"][name]) for name in names), value)
    console.out.print(table)


def _in_words(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {format_value(value)}" for key, value in params.items())
