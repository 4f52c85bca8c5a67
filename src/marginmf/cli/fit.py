"""``marginmf fit`` and ``marginmf labels fit``: learn from a file and save the model."""

import time
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from marginmf.cli import options
from marginmf.cli.commands import command


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
        Option(
            metavar="FOLDER",
            help="Save progress here; after an interruption, the same command continues.",
        ),
    ] = None,
    calibrate: Annotated[
        bool,
        Option(
            "--calibrate/--no-calibrate",
            help="Calibrate the probabilities behind predictions on held-out ratings; otherwise "
            "every command that needs them does it.",
        ),
    ] = True,
    lists: Annotated[
        bool,
        Option(
            "--lists/--no-lists",
            help="Learn who takes what, which lists need; otherwise every command that needs it "
            "does it.",
        ),
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
    estimator = estimators.make_model(
        name, model, console.progress, lists=True, positive_only=positive_only
    )
    if "calibrate" in estimator.get_params(deep=False):
        estimator.set_params(calibrate=calibrate)
    from_pairs = estimators.learns_from_pairs(estimator)
    if from_pairs:
        if checkpoint is not None:
            raise ValueError(f"{type(estimator).__name__} keeps no checkpoints: leave that out.")
        source, ratings = inputs.read_pairs_checked(data, estimator.level, console.progress)
    else:
        source, ratings = inputs.read_ratings_checked(data, console.progress)
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
    console.print(source.lines())
    _save(estimator, out, source.summary(), *_describe(estimator), seconds, console)


@command("marginmf labels fit songs.csv --labels 'tag_*' --out l.marginmf", name="fit")
def fit_labels(
    *,
    name: options.LabelMethodName = "grople",
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
    described = _describe_labels(name, estimator, decision)
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
    from marginmf.cli.output import format_size

    estimator.save(out)
    n_bytes = out.stat().st_size
    result = {"data": data, "model": summary, "seconds": seconds}
    console.print_json({**result, "out": str(out), "bytes": n_bytes})
    console.print(f"{summary['class']}: {'; '.join([*clauses, f'seconds {seconds:.2f}'])}.")
    console.print(f"Saved to {out} ({format_size(n_bytes)}).")


def _describe(model: Any) -> tuple[dict[str, Any], list[str]]:
    """Return what was fitted, for programs and in clauses for people."""
    import numpy as np

    summary: dict[str, Any] = {"name": model.command_name, "class": type(model).__name__}
    clauses = []
    if hasattr(model, "n_factors"):
        summary["n_factors"] = model.n_factors
        clauses += [f"{model.n_factors} factors"] if isinstance(model.n_factors, int) else []
    if hasattr(model, "members_"):
        summary["n_members"] = sum(map(len, model.members_))
        clauses.append(f"{summary['n_members']} members")
    if hasattr(model, "reg"):
        chosen = isinstance(model.reg, str)
        regs = np.asarray(getattr(model, "reg_", model.reg), float)
        summary |= {"reg": regs.tolist(), "reg_was_chosen": chosen}
        listed = ", ".join(f"{reg:.4g}" for reg in regs.ravel())
        clauses.append(f"reg {listed}{' (chosen on held-out ratings)' * chosen}")
    if hasattr(model, "n_iter_"):
        summary |= {"n_iter": np.asarray(model.n_iter_).tolist(), "stop_reason": model.stop_reason_}
        clauses.append(f"iterations {np.sum(model.n_iter_)}")
    return summary, clauses


def _describe_labels(
    name: str, model: Any, decision: options.DecisionOptions
) -> tuple[dict[str, Any], list[str]]:
    """Return what was fitted and how it decides, for programs and in clauses for people."""
    import numpy as np

    scaled = type(model).__name__ == "Scaled"
    finite = model.thresholds_[np.isfinite(model.thresholds_)].tolist()
    low, high = min(finite, default=None), max(finite, default=None)
    clauses = ["features between 0 and 1"] if scaled else []
    if finite:
        among = f"threshold {low:.4g}" if low == high else f"thresholds {low:.4g} to {high:.4g}"
        clauses.append(f"decision {decision.describe()} ({among})")
    summary = {
        "name": name,
        "class": type(model.estimator_ if scaled else model).__name__,
        "scaled": scaled,
        "decision": model.decision,
        "tune_for": model.tune_for,
        "top1_if_empty": model.top1_if_empty,
        "lowest_threshold": low,
        "highest_threshold": high,
        "n_never_predicted": model.thresholds_.size - len(finite),
    }
    return summary, clauses
