"""Packed files: gzip, zip and npz, which a few bytes can make unpack to any number of bytes.

So all that is unpacked, and all that comes through a pipe, has a limit. Nothing is unpacked whole
before it is checked.
"""

import gzip
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from marginmf._utils.npz import load_arrays
from marginmf._utils.parameters import check_whole
from marginmf._utils.printable import LONGEST_CELL, printable
from marginmf._utils.types import Array

GZIP_MARK, ZIP_MARK = b"\x1f\x8b", b"PK\x03\x04"
#: What every file may unpack to, and a large one, in sizes of the packed file. Files of ratings
#: are packed to a third or a tenth, and gzip cannot pack anything to less than a thousandth.
UNPACKED_BYTES, UNPACKED_SIZES = 1 << 28, 100
#: What may come through a pipe, which is kept in memory.
PIPED_BYTES = 1 << 32
WRITTEN_SIZE = re.compile(r"\s*([0-9]{1,15})\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE).fullmatch
#: What a damaged archive, or one with a password, makes zipfile raise.
DAMAGED_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)
DAMAGED_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)
#: How members of archives may be packed: others are unpacked by zipfile without any limit.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


#: A number of bytes, or how it is written.
Size = int | str


def most_bytes(packed: int, max_bytes: Size | None) -> int:
    """Return what so many packed bytes may unpack to; `max_bytes` is what the caller says.

    >>> most_bytes(20, None), most_bytes(10**9, None), most_bytes(20, 500), most_bytes(20, "2 GB")
    (268435456, 100000000000, 500, 2000000000)
    """
    if max_bytes is None:
        return max(UNPACKED_BYTES, UNPACKED_SIZES * packed)
    if not isinstance(max_bytes, str):
        return check_whole("max_bytes", max_bytes)
    match = WRITTEN_SIZE(max_bytes)
    if match is None:
        raise ValueError(
            f"max_bytes={max_bytes[:40]!r} must be a number of bytes, such as 500MB or 2GB."
        )
    base = 1024 if match[3] else 1000
    return check_whole("max_bytes", int(match[1]) * base ** " kmgt".index(match[2].lower() or " "))


def beyond_limit(where: str | Path, most: int, does: str = "unpacks to") -> ValueError:
    """Return the error for a file that is larger than the limit."""
    return ValueError(
        f"{where} {does} more than {most:,} bytes; if it should, allow more with max_bytes=."
    )


def first_reason(error: Exception) -> str:
    """Return why something failed, in one short line, also where the error has no message."""
    reason = printable(str(error).partition("\n")[0], LONGEST_CELL)
    return reason.rstrip(".") or type(error).__name__


class _Limited(io.RawIOBase):
    """A file that is unpacked while it is read, up to a limit."""

    def __init__(self, file: gzip.GzipFile, where: str, most: int) -> None:
        self._file, self._where, self._most = file, where, most

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        if self._file.tell() > self._most:
            raise beyond_limit(self._where, self._most)
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def open_gzip(file: BinaryIO, where: str, most: int) -> Iterator[BinaryIO]:
    """Open a gzip file that is a ValueError where it is damaged or unpacks to more than `most`."""
    try:
        with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
            yield io.BufferedReader(_Limited(unpacked, where, most))
    except DAMAGED_GZIP as error:
        raise ValueError(
            f"{where} is a damaged gzip file ({first_reason(error)}); fetch or compress it again."
        ) from error


@contextmanager
def open_zip(file: BinaryIO, where: str | Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive; a damaged one is a ValueError."""

    def damaged(error: Exception) -> ValueError:
        return ValueError(f"{where} is a damaged zip file ({first_reason(error)}); fetch it again.")

    try:
        archive = zipfile.ZipFile(file)
    except (*DAMAGED_ZIP, ValueError, struct.error) as error:
        raise damaged(error) from error
    try:
        with archive:
            yield archive
    except DAMAGED_ZIP as error:
        raise damaged(error) from error


@contextmanager
def open_member(
    archive: zipfile.ZipFile, name: str, where: str | Path, most: int
) -> Iterator[BinaryIO]:
    """Open a file in an archive, which says how large it is and is never read beyond that."""
    check_members([archive.getinfo(name)], where, most)
    with _open(archive, name) as file:
        yield file  # type: ignore[misc]


def _open(archive: zipfile.ZipFile, name: str | zipfile.ZipInfo) -> IO[bytes]:
    try:
        return archive.open(name)
    except (ValueError, struct.error) as error:  # the name beside the content is not text
        raise zipfile.BadZipFile(str(error)) from error


def check_members(members: list[zipfile.ZipInfo], where: str | Path, most: int) -> None:
    """Raise ValueError if files in an archive are too large together, or packed in a rare way."""
    for one in members:
        if one.compress_type not in METHODS:
            raise ValueError(
                f"{where}: {one.filename!r:.100} is packed in a way that is not read; pack it "
                "again as usual (deflate)."
            )
    if sum(one.file_size for one in members) > most:
        raise beyond_limit(where, most)


def read_members(
    archive: zipfile.ZipFile, names: Iterable[str], where: str | Path, most: int
) -> dict[str, bytes]:
    """Return the content of files in an archive, which together are at most so large."""
    members = list(map(archive.getinfo, names))
    check_members(members, where, most)
    found = {}
    for one in members:
        with _open(archive, one) as file:
            # Not all that is there: that may be more than the archive says.
            found[one.filename] = file.read(one.file_size)
    return found


def read_arrays(file: BinaryIO, where: str | Path, most: int) -> dict[str, Array]:
    """Return the arrays of an npz file, in which nothing is pickled, or say what is wrong."""

    def damaged(error: Exception) -> ValueError:
        return ValueError(
            f"{where} is not an npz file of arrays, or is damaged ({first_reason(error)}); fetch "
            "or write it again."
        )

    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
    except Exception as error:  # a damaged file can fail anywhere in zipfile, zlib or NumPy
        raise damaged(error) from error
    check_members(members, where, most)
    try:
        return load_arrays(file)
    except Exception as error:
        raise damaged(error) from error
