"""``marginmf tune``: find the regularisation strength, or other parameters, for some ratings."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from marginmf.cli.commands import as_arguments, command
from marginmf.cli.options import PARAMETERS, ConsoleOptions, DataOptions, MethodName, ModelOptions

if TYPE_CHECKING:
    from marginmf.ratings import HalvingSearch
    from marginmf.tuning import RegularisationPath


@command("marginmf tune ratings.csv --model hmf --picture path.png")
def tune(
    *,
    name: MethodName = "hmf",
    holdouts: Annotated[
        int, Option(min=1, help="Number of random hold-outs; more make a surer choice.")
    ] = 1,
    tries: Annotated[
        list[str] | None,
        Option(
            "--try",
            metavar="NAME=VALUE,...",
            help="Values of a parameter, such as reg=5,10,20 or factors=20,50; may be repeated. "
            "All combinations make a few iterations, and the better ones go on.",
        ),
    ] = None,
    picture: Annotated[
        Path | None, Option(help="Draw the path: a .png, .svg or .pdf file.")
    ] = None,
    model: ModelOptions,
    data: DataOptions,
    console: ConsoleOptions,
) -> None:
    """Try regularisation strengths on held-out ratings and report which is the best.

    Candidates are tried from strong to weak, then around the best; HMF chooses one for each of
    its stages. The choice is where a smooth curve through the errors is lowest, which need not
    be at one of the candidates. The last line is the command that fits with what was chosen.
    With --try, several parameters are tuned at once, among the values that you give.
    """
    from marginmf.cli.output import check_picture

    check_picture(picture)
    if tries and picture is not None:
        raise ValueError("--picture draws the path of one parameter: leave it out with --try.")
    if tries:
        found, then = _tune_by_halving(tries, name, holdouts, model, data, console)
    else:
        found, then = _tune_reg(picture, name, holdouts, model, data, console)
    console.print_json({**found, "model": name, "command": then})
    console.print(f"Fit with the chosen: {then}")


def _tune_reg(
    picture: Path | None,
    name: str,
    holdouts: int,
    model: ModelOptions,
    data: DataOptions,
    console: ConsoleOptions,
) -> tuple[dict[str, Any], str]:
    """Show the path of the regularisation; return what was found, and the command that fits."""
    from marginmf import plots
    from marginmf.cli import estimators, inputs, output

    if model.reg not in (None, "auto"):
        raise ValueError("--reg is what tune looks for: leave it out.")
    estimator = estimators.make_model(name, model, console.progress)
    if "holdouts" not in estimator.get_params():
        raise ValueError(
            f"{name} does not choose its regularisation strength: tune is for the factorisers."
        )
    estimator.set_params(reg="auto", holdouts=holdouts)
    source, ratings = inputs.read_ratings_checked(data, console.progress)
    estimator.fit(ratings)
    path = estimator.reg_path_
    paths: list[RegularisationPath] = path if isinstance(path, list) else [path]
    chosen = [path.best for path in paths]
    if picture is not None:
        axes = plots.regularisation_path(estimator, title=f"{name} on {source.title}")
        output.save_figure(axes.get_figure(), picture)
    found = {
        "data": source.summary(),
        "metric": paths[0].metric,
        "paths": [
            {"regs": path.regs.tolist(), "errors": path.mean.tolist(), "chosen": path.best}
            for path in paths
        ],
        "chosen": chosen,
        "picture": None if picture is None else str(picture),
    }
    console.print(source.lines())
    _show_paths(console, paths)
    if picture is not None:
        console.print(f"The path is drawn in {picture}.")
    return found, fit_command(data, model, name, chosen)


def _tune_by_halving(
    tries: Sequence[str],
    name: str,
    holdouts: int,
    model: ModelOptions,
    data: DataOptions,
    console: ConsoleOptions,
) -> tuple[dict[str, Any], str]:
    """Show how combinations of parameters did; return what was found, and the command that fits."""
    from marginmf.cli import estimators, inputs
    from marginmf.ratings import HalvingSearch

    grid, estimator = parse_tries(tries), estimators.make_model(name, model)
    parameters = estimator.get_params(deep=False)
    for parameter in grid:
        if parameter not in parameters:
            known = ", ".join(estimators.parameters_of([estimator]))
            raise ValueError(f"--try: {name} has no parameter {parameter!r}; there are {known}.")
    search = HalvingSearch(
        estimator,
        grid,
        holdouts=holdouts,
        refit=False,
        random_state=parameters.get("random_state"),
        verbose=int(console.progress),
    )
    source, ratings = inputs.read_ratings_checked(data, console.progress)
    search.fit(ratings)
    chosen = _with_params(model, search.best_params_)
    regs = estimators.parse_reg(chosen.reg or str(search.estimator.reg))
    found = {
        "data": source.summary(),
        "metric": "mean absolute error",
        "candidates": [outcome._asdict() for outcome in search.results_],
        "rungs": [rung._asdict() for rung in search.rungs_],
        "chosen": search.best_params_,
    }
    console.print(source.lines())
    _show_search(console, search)
    return found, fit_command(data, chosen, name, regs if isinstance(regs, list) else [regs])


def parse_tries(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Read ``name=value,value``; values are JSON, or else text.

    >>> parse_tries(["reg=5,10", "loss=logistic,hinge", "factors=20"])
    {'reg': [5, 10], 'loss': ['logistic', 'hinge'], 'n_factors': [20]}
    """
    grid: dict[str, list[Any]] = {}
    for text in texts:
        name, _, written = (part.strip() for part in text.partition("="))
        if not name or not written:
            raise ValueError(f"--try {text}: write it as name=value,value, such as reg=5,10,20.")
        name = PARAMETERS.get(name.replace("-", "_"), name)
        if name in grid:
            raise ValueError(f"--try {name} is given twice: put all its values into one.")
        try:
            grid[name] = json.loads(f"[{written}]")
        except ValueError:
            grid[name] = [value.strip() for value in written.split(",")]
    return grid


def fit_command(data: DataOptions, model: ModelOptions, name: str, chosen: Sequence[float]) -> str:
    """Return the command that fits with the chosen strengths and all other options."""
    regs = ",".join(f"{reg:.4g}" for reg in chosen)
    words = ["marginmf", "fit", data.file, "--model", name, "--reg", regs]
    rest = [*as_arguments(data), *as_arguments(replace(model, reg=None))]
    return shlex.join([*words, *rest, "--out", f"{name}.marginmf"])


def _with_params(model: ModelOptions, params: Mapping[str, Any]) -> ModelOptions:
    """Return the options that set these parameters on top of others."""
    options = {option: params[name] for option, name in PARAMETERS.items() if name in params}
    rest = (name for name in params if name not in PARAMETERS.values())
    settings = [f"{name}={_format_value(params[name])}" for name in rest]
    if "reg" in options:
        regs = options["reg"] if isinstance(options["reg"], list) else [options["reg"]]
        options["reg"] = ",".join(f"{reg:.4g}" for reg in regs)
    return replace(model, **options, settings=[*(model.settings or ()), *settings])


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _show_paths(console: ConsoleOptions, paths: "list[RegularisationPath]") -> None:
    """Print a row for each candidate, a column for each stage, and what was chosen."""
    import numpy as np
    from rich.text import Text

    from marginmf.cli.output import mark_best, new_table

    staged = len(paths) > 1
    headings = [f"stage {k + 1}" for k in range(len(paths))] if staged else [paths[0].metric]
    table, out = new_table("reg", *headings, numbers=1 + len(paths)), console.out
    for reg in np.unique(np.concatenate([path.regs for path in paths])):
        cells = []
        for path in paths:
            # Not every stage has tried every candidate.
            written = "".join(f"{error:.4f}" for error in path.mean[path.regs == reg])
            cells.append(mark_best(out, written, bool(reg == path.smallest)))
        table.add_row(f"{reg:.4g}", *cells)
    table.add_section()
    table.add_row("chosen", *(Text(f"{path.best:.4g}", "bold") for path in paths))
    out.print(table)
    if staged:
        console.print(f"The errors are those of each stage: {paths[0].metric}.")


def _show_search(console: ConsoleOptions, search: "HalvingSearch") -> None:
    """Print a row for each candidate, the best first."""
    from marginmf.cli.output import new_table

    names = list(search.best_params_)
    table = new_table(*names, "iterations", "MAE", numbers=len(names) + 2)
    for outcome in search.results_:
        values = [_format_value(outcome.params[name]) for name in names]
        table.add_row(*values, str(outcome.n_iter), f"{outcome.error:.4f}")
    console.out.print(table)
    console.print(f"{len(search.results_)} candidates took {search.n_evaluations_} gradients.")
