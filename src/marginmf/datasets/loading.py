"""Load a dataset by name from the first source that has it."""

import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from marginmf._utils.files import acquire_lock
from marginmf.datasets.entry import DatasetInfo, Kind
from marginmf.datasets.forms import FORMS
from marginmf.datasets.places import (
    DATA_FOLDER,
    AnyPath,
    Place,
    cache_folder,
    data_folder,
    kept_file,
    own_datasets,
    places,
)
from marginmf.datasets.registry import ENTRIES, unknown
from marginmf.datasets.remote import DOWNLOADS, downloaded
from marginmf.datasets.table import RatingsTable
from marginmf.datasets.verification import reason, verify

OFFLINE = "MARGINMF_OFFLINE"


class DatasetUnavailable(OSError):  # noqa: N818, a state of the world more than an error
    """No source had the dataset; the message lists each source and why it failed."""


def load_ratings(
    name: str = "ml-100k",
    *,
    data_dir: AnyPath | None = None,
    cache_dir: AnyPath | None = None,
    offline: bool = False,
    progress: bool = True,
) -> RatingsTable:
    """Load a ratings dataset, downloading it the first time.

    The sources, in order: the data folder (``original/<name>.zip`` or ``ratings/<name>.npz`` in
    it, read in place); the cache; the owner's site; mirrors. Whatever the source, the ratings are
    checked against what is known of the dataset. What was downloaded goes into the cache, after
    its terms were shown on standard error. A download that was interrupted goes on in the next
    call.

    Parameters
    ----------
    name : str
        Such as ``"ml-100k"``; see `dataset_names` and `dataset_info`, also for the terms of use
        of each dataset. A data folder may have others, as ``ratings/<name>.npz``.
    data_dir : path-like, optional
        The data folder; by default the one that the environment variable ``MARGINMF_DATA`` names.
    cache_dir : path-like, optional
        Folder of the cache; by default the user's cache folder of the operating system.
    offline : bool
        Do not download. The environment variable ``MARGINMF_OFFLINE=1`` says the same.
    progress : bool
        Show a progress bar on standard error, if that is a terminal.

    Returns
    -------
    RatingsTable
        Its rows are in the order of the owner's file.

    Raises
    ------
    ValueError
        If the name is unknown.
    DatasetUnavailable
        If no source has the dataset.

    Examples
    --------
    >>> load_ratings("ml-100k")  # doctest: +SKIP
    RatingsTable('ml-100k': 100,000 ratings of 1,682 items by 943 users, levels 1 to 5; ...)
    """
    table: RatingsTable = load("ratings", name, data_dir, cache_dir, offline, progress)
    return table


def load(
    kind: Kind,
    name: str,
    data_dir: AnyPath | None,
    cache_dir: AnyPath | None,
    offline: bool,
    progress: bool,
) -> Any:
    """Load a dataset of a kind; see `load_ratings` and `load_labels`."""
    folder = data_folder(data_dir)
    if data_dir is not None and folder is not None and not folder.is_dir():
        raise DatasetUnavailable(
            f"There is no folder {folder} to load {name!r} from; set data_dir to one that has "
            f"{kind}/{name}.npz or original/{name}.zip in it."
        )
    info = ENTRIES.get(name)
    if info is None or info.kind != kind:
        return _load_own(kind, name, folder)
    failures: list[str] = []
    table = _first(places(info, data_dir, cache_dir), info, failures)
    if table is not None:
        return table
    if not info.can_be_downloaded:
        raise DatasetUnavailable(_unavailable(info, failures))
    if offline or is_offline():
        why = "offline=True" if offline else f"{OFFLINE} is set"
        failures.append(f"the owner's site and its mirrors: not asked, because {why}")
        raise DatasetUnavailable(_unavailable(info, failures))
    return _fetched(info, cache_dir, progress, failures)


def is_offline() -> bool:
    """Tell whether the environment says that nothing is to be downloaded."""
    return os.environ.get(OFFLINE, "").lower() not in ("", "0", "false", "no")


def _load_own(kind: Kind, name: str, folder: Path | None) -> Any:
    """Load a dataset that no entry describes, from the data folder."""
    own = own_datasets(kind, folder)
    if name not in own:
        message = unknown(name, kind, tuple(sorted(own)))
        if folder is None:
            message += f"; your own are read from {kind}/{name}.npz of a folder {DATA_FOLDER}"
        raise ValueError(message)
    path = own[name]
    if path.suffix == ".npz":
        return FORMS[kind].read_arrays(path, name)
    from marginmf.datasets.labels.read import read_labels

    return replace(read_labels(path), name=name)


def _first(found: list[Place], info: DatasetInfo, failures: list[str]) -> Any:
    """Return the table from the first place that has the dataset; None where none has."""
    for place in found:
        if not place.path.is_file():
            failures.append(f"{place.phrase}: not there")
            continue
        try:
            return verify(place.read(), info)
        except Exception as error:  # a damaged file can fail anywhere in zipfile, zlib or NumPy
            failures.append(f"{place.phrase}: {reason(error)}")
            warnings.warn(
                f"The copy of {info.name} in {place.phrase} cannot be used and is passed over: "
                f"{reason(error)}",
                stacklevel=4,
            )
    return None


def _fetched(
    info: DatasetInfo, cache_dir: AnyPath | None, progress: bool, failures: list[str]
) -> Any:
    """Download a dataset and keep it; or wait for another process that does so already."""
    cache = cache_folder(cache_dir)
    kept = kept_file(info, cache_dir)
    with _alone(cache / DOWNLOADS / f"{info.name}.lock") as waited:
        if waited and kept.is_file():
            table = _first(places(info, None, cache_dir)[-1:], info, [])
            if table is not None:
                return table
        table = downloaded(info, cache, progress, failures)
        if table is None:
            raise DatasetUnavailable(_unavailable(info, failures))
        try:
            FORMS[info.kind].write_arrays(table, kept)
        except OSError as error:
            warnings.warn(
                f"{info.name} could not be kept in the cache ({error}), and will be downloaded "
                f"again the next time; pass cache_dir=... to use another folder.",
                stacklevel=4,
            )
    return table


@contextmanager
def _alone(lock: Path) -> Iterator[bool]:
    """Keep other processes out during the block; yields whether one was there before."""
    with ExitStack() as stack:
        try:
            waited = stack.enter_context(acquire_lock(lock))
        except OSError:  # nothing can be kept here, so nobody else can bring it either
            waited = False
        yield waited


def _unavailable(info: DatasetInfo, failures: list[str]) -> str:
    listed = "\n".join(f"  - {failure.rstrip('.')}." for failure in failures)
    advice = info.by_hand
    if info.address is not None:
        advice = (
            f"Connect to the network and try again; or download {info.address} elsewhere, and "
            f"take it in with: marginmf datasets get {info.name} --from FILE"
        )
    return f"The dataset {info.name!r} is not to be had from any source:\n{listed}\n{advice}"
