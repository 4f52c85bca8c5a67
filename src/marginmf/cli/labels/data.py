"""Where label sets come from: a file, or a dataset known by name."""

from pathlib import Path
from typing import Any

from marginmf.cli.labels.options import LabelColumns, LabelsData
from marginmf.cli.named import absent, load_named
from marginmf.datasets import LabelsTable, load_labels, read_labels
from marginmf.datasets.labels.columns import IfThere
from marginmf.labels.base import LabelsEstimator


def read_table(data: LabelsData, progress: bool = False) -> LabelsTable:
    """Read a file or, where there is no file of that name, load the dataset of that name."""
    table = _read(data.file, data.reading(), {}, progress)
    if table.n_labels == 0:
        raise ValueError(f"{data.file} has no labels to learn.")
    return table


def read_rows(
    name: str, labels: tuple[str, ...], model: LabelsEstimator, columns: LabelColumns
) -> LabelsTable:
    """Read rows to predict; columns that are called as labels of the model are no features."""
    given = columns.reading()
    # Labels of rows that are to be predicted need not be known, so they are not even looked at.
    features = feature_names(model)
    known: dict[str, Any] = {"labels": [], "n_features": features or model.n_features_in_}
    # In svmlight files both have numbers, and so do the columns of text with the same rows.
    own = set(features or ())
    unlike = () if "labels" in given else tuple(name for name in labels if name not in own)
    known["ignore"] = IfThere(unlike, given.pop("ignore", ()))
    return _read(name, given, known)


def feature_names(model: LabelsEstimator) -> tuple[str, ...] | None:
    """Return the names of the features that a model has learned from, if it knows them."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def facts(table: LabelsTable) -> str:
    """Return one clause on how much there is to learn from."""
    return (
        f"{table.n_samples:,} rows, {table.n_features:,} features, {table.n_labels:,} labels, "
        f"{table.cardinality:.3g} a row"
    )


def summary(table: LabelsTable) -> dict[str, Any]:
    """Return the same for programs."""
    from scipy.sparse import issparse

    return {
        "name": table.name,
        "source": table.source,
        "n_rows": table.n_samples,
        "n_features": table.n_features,
        "n_labels": table.n_labels,
        "cardinality": table.cardinality,
        "sparse": bool(issparse(table.X)),
    }


def _read(
    name: str, given: dict[str, Any], known: dict[str, Any], progress: bool = False
) -> LabelsTable:
    if Path(name).exists():
        return read_labels(name, **known | given)
    if given:
        raise FileNotFoundError(absent(name))
    return load_named(name, load_labels, progress)
