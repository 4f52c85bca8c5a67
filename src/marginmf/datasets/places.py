"""Where a dataset may be on this machine: a data folder, then the cache."""

import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from marginmf.datasets.entry import DatasetInfo, Kind
from marginmf.datasets.forms import FORMS

DATA_FOLDER = "MARGINMF_DATA"
AnyPath = str | PathLike[str]


@dataclass(frozen=True)
class Place:
    """A file that may hold a dataset, and how to read it; `phrase` names it in messages."""

    where: Literal["data folder", "cache"]
    path: Path
    read: Callable[[], Any]

    @property
    def phrase(self) -> str:
        """The place in words."""
        return f"the {self.where} ({self.path})"


def places(info: DatasetInfo, data_dir: AnyPath | None, cache_dir: AnyPath | None) -> list[Place]:
    """Return where to look for a dataset, in order; the files need not be there."""
    name, form = info.name, FORMS[info.kind]
    found = []
    folder = data_folder(data_dir)
    if folder is not None:
        arrays, archive = folder / info.kind / f"{name}.npz", folder / "original" / f"{name}.zip"
        found = [
            Place("data folder", arrays, lambda: form.read_arrays(arrays, name)),
            Place("data folder", archive, lambda: read_original(info, archive)),
        ]
        if form.archive_first:
            found.reverse()
    kept = kept_file(info, cache_dir)
    return [*found, Place("cache", kept, lambda: form.read_arrays(kept, name))]


def read_original(info: DatasetInfo, path: Path) -> Any:
    """Read the file of a dataset's owner, or arrays, whatever the file is called."""
    table = (
        FORMS[info.kind].read_arrays(path, info.name) if path.suffix == ".npz" else info.read(path)
    )
    said = table.source or f"read from {path}"
    return replace(table, name=info.name, source=said)


def data_folder(data_dir: AnyPath | None) -> Path | None:
    """Return the folder given, else the one that the environment names, else None."""
    named = os.environ.get(DATA_FOLDER) if data_dir is None else data_dir
    return Path(named) if named else None


def cache_folder(cache_dir: AnyPath | None = None) -> Path:
    """Return the folder that downloads are kept in: the one given, else the system's for caches."""
    if cache_dir is not None:
        return Path(cache_dir)
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("marginmf", appauthor=False))


def kept_file(info: DatasetInfo, cache_dir: AnyPath | None = None) -> Path:
    """Return the file that a dataset is kept as in the cache."""
    return cache_folder(cache_dir) / info.kind / f"{info.name}.npz"


def own_datasets(kind: Kind, folder: Path | None) -> dict[str, Path]:
    """Return the files of all datasets of a kind that a data folder has, by name.

    These may be a user's own. Of archives only those of ARFF files are known to be labels.
    """
    if folder is None:
        return {}
    arrays = {path.stem: path for path in sorted(folder.glob(f"{kind}/*.npz"))}
    return (dict(_label_archives(folder)) if kind == "labels" else {}) | arrays


def _label_archives(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.glob("original/*.zip")):
        try:
            with zipfile.ZipFile(path) as archive:
                if any(name.lower().endswith(".arff") for name in archive.namelist()):
                    yield path.stem, path
        except (zipfile.BadZipFile, OSError):
            continue
