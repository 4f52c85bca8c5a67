"""Copies of known datasets on this machine: where they are, how they are stored and verified."""

import hashlib
import os
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from marginmf._utils.parameters import warn
from marginmf.datasets.download import Verify
from marginmf.datasets.files.source import Source, missing_file
from marginmf.datasets.registry import (
    DatasetInfo,
    DatasetKind,
    LabelsFacts,
    RatingsFacts,
    dataset_info,
)
from marginmf.datasets.table import ratings_fingerprint, read_npz, write_npz

DATA_FOLDER = "MARGINMF_DATA"
#: What the `source` of a table says that is not the same as what is known of the dataset.
DIFFERS = "has the counts but not all the values of the copy known to marginmf"
OTHER_COUNTS = "has not even the counts of the dataset known to marginmf"
OTHER_FILE = "was read from another file than the one known to marginmf"

AnyPath = str | PathLike[str]


@dataclass(frozen=True)
class Storage:
    """How tables of a kind are stored as arrays, and how they are identified."""

    read: Callable[[Path, str], Any]
    write: Callable[[Any, Path], None]
    fingerprint: Callable[[Any], str]
    facts: Callable[[Any], RatingsFacts | LabelsFacts]
    # In a data folder: the archives of ratings have titles, which arrays from elsewhere lack;
    # arrays of labels are read more quickly.
    archive_first: bool


def _read_labels(path: Path, name: str) -> Any:
    from marginmf.datasets.labels.arrays import read_labels_npz  # needs SciPy, as below

    return read_labels_npz(Source(path, "labels"), name)


def _write_labels(table: Any, path: Path) -> None:
    from marginmf.datasets.labels.arrays import write_labels_npz

    write_labels_npz(table, path)


def labels_fingerprint(table: Any) -> str:
    """Return the SHA-256 of the shape and the nonzero entries of both matrices, as float32."""
    from scipy import sparse

    digest = hashlib.sha256()
    for matrix in (table.X, table.Y):
        entries = sparse.csr_array(matrix, dtype=np.dtype("<f4"), copy=True)
        entries.sum_duplicates()
        entries.eliminate_zeros()
        for indices in (np.array(entries.shape), entries.indptr, entries.indices):
            digest.update(indices.astype("<i8").tobytes())
        digest.update(entries.data.astype("<f4").tobytes())
    return digest.hexdigest()


STORAGE: dict[DatasetKind, Storage] = {
    "ratings": Storage(read_npz, write_npz, ratings_fingerprint, RatingsFacts.of, True),
    "labels": Storage(_read_labels, _write_labels, labels_fingerprint, LabelsFacts.of, False),
}


@dataclass(frozen=True)
class LocalCopy:
    """A file that may hold a dataset, and how to read it."""

    where: Literal["data folder", "cache"]
    path: Path
    read: Callable[[], Any]

    def __str__(self) -> str:
        return f"the {self.where} ({self.path})"


def data_folder(data_dir: AnyPath | None) -> Path | None:
    """Return the folder given, else the one that the environment names, else None."""
    named = os.environ.get(DATA_FOLDER) if data_dir is None else data_dir
    return Path(named) if named else None


def cache_folder(cache_dir: AnyPath | None = None) -> Path:
    """Return the folder that downloads are kept in: the one given, else the system's for caches.

    It is an OSError if there is none, because this user has no home.
    """
    if cache_dir is not None:
        return Path(cache_dir)
    from platformdirs import user_cache_dir

    found = Path()
    with suppress(RuntimeError):  # of newer versions; others return ~ as it is
        found = Path(user_cache_dir("marginmf", appauthor=False))
    if not found.is_absolute():
        raise OSError(
            "There is no folder to keep datasets in, because this user has no home: set HOME or "
            "XDG_CACHE_HOME to a folder."
        )
    return found


def cached_path(info: DatasetInfo, cache_dir: AnyPath | None = None) -> Path:
    """Return the file that a dataset is kept as in the cache."""
    return cache_folder(cache_dir) / info.kind / f"{info.name}.npz"


def local_copies(
    info: DatasetInfo, data_dir: AnyPath | None = None, cache_dir: AnyPath | None = None
) -> list[LocalCopy]:
    """Return where to look for a dataset, in order; the files need not exist."""
    name, storage = info.name, STORAGE[info.kind]
    copies = []
    with suppress(OSError):  # without a home there is no cache
        cached = cached_path(info, cache_dir)
        copies = [LocalCopy("cache", cached, lambda: storage.read(cached, name))]
    if folder := data_folder(data_dir):
        arrays, archive = folder / info.kind / f"{name}.npz", folder / "original" / f"{name}.zip"
        copies.insert(0, LocalCopy("data folder", arrays, lambda: storage.read(arrays, name)))
        original = LocalCopy("data folder", archive, lambda: _read_original(info, archive))
        copies.insert(0 if storage.archive_first else 1, original)
    return copies


def find_copy(
    info: DatasetInfo, data_dir: AnyPath | None = None, cache_dir: AnyPath | None = None
) -> LocalCopy | None:
    """Return the first copy that exists."""
    copies = local_copies(info, data_dir, cache_dir)
    return next((copy for copy in copies if copy.path.is_file()), None)


def dataset_path(
    name: str, *, data_dir: AnyPath | None = None, cache_dir: AnyPath | None = None
) -> Path | None:
    """Return the file that a dataset is read from on this machine, or None if there is none.

    Parameters
    ----------
    name : str
        One of `dataset_names`.
    data_dir, cache_dir : path-like, optional
        As for `load_ratings`.

    Returns
    -------
    Path or None
        The first file that exists; it is not opened.

    Examples
    --------
    >>> dataset_path("ml-100k", cache_dir="/nowhere", data_dir="/nowhere") is None
    True
    """
    copy = find_copy(dataset_info(name), data_dir, cache_dir)
    return None if copy is None else copy.path


def keep_copy(name: str, path: AnyPath, *, cache_dir: AnyPath | None = None) -> Path:
    """Take a dataset from a file of your own into the cache, where it is found by its name.

    Parameters
    ----------
    name : str
        One of `dataset_names`.
    path : path-like
        The file of its owner, such as ``Vote.txt`` of EachMovie or an archive fetched by hand.
    cache_dir : path-like, optional
        Folder of the cache; by default the user's cache folder of the operating system.

    Returns
    -------
    Path
        The file that it is kept as. It is a ValueError if the file is not the dataset.

    Examples
    --------
    >>> keep_copy("eachmovie", "Vote.txt")  # doctest: +SKIP
    PosixPath('/home/ann/.cache/marginmf/ratings/eachmovie.npz')
    """
    info, file = dataset_info(name), Path(path)
    if not file.exists():
        raise missing_file(file)
    try:
        table = verify(_read_original(info, file), info, info.exact)
    except Exception as error:  # a damaged file can fail anywhere in zipfile, zlib or NumPy
        raise ValueError(f"{file} is not {info.title}: {reason(error)}") from error
    cached = cached_path(info, cache_dir)
    STORAGE[info.kind].write(table, cached)
    return cached


def _read_original(info: DatasetInfo, path: Path) -> Any:
    """Read the file of a dataset's owner, or arrays where its name ends in ``.npz``."""
    is_arrays = path.suffix == ".npz"
    table = STORAGE[info.kind].read(path, info.name) if is_arrays else info.read(path)
    return replace(table, name=info.name, source=table.source or f"read from {path}")


def own_datasets(kind: DatasetKind, folder: Path | None) -> dict[str, Path]:
    """Return the files of all datasets of a kind in a data folder, a user's own too, by name.

    Of archives, only those of ARFF files are known to be labels.
    """
    found: dict[str, Path] = {}
    for path in sorted(folder.glob("original/*.zip")) if folder and kind == "labels" else ():
        with suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(path) as archive:
            if any(name.lower().endswith(".arff") for name in archive.namelist()):
                found[path.stem] = path
    arrays = sorted(folder.glob(f"{kind}/*.npz")) if folder else ()
    return found | {path.stem: path for path in arrays}


def verify(table: Any, info: DatasetInfo, exact: bool, verify: Verify = True) -> Any:
    """Return the table if it is the dataset, else raise ValueError that says what differs.

    Unless it must be `exact`, values may differ, and with another `verify` than True anything may:
    then there is a warning, and the table's `source` tells.
    """
    storage = STORAGE[info.kind]
    wrong = info.facts.difference(storage.facts(table), info.title)
    note = OTHER_COUNTS if wrong else OTHER_FILE if OTHER_FILE in table.source else None
    if wrong is None and info.fingerprint not in (None, storage.fingerprint(table)):
        note = DIFFERS
        if exact:
            wrong = f"It has the size of {info.title}, but some of its values differ."
    if wrong is not None and verify is True:
        raise ValueError(wrong)
    if note is None:
        return table
    source = table.source.partition(f"; {note}")[0] or "nobody knows from where"
    warn(f"{info.title} is not verified: this copy, {source}, {note}.")
    return replace(table, source=f"{source}; {note}")


def reason(error: Exception) -> str:
    """Return why something failed, also where the error has no message."""
    return str(error) or type(error).__name__
