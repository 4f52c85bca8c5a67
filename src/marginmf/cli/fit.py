"""``marginmf fit``, ``labels fit`` and ``tune``: learn from a file, and with which parameters."""

import json
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from marginmf._utils.printable import LONGEST_QUOTE, printable
from marginmf.cli import options
from marginmf.cli.commands import as_arguments, command

if TYPE_CHECKING:
    from marginmf.ratings import HalvingSearch
    from marginmf.tuning import RegularisationPath


@command("marginmf fit ratings.csv --model hmf --reg 2 --out m.marginmf")
def fit(
    *,
    name: Annotated[
        str | None,
        Option(
            "--model",
            "-m",
            metavar="NAME",
            help=f"The method: {', '.join(options.METHODS)}; for who has what: "
            f"{', '.join(options.POSITIVE)}.  By default hmf, or ease.",
            autocompletion=options.complete(*options.METHODS, *options.POSITIVE),
        ),
    ] = None,
    positive_only: Annotated[
        bool,
        Option(
            "--positive-only",
            help="Learn from who has what: rows need no ratings, and --set level=4 says which of "
            "them count where there are any.",
        ),
    ] = False,
    out: options.ModelOut,
    force: options.Force = False,
    checkpoint: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="Save progress here; the same command then continues."),
    ] = None,
    calibrate: Annotated[
        bool,
        Option("--calibrate/--no-calibrate", help="Calibrate probabilities now, not when needed."),
    ] = True,
    lists: Annotated[
        bool,
        Option("--lists/--no-lists", help="Learn who takes what now, not when lists need it."),
    ] = True,
    model: options.ModelOptions,
    data: options.DataOptions,
    console: options.ConsoleOptions,
) -> None:
    """Fit a method to all the ratings of a file and save the model.

    Ids are kept as they are; the scale is whatever levels occur. With --positive-only, or a
    method for it, only who has what matters.
    """
    from marginmf.cli import estimators, inputs, output

    output.refuse_same(out, data.file, *data.feature_files.values())
    output.check_destination(out, "model", overwrite=force)
    kinds = {"lists": True, "positive_only": positive_only}
    estimator = estimators.make_model(name, model, console.progress, **kinds)
    if "calibrate" in estimator.get_params(deep=False):
        estimator.set_params(calibrate=calibrate)
    from_pairs = estimators.learns_from_pairs(estimator)
    if from_pairs:
        if checkpoint is not None:
            raise ValueError(
                f"{type(estimator).__name__} keeps no checkpoints: leave --checkpoint out."
            )
        source, ratings = inputs.read_pairs_checked(data, estimator.level, console.progress)
    else:
        numbers = estimators.learns_from_numbers(estimator)
        source, ratings = inputs.read_ratings_checked(data, console.progress, numbers=numbers)
    started = time.perf_counter()
    try:
        estimator.fit(ratings, **options.given(checkpoint=checkpoint))
        if lists and not from_pairs:
            estimator.fit_exposure()
    except KeyboardInterrupt:
        if checkpoint is not None:
            console.note(f"Progress is saved in {checkpoint}; the same command continues.", None)
        raise
    seconds = time.perf_counter() - started
    if hasattr(estimator, "verbose"):
        estimator.set_params(verbose=0)  # whoever loads the model did not ask for progress bars
    console.print(*source.lines())
    _save(estimator, out, source.summary(), *_describe(estimator), seconds, console)


@command("marginmf labels fit songs.csv --labels 'tag_*' --out l.marginmf", name="fit")
def fit_labels(
    *,
    name: options.LabelMethodName = "ensemble",
    out: options.ModelOut,
    force: options.Force = False,
    model: options.LabelModelOptions,
    decision: options.DecisionOptions,
    data: options.LabelDataOptions,
    console: options.ConsoleOptions,
) -> None:
    """Fit a method to all the rows of a file and save the model.

    The names of labels and features, the decision rule and the scale of the features are saved
    with the model.
    """
    from marginmf.cli import estimators, inputs, output
    from marginmf.progress import show_bar

    output.refuse_same(out, data.file, data.xml)
    output.check_destination(out, "model", overwrite=force)
    models = estimators.make_label_models([name], model, decision)
    table = inputs.read_label_table(data, console.progress)
    estimator = estimators.scale_features(models, model, table)[name]
    started = time.perf_counter()
    with show_bar(f"Fitting {name}", visible=console.progress):
        estimator.fit(table.X, table.Y)
    seconds = time.perf_counter() - started
    estimators.set_names(estimator, table)
    console.print(inputs.describe_labels(table))
    described = _describe_labels(name, estimator)
    _save(estimator, out, inputs.summarise_labels(table), *described, seconds, console)


def _save(
    estimator: Any,
    out: Path,
    data: dict[str, Any],
    summary: dict[str, Any],
    clauses: list[str],
    seconds: float,
    console: options.ConsoleOptions,
) -> None:
    """Save a fitted model, and report what it is and where."""
    from marginmf.cli.output import save_model

    saved, sentence = save_model(estimator, out)
    console.print_json({"data": data, "model": summary, "seconds": seconds, **saved})
    console.print(f"{summary['class']}: {'; '.join([*clauses, f'seconds {seconds:.2f}'])}.")
    console.print(sentence)


def _describe(model: Any) -> tuple[dict[str, Any], list[str]]:
    """Return what was fitted, for programs and in clauses for people."""
    import numpy as np

    summary: dict[str, Any] = {"name": model.command_name, "class": type(model).__name__}
    clauses = []
    if hasattr(model, "n_factors"):
        summary["n_factors"] = model.n_factors
        clauses += [f"{model.n_factors} factors"] if isinstance(model.n_factors, int) else []
    if hasattr(model, "max_factors"):
        summary |= {
            "n_factors": model.item_factors_.shape[-1],
            "limit_reached": float(model.limit_reached_.mean()),
        }
        clauses.append(f"{summary['n_factors']} factors, of at most {model.max_factors}")
        if summary["limit_reached"]:
            clauses[-1] += f" (reached in {summary['limit_reached']:.0%} of the samples)"
    if hasattr(model, "members_"):
        summary["n_members"] = sum(map(len, model.members_))
        clauses.append(f"{summary['n_members']} members")
    if hasattr(model, "reg"):
        chosen = isinstance(model.reg, str)
        regs = np.asarray(getattr(model, "reg_", model.reg), float)
        summary |= {"reg": regs.tolist(), "reg_was_chosen": chosen}
        listed = ", ".join(f"{reg:.4g}" for reg in regs.ravel())
        clauses.append(f"reg {listed}{' (chosen on held-out ratings)' * chosen}")
    for name, value in model.get_params(deep=False).items():
        found = getattr(model, f"{name}_", None)
        if (
            name != "reg"
            and isinstance(value, str)
            and value == "auto"
            and isinstance(found, float)
        ):
            summary |= {name: found, f"{name}_was_chosen": True}
            clauses.append(f"{name} {found:.4g} (chosen)")
    if hasattr(model, "n_iter_"):
        summary |= {"n_iter": np.asarray(model.n_iter_).tolist(), "stop_reason": model.stop_reason_}
        word = "sweeps" if hasattr(model, "n_burn") else "iterations"
        clauses.append(f"{word} {np.sum(model.n_iter_)}")
    return summary, clauses


def _describe_labels(name: str, model: Any) -> tuple[dict[str, Any], list[str]]:
    """Return what was fitted and how it decides, for programs and in clauses for people."""
    scaled = type(model).__name__ == "Scaled"
    inside = model.estimator_ if scaled else model
    counts, expected = model._learned_from(), model.decision_ in options.EXPECTED
    low, high = counts.lowest_threshold, counts.highest_threshold
    chosen, words = _describe_choices(inside)
    clauses = [*(["features between 0 and 1"] if scaled else []), *words]
    if low is not None:
        rule = model.decision_, inside.tune_for, (low, high), model.shift_
        clauses.append(f"decision {options.describe_rule(*rule, top1=model.top1_if_empty_)}")
    summary = {
        "name": name,
        "class": type(inside).__name__,
        "scaled": scaled,
        **chosen,
        "decision": model.decision_,
        "decision_was_chosen": inside.decision == "auto",
        "tune_for": inside.tune_for,
        "top1_if_empty": model.top1_if_empty_,
        "shift": model.shift_ if expected else None,
        "lowest_threshold": None if expected else low,
        "highest_threshold": None if expected else high,
        "n_never_predicted": int((model.thresholds_ == float("inf")).sum()),
    }
    return summary, clauses


def _describe_choices(model: Any) -> tuple[dict[str, Any], list[str]]:
    """Return what a label method chose on held-out rows, for programs and in clauses."""
    if hasattr(model, "members_"):
        members = [
            {"name": name, "class": type(member).__name__, **_describe_choices(member)[0]}
            for name, member in zip(_member_names(model), model.members_, strict=True)
        ]
        return {"members": members}, [f"members {', '.join(map(_describe_member, members))}"]
    chosen: dict[str, Any] = dict(getattr(model, "kernel_", {}))
    if hasattr(model, "reg_"):
        chosen["reg"] = model.reg_
    return chosen, [f"{key} {_format_choice(value)}" for key, value in chosen.items()]


def _member_names(model: Any) -> list[str]:
    """Return what the members of an ensemble were called, or are called by default."""
    if isinstance(model.members, str):
        from marginmf.labels.ensemble import DEFAULT

        return list(DEFAULT[: len(model.members_)])
    return [one if isinstance(one, str) else one.command_name for one in model.members]


def _describe_member(member: Mapping[str, Any]) -> str:
    chosen = [
        f"{key} {_format_choice(value)}"
        for key, value in member.items()
        if key not in ("name", "class")
    ]
    return f"{member['name']} ({', '.join(chosen)})" if chosen else str(member["name"])


def _format_choice(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@command("marginmf tune ratings.csv --model hmf --picture path.png")
def tune(
    *,
    name: options.TunableName = "hmf",
    holdouts: Annotated[int, Option(min=1, help="Random hold-outs; more make a surer choice.")] = 1,
    tries: Annotated[
        list[str] | None,
        Option(
            "--try",
            metavar="NAME=VALUE,...",
            help="Values of a parameter, such as reg=5,10,20 or factors=20,50; may be repeated. "
            "All combinations make a few iterations, and the better ones go on.",
        ),
    ] = None,
    picture: Annotated[Path | None, Option(help="Draw the path: .png, .svg or .pdf.")] = None,
    model: options.ModelOptions,
    data: options.DataOptions,
    console: options.ConsoleOptions,
) -> None:
    """Try regularisation strengths on held-out ratings and report which is the best.

    Candidates are tried from strong to weak, then around the best; HMF chooses one for each of
    its stages. The choice is where a smooth curve through the errors is lowest, which need not
    be at one of the candidates. The last line is the command that fits with what was chosen.
    With --try, several parameters are tuned at once, among the values that you give.
    """
    from marginmf import plots
    from marginmf.cli import estimators, inputs, output
    from marginmf.ratings.factoriser import Factoriser

    output.check_picture(picture)
    if tries and picture is not None:
        raise ValueError("--picture draws the path of one parameter: leave it out with --try.")
    if not tries and model.reg not in (None, "auto"):
        raise ValueError("--reg is what tune looks for: leave it out.")
    tuned = estimators.make_model(name, model, console.progress and not tries)
    if not isinstance(tuned, Factoriser):
        raise ValueError(
            f"--model {name}: tune is for {', '.join(options.TUNABLE)}. Compare settings of {name} "
            f"with marginmf evaluate --model {name} --set NAME=VALUE, or with "
            "scikit-learn's GridSearchCV in Python."
        )
    if tries:
        tuned = _make_search(tuned, name, tries, holdouts, console.progress)
    else:
        tuned.set_params(reg="auto", holdouts=holdouts)
    source, ratings = inputs.read_ratings_checked(data, console.progress)
    tuned.fit(ratings)
    console.print(*source.lines())
    if tries:
        found, model = _report_search(tuned, model, console)
    else:
        found, regs = _report_paths(tuned, console)
        model = replace(model, reg=",".join(f"{reg:.4g}" for reg in regs))
    if picture is not None:
        # What stands between two dollars would be a formula.
        title = printable(f"{name} on {source.title}", LONGEST_QUOTE).replace("$", r"\$")
        axes = plots.regularisation_path(tuned, title=title)
        output.save_figure(axes.get_figure(), picture)
        console.print(f"The path is drawn in {picture}.")
    then = fit_command(data, model, name)
    drawn = None if picture is None else str(picture)
    result = {"data": source.summary(), "model": name, **found, "picture": drawn}
    console.print_json({**result, "command": then})
    console.print(f"Fit with the chosen: {then}", most=None)


def _make_search(
    estimator: Any, name: str, tries: Sequence[str], holdouts: int, progress: bool
) -> "HalvingSearch":
    from marginmf.cli.estimators import parameters_of
    from marginmf.ratings import HalvingSearch

    grid, parameters = parse_tries(tries), estimator.get_params(deep=False)
    for parameter in grid:
        if parameter not in parameters:
            known = ", ".join(parameters_of([estimator]))
            raise ValueError(f"--try: {name} has no parameter {parameter!r}; there are {known}.")
    seed, verbose = parameters.get("random_state"), int(progress)
    return HalvingSearch(
        estimator, grid, holdouts=holdouts, refit=False, random_state=seed, verbose=verbose
    )


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
        name = options.PARAMETERS.get(name.replace("-", "_"), name)
        if name in grid:
            raise ValueError(f"--try {name} is given twice: put all its values into one.")
        try:
            grid[name] = json.loads(f"[{written}]")
        except ValueError:
            grid[name] = [value.strip() for value in written.split(",")]
    return grid


def fit_command(data: options.DataOptions, model: options.ModelOptions, name: str) -> str:
    """Return the command that fits with these options."""
    strength = as_arguments(options.ModelOptions(reg=model.reg))
    rest = [*as_arguments(data), *as_arguments(replace(model, reg=None))]
    words = ["marginmf", "fit", data.file, "--model", name, *strength, *rest]
    return shlex.join([*words, "--out", f"{name}.marginmf"])


def _with_params(model: options.ModelOptions, params: Mapping[str, Any]) -> options.ModelOptions:
    """Return the options that set these parameters on top of others."""
    known = options.PARAMETERS.items()
    own = {option: params[name] for option, name in known if name in params}
    rest = (name for name in params if name not in options.PARAMETERS.values())
    settings = [f"{name}={format_value(params[name])}" for name in rest]
    if "reg" in own:
        regs = own["reg"] if isinstance(own["reg"], list) else [own["reg"]]
        own["reg"] = ",".join(map(str, regs))
    return replace(model, **own, settings=[*(model.settings or ()), *settings])


def format_value(value: Any) -> str:
    """Return a value as --set takes it."""
    return value if isinstance(value, str) else json.dumps(value)


def _report_paths(
    tuned: Any, console: options.ConsoleOptions
) -> tuple[dict[str, Any], list[float]]:
    """Print a row for each candidate, or for each stage; return all of it, and the choice."""
    from marginmf.cli.output import new_table
    from marginmf.cli.terminal import mark_best, styled

    path, out = tuned.reg_path_, console.out
    paths: list[RegularisationPath] = path if isinstance(path, list) else [path]
    metric, chosen = paths[0].metric, [path.best for path in paths]
    if len(paths) == 1:
        table = new_table("reg", metric, numbers=2)
        for reg, error in zip(path.regs, path.mean, strict=True):
            best = bool(reg == path.smallest)
            table.add_row(f"{reg:.4g}", mark_best(out, f"{error:.4f}", best))
        table.add_section()
        table.add_row("chosen", styled(f"{chosen[0]:.4g}", "bold"))
    else:  # a column for each stage would not fit with ten levels
        headings = "stage", "rating above", "chosen", metric, "at", "tried", "from", "to"
        table = new_table(*headings, numbers=len(headings))
        for stage, (level, one) in enumerate(zip(tuned.levels_, paths, strict=False), start=1):
            regs = (f"{reg:.4g}" for reg in (one.smallest, one.regs[0], one.regs[-1]))
            at, first, last = regs
            error, n_tried = f"{one.mean.min():.4f}", str(len(one.regs))
            strength = styled(f"{one.best:.4g}", "bold")
            table.add_row(str(stage), f"{level:g}", strength, error, at, n_tried, first, last)
    out.print(table)
    if len(paths) > 1:
        console.print(f"The {metric} is the smallest of the strengths tried, on held-out ratings.")
    tried = [
        {"regs": path.regs.tolist(), "errors": path.mean.tolist(), "chosen": path.best}
        for path in paths
    ]
    return {"metric": metric, "paths": tried, "chosen": chosen}, chosen


def _report_search(
    search: "HalvingSearch", model: options.ModelOptions, console: options.ConsoleOptions
) -> tuple[dict[str, Any], options.ModelOptions]:
    """Print a row for each candidate, the best first; return all of it, and the choice."""
    from marginmf.cli.output import new_table

    best = search.best_params_
    table = new_table(*best, "iterations", "MAE", numbers=len(best) + 2)
    for outcome in search.results_:
        values = [format_value(outcome.params[name]) for name in best]
        table.add_row(*values, str(outcome.n_iter), f"{outcome.error:.4f}")
    console.out.print(table)
    console.print(f"{len(search.results_)} candidates took {search.n_evaluations_} gradients.")
    # The strength may be a --set of the method, and not among what was tried.
    given = {} if model.reg else {"reg": search.estimator.reg}
    chosen = _with_params(model, {**given, **best})
    found = {
        "metric": "mean absolute error",
        "candidates": [outcome._asdict() for outcome in search.results_],
        "rungs": [rung._asdict() for rung in search.rungs_],
        "chosen": best,
    }
    return found, chosen
