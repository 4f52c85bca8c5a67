"""``marginmf tune``: find the weight of the penalty that suits a file of ratings."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginmf.cli.options import DataOptions, MethodName, ModelOptions, TalkOptions, takes_groups

if TYPE_CHECKING:
    from marginmf.tuning import RegularisationPath

EXAMPLE = "marginmf tune ratings.csv --model hmf --picture path.png"


@takes_groups
def tune(
    *,
    name: MethodName = "hmf",
    holdouts: Annotated[
        int, typer.Option(min=1, help="Random hold-outs to judge on; more make a surer choice.")
    ] = 1,
    tries: Annotated[
        list[str] | None,
        typer.Option(
            "--try",
            metavar="NAME=VALUE,...",
            help="Values of a parameter, such as reg=5,10,20 or factors=20,50; again for more. "
            "All combinations make a few iterations, and the better ones go on.",
            show_default=False,
        ),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the path: a .png, .svg or .pdf file.")
    ] = None,
    model: ModelOptions,
    data: DataOptions,
    talk: TalkOptions,
) -> None:
    """Try weights of the penalty on held-out ratings and say which is the best.

    Candidates are tried from strong to weak, then around the best; HMF chooses one for each of
    its stages. The choice is where a smooth curve through the errors is lowest, which need not
    be at one of the candidates. The last line is the command that fits with what was chosen.
    With --try, several parameters are looked for at once, among the values that you give.
    """
    from marginmf.cli.data import checked_ratings
    from marginmf.cli.destination import PICTURES, check_destination
    from marginmf.cli.models import make_model
    from marginmf.cli.printing import to_json

    if picture is not None:
        check_destination(picture, "picture", "--picture", PICTURES)
        from marginmf.plots.style import require_matplotlib

        require_matplotlib()
    if tries:
        _tune_by_halving(tries, name, holdouts, picture, model, data, talk)
        return
    if model.reg not in (None, "auto"):
        raise ValueError("--reg is what tune looks for: leave it out.")
    estimator: Any = make_model(name, model, talk.progress)
    if "holdouts" not in estimator.get_params():
        raise ValueError(f"{name} has no weight to choose: tune is for the factorisers.")
    estimator.set_params(reg="auto", holdouts=holdouts)
    source, ratings = checked_ratings(data, talk.progress)
    estimator.fit(ratings)
    found = estimator.reg_path_
    paths: list[RegularisationPath] = found if isinstance(found, list) else [found]
    chosen = [path.best for path in paths]
    if picture is not None:
        from marginmf import plots
        from marginmf.cli.picture import save_figure
        from marginmf.plots.style import new_figure

        figure = new_figure(6.5, 4.5)
        title = f"{name} on {source.title}"
        plots.regularisation_path(estimator, figure.subplots(), title=title)
        save_figure(figure, picture)
    command = fit_command(data, model, name, chosen)
    if talk.as_json:
        typer.echo(
            to_json(
                {
                    "data": source.summary(),
                    "model": name,
                    "metric": paths[0].metric,
                    "paths": [
                        {
                            "regs": path.regs.tolist(),
                            "errors": path.mean.tolist(),
                            "chosen": path.best,
                        }
                        for path in paths
                    ],
                    "chosen": chosen,
                    "command": command,
                    "picture": None if picture is None else str(picture),
                }
            )
        )
        return
    talk.out.print(source.lines(), markup=False, soft_wrap=True)
    _show(talk, paths)
    if picture is not None:
        talk.out.print(f"The path is drawn in {picture}.", markup=False, soft_wrap=True)
    talk.out.print(f"Fit with the chosen: {command}", markup=False, soft_wrap=True)


def _tune_by_halving(
    tries: Sequence[str],
    name: str,
    holdouts: int,
    picture: Path | None,
    model: ModelOptions,
    data: DataOptions,
    talk: TalkOptions,
) -> None:
    from marginmf.cli.data import checked_ratings
    from marginmf.cli.halving import search_as_json, search_of, show_search, with_params
    from marginmf.cli.models import make_model, parse_reg
    from marginmf.cli.printing import to_json

    if picture is not None:
        raise ValueError("--picture draws the path of one weight: leave it out with --try.")
    estimator = make_model(name, model)
    search = search_of(estimator, name, tries, holdouts, talk)
    source, ratings = checked_ratings(data, talk.progress)
    search.fit(ratings)
    chosen = with_params(model, search.best_params_)
    regs = parse_reg(chosen.reg or str(search.estimator.reg))
    command = fit_command(data, chosen, name, regs if isinstance(regs, list) else [regs])
    if talk.as_json:
        found = {"data": source.summary(), "model": name, **search_as_json(search)}
        typer.echo(to_json({**found, "command": command}))
        return
    talk.out.print(source.lines(), markup=False, soft_wrap=True)
    show_search(talk, search)
    talk.out.print(f"Fit with the chosen: {command}", markup=False, soft_wrap=True)


def fit_command(data: DataOptions, model: ModelOptions, name: str, chosen: Sequence[float]) -> str:
    """Return the command that fits with the chosen weights and all that was said of the fit."""
    regs = ",".join(f"{reg:.4g}" for reg in chosen)
    words = ["marginmf", "fit", data.file, "--model", name, "--reg", regs]
    for what, column in data.columns.items():
        words += [f"--{what}", column]
    if data.duplicates != "raise":
        words += ["--duplicates", data.duplicates]
    for what, path in data.feature_files.items():
        words += [f"--{what}s", str(path)]
    words += ["--features"] if data.features else []
    for option, value in (("--factors", model.factors), ("--max-iter", model.max_iter)):
        words += [] if value is None else [option, str(value)]
    for setting in model.settings or ():
        words += ["--set", setting]
    words += ["--seed", str(model.seed)] if model.seed else []
    words += ["--threads", str(model.threads)] if model.threads else []
    return shlex.join([*words, "--out", f"{name}.marginmf"])


def _show(talk: TalkOptions, paths: "list[RegularisationPath]") -> None:
    """Print a row for each candidate, a column for each stage, and what was chosen."""
    import numpy as np
    from rich.text import Text

    from marginmf.cli.printing import new_table

    staged = len(paths) > 1
    headings = [f"stage {k + 1}" for k in range(len(paths))] if staged else [paths[0].metric]
    table = new_table("reg", *headings, numbers=1 + len(paths))
    mark = "" if talk.out.color_system else "*"
    for reg in np.unique(np.concatenate([path.regs for path in paths])):
        cells = []
        for path in paths:
            # Not every stage has tried every candidate.
            written = [f"{error:.4f}" for error in path.mean[path.regs == reg]]
            best = bool(reg == path.smallest)
            cells.append(Text(mark * best + "".join(written), "bold green" if best else ""))
        table.add_row(f"{reg:.4g}", *cells)
    table.add_section()
    table.add_row("chosen", *(Text(f"{path.best:.4g}", "bold") for path in paths))
    talk.out.print(table)
    if staged:
        talk.out.print(f"The errors are those of each stage: {paths[0].metric}.")
