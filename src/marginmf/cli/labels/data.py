"""Where label sets come from: a file, or a dataset known by name."""

from pathlib import Path
from typing import Any

from marginmf.cli.labels.options import LabelColumns, LabelsData
from marginmf.datasets import DatasetUnavailable, LabelsTable, load_labels, read_labels
from marginmf.datasets.labels.choice import IfThere


def read_table(data: LabelsData) -> LabelsTable:
    """Read a file or, where there is no file of that name, load the dataset of that name."""
    if Path(data.file).exists():
        table = read_labels(data.file, **data.reading())
    else:
        if data.reading():
            raise ValueError(
                f"There is no file {data.file}; --labels, --xml and --ignore are for files."
            )
        table = _load(data.file)
    if table.n_labels == 0:
        raise ValueError(f"{data.file} has no labels to learn.")
    return table


def read_rows(path: Path, names: tuple[str, ...], n_features: int, columns: LabelColumns) -> Any:
    """Read rows to predict; columns that are called as labels of the model are no features."""
    options: dict[str, Any] = {"labels": IfThere(names), "n_features": n_features}
    return read_labels(path, **options | columns.reading())


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


def _load(name: str) -> LabelsTable:
    if "/" in name or "." in name:  # a file was meant
        raise FileNotFoundError(
            f"There is no file {name}; check the name and the folder (now in {Path.cwd()})."
        )
    try:
        return load_labels(name)
    except DatasetUnavailable:
        raise FileNotFoundError(
            f"There is no file {name}; check the name and the folder (now in {Path.cwd()}). "
            f"Datasets are known by name where MARGINMF_DATA names a folder of them."
        ) from None
