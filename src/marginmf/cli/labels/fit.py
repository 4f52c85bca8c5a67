"""``marginmf labels fit``: learn label sets from a file and save the model."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from marginmf.cli.labels.options import DecisionOptions, LabelModel, LabelsData, MethodName
from marginmf.cli.options import TalkOptions, takes_groups

EXAMPLE = "marginmf labels fit songs.csv --labels 'tag_*' --out l.marginmf"


@takes_groups
def fit(
    *,
    name: MethodName = "grople",
    out: Annotated[Path, typer.Option(help="Where to save the model.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the file if there is one.")] = (
        False
    ),
    model: LabelModel,
    decision: DecisionOptions,
    data: LabelsData,
    talk: TalkOptions,
) -> None:
    """Fit a method to all the rows of a file and save the model.

    The names of labels and features, the decision rule and the scale of the features are kept with
    the model.
    """
    from marginmf.cli.destination import check_destination, refuse_same
    from marginmf.cli.labels.data import facts, read_table, summary
    from marginmf.cli.labels.models import check_models, keep_names, make_models
    from marginmf.cli.printing import to_json

    refuse_same(out, data.file, data.xml)
    check_destination(out, "model", overwrite=force)
    check_models([name], model)
    table = read_table(data, talk.progress)
    estimator = make_models([name], model, decision, table)[name]
    talk.out.print(f"{table.name}: {facts(table)}.", markup=False, soft_wrap=True)
    started = time.perf_counter()
    with talk.notes.status(f"Fitting {name}"):
        estimator.fit(table.X, table.Y)
    seconds = time.perf_counter() - started
    keep_names(estimator, table)
    estimator.save(out)
    result = {
        "data": summary(table),
        "model": _summary(name, estimator),
        "seconds": seconds,
        "out": str(out),
        "bytes": out.stat().st_size,
    }
    if talk.as_json:
        typer.echo(to_json(result))
    talk.out.print(_words(result, decision), markup=False, soft_wrap=True)


def _summary(name: str, model: Any) -> dict[str, Any]:
    """Return what was fitted, and how it decides."""
    import numpy as np

    inside = getattr(model, "estimator_", None)
    scaled = type(model).__name__ == "Scaled"
    finite = model.thresholds_[np.isfinite(model.thresholds_)]
    return {
        "name": name,
        "class": type(inside if scaled else model).__name__,
        "scaled": scaled,
        "decision": model.decision,
        "tune_for": model.tune_for,
        "top1_if_empty": model.top1_if_empty,
        "lowest_threshold": float(finite.min()) if len(finite) else None,
        "highest_threshold": float(finite.max()) if len(finite) else None,
        "n_never_predicted": int((~np.isfinite(model.thresholds_)).sum()),
    }


def _words(result: dict[str, Any], decision: DecisionOptions) -> str:
    """Return the same in a few lines for people."""
    from marginmf.cli.printing import size

    model = result["model"]
    low, high = model["lowest_threshold"], model["highest_threshold"]
    words = ["features between 0 and 1"] if model["scaled"] else []
    if low is not None:
        among = f"threshold {low:.4g}" if low == high else f"thresholds {low:.4g} to {high:.4g}"
        words.append(f"decision {decision.words()} ({among})")
    words.append(f"seconds {result['seconds']:.2f}")
    return (
        f"{model['class']}: {'; '.join(words)}.\n"
        f"Saved to {result['out']} ({size(result['bytes'])})."
    )
