"""Find one file of a dataset: named itself, or inside a folder or a zip archive."""

import gzip
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

ZIP_MARK, GZIP_MARK = b"PK\x03\x04", b"\x1f\x8b"


def has_members(path: Path) -> bool:
    """Tell whether a path is a folder or a zip archive, rather than the file of ratings itself."""
    if path.is_dir():
        return True
    with open(path, "rb") as file:
        return file.read(len(ZIP_MARK)) == ZIP_MARK


def has_member(path: Path, name: str) -> bool:
    """Tell whether a folder or an archive has a file of that name."""
    if not has_members(path):
        return False
    try:
        with open_member(path, name):
            return True
    except ValueError:
        return False


@contextmanager
def open_member(path: Path, *names: str) -> Iterator[BinaryIO]:
    """Open the file called like one of `names`, in any case and in any folder of an archive.

    A path to anything but a folder or a zip archive is the file itself, plain or gzip.
    """
    if path.is_dir():
        found = {one.name.lower(): one for one in sorted(path.rglob("*")) if one.is_file()}
        with open_member(found[_chosen(list(found), names, path)]) as inner:
            yield inner
        return
    with open(path, "rb") as file:
        mark = file.read(4)
        file.seek(0)
        if mark == ZIP_MARK:
            with zipfile.ZipFile(file) as archive:
                there = {PurePosixPath(one).name.lower(): one for one in archive.namelist()}
                with archive.open(there[_chosen(list(there), names, path)]) as member:
                    yield cast(BinaryIO, member)
        elif mark.startswith(GZIP_MARK):
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield cast(BinaryIO, unpacked)
        else:
            yield file


def _chosen(there: list[str], names: tuple[str, ...], path: Path) -> str:
    for name in names:
        if name.lower() in there:
            return name.lower()
    raise ValueError(f"{path} has no file {names[0]} in it; name the one that holds the ratings.")
