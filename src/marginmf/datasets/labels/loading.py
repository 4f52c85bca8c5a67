"""Load a label dataset by name from a folder of data."""

import os
import zipfile
from dataclasses import replace
from os import PathLike
from pathlib import Path

from marginmf.datasets.labels.reading import read_labels
from marginmf.datasets.labels.table import LabelsTable
from marginmf.datasets.loading import DATA_FOLDER, DatasetUnavailable


def load_labels(name: str, *, data_dir: str | PathLike[str] | None = None) -> LabelsTable:
    """Load a label dataset by its name from a folder of data.

    Parameters
    ----------
    name : str
        Such as ``"emotions"``: it is read from ``labels/<name>.npz`` in the folder, else from
        ``original/<name>.zip``, an archive of ARFF files as MULAN publishes them. Both give the
        same rows in the same order.
    data_dir : path-like, optional
        The folder; by default the one that the environment variable ``MARGINMF_DATA`` names.

    Returns
    -------
    LabelsTable
        Features and labels.

    Raises
    ------
    ValueError
        If there is no such dataset in the folder; the message lists those that are.
    DatasetUnavailable
        If there is no folder of data.

    Examples
    --------
    >>> load_labels("emotions")  # doctest: +SKIP
    LabelsTable('emotions': 593 samples, 72 features (dense), 6 labels, 1.868 a sample; ...)
    """
    named = os.environ.get(DATA_FOLDER) if data_dir is None else data_dir
    if not named:
        raise DatasetUnavailable(
            f"There is no folder to load {name!r} from: set {DATA_FOLDER} to a folder that has "
            f"labels/{name}.npz or original/{name}.zip in it, or read a file with read_labels."
        )
    folder = Path(named)
    if not folder.is_dir():
        raise DatasetUnavailable(
            f"There is no folder {folder} to load {name!r} from; set {DATA_FOLDER} to one that "
            f"has labels/{name}.npz or original/{name}.zip in it."
        )
    known = _known(folder)
    if name not in known:
        names = ", ".join(map(repr, sorted(known))) or "none"
        raise ValueError(
            f"There is no label dataset {name!r} in {folder}; those there are {names}."
        )
    return replace(read_labels(known[name]), name=name)


def _known(folder: Path) -> dict[str, Path]:
    """Return the file of each dataset; that of arrays, which is read quickly, if it has both."""
    archives = {
        path.stem: path for path in sorted(folder.glob("original/*.zip")) if _holds_arff(path)
    }
    return archives | {path.stem: path for path in sorted(folder.glob("labels/*.npz"))}


def _holds_arff(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.lower().endswith(".arff") for name in archive.namelist())
    except (zipfile.BadZipFile, OSError):
        return False
