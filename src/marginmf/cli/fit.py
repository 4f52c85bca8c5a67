"""``marginmf fit``: learn from a file of ratings and save the model."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from marginmf.cli.options import (
    METHODS,
    POSITIVE,
    DataOptions,
    ModelOptions,
    TalkOptions,
    takes_groups,
)

EXAMPLE = "marginmf fit ratings.csv --model hmf --reg 2 --out m.marginmf"


@takes_groups
def fit(
    *,
    name: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            help=f"The method: {', '.join(METHODS)}; for who has what: {', '.join(POSITIVE)}.  "
            "By default hmf, or ease.",
            show_default=False,
        ),
    ] = None,
    positive_only: Annotated[
        bool,
        typer.Option(
            "--positive-only",
            help="Learn from who has what: rows need no ratings, and --set level=4 says which of "
            "them count where there are any.",
        ),
    ] = False,
    out: Annotated[Path, typer.Option(help="Where to save the model.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the file if there is one.")] = (
        False
    ),
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep what is done here; the same command goes on after an interruption.",
        ),
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate/--no-calibrate",
            help="Learn probabilities, which predictions are made with, on held-out ratings; if "
            "that is not done now, every command that needs them does it.",
        ),
    ] = True,
    lists: Annotated[
        bool,
        typer.Option(
            "--lists/--no-lists",
            help="Learn who takes what, which lists are made with; if that is not done now, every "
            "command that needs it does it.",
        ),
    ] = True,
    model: ModelOptions,
    data: DataOptions,
    talk: TalkOptions,
) -> None:
    """Fit a method to all the ratings of a file and save the model.

    Ids are kept as they are; the scale is whatever levels occur. With --positive-only, or a
    method for it, only who has what matters.
    """
    from marginmf.cli.data import checked_pairs, checked_ratings
    from marginmf.cli.destination import check_destination, refuse_same
    from marginmf.cli.models import make_any
    from marginmf.cli.printing import to_json
    from marginmf.ratings.positive import PositiveOnly

    refuse_same(out, data.file, *data.feature_files.values())
    check_destination(out, "model", overwrite=force)
    estimator: Any = make_any(name, positive_only, model, talk.progress)
    if "calibrate" in estimator.get_params(deep=False):
        estimator.set_params(calibrate=calibrate)
    if isinstance(estimator, PositiveOnly):
        if checkpoint is not None:
            raise ValueError(f"{type(estimator).__name__} keeps no checkpoints: leave that out.")
        source, ratings = checked_pairs(data, estimator.level, talk.progress)
    else:
        source, ratings = checked_ratings(data, talk.progress)
    estimator._check(ratings)
    talk.out.print(source.lines(), markup=False, soft_wrap=True)
    started = time.perf_counter()
    try:
        estimator.fit(ratings, **({} if checkpoint is None else {"checkpoint": checkpoint}))
        if lists and not isinstance(estimator, PositiveOnly):
            estimator.fit_exposure()
    except KeyboardInterrupt:
        if checkpoint is not None:
            talk.notes.print(f"What was done is in {checkpoint}; the same command goes on.")
        raise
    seconds = time.perf_counter() - started
    if hasattr(estimator, "verbose"):
        estimator.set_params(verbose=0)  # whoever loads the model did not ask for progress bars
    estimator.save(out)
    result = {
        "data": source.summary(),
        "model": _summary(estimator),
        "seconds": seconds,
        "out": str(out),
        "bytes": out.stat().st_size,
    }
    if talk.as_json:
        typer.echo(to_json(result))
    talk.out.print(_words(result), markup=False, soft_wrap=True)


def _summary(model: Any) -> dict[str, Any]:
    """Return what was fitted: the method, the weights that were used, and how long it went on."""
    import numpy as np

    summary: dict[str, Any] = {"name": model.command_name, "class": type(model).__name__}
    if hasattr(model, "n_factors"):
        summary["n_factors"] = model.n_factors
    if hasattr(model, "reg"):
        summary["reg"] = np.asarray(getattr(model, "reg_", model.reg), float).tolist()
        summary["reg_was_chosen"] = isinstance(model.reg, str)
    if hasattr(model, "n_iter_"):
        summary["n_iter"] = np.asarray(model.n_iter_).tolist()
        summary["stop_reason"] = model.stop_reason_
    if hasattr(model, "members_"):
        summary["n_members"] = sum(map(len, model.members_))
    return summary


def _words(result: dict[str, Any]) -> str:
    """Return the same in two lines for people."""
    from marginmf.cli.printing import size

    model, words = result["model"], []
    if isinstance(model.get("n_factors"), int):
        words.append(f"{model['n_factors']} factors")
    if "n_members" in model:
        words.append(f"{model['n_members']} members")
    if "reg" in model:
        regs = model["reg"] if isinstance(model["reg"], list) else [model["reg"]]
        chosen = " (chosen on held-out ratings)" if model["reg_was_chosen"] else ""
        words.append(f"reg {', '.join(f'{reg:.4g}' for reg in regs)}{chosen}")
    if "n_iter" in model:
        counts = model["n_iter"] if isinstance(model["n_iter"], list) else [model["n_iter"]]
        words.append(f"iterations {sum(counts)}")
    words.append(f"seconds {result['seconds']:.2f}")
    return (
        f"{model['class']}: {'; '.join(words)}.\n"
        f"Saved to {result['out']} ({size(result['bytes'])})."
    )
