"""A file to read, perhaps more than once: plain or gzip, on a disk or through a pipe."""

import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO

HEAD_BYTES = 4096
GZIP_MARK = b"\x1f\x8b"


class Source:
    """A file that is there, and how it begins.

    Parameters
    ----------
    path : path-like
        The file.
    content : str
        What it holds, for messages: "ratings" or "pairs".
    data : bytes, optional
        The bytes of the file, if they are at hand, as those of a file inside an archive are.
    """

    def __init__(
        self, path: str | PathLike[str], content: str = "ratings", data: bytes | None = None
    ) -> None:
        self.path = Path(path)
        self.where = str(self.path)
        self.content = content
        self.data = data
        beginning = self._beginning() if data is None else data[:HEAD_BYTES]
        self.compressed = beginning.startswith(GZIP_MARK)  # whatever the file is called
        self.head = self._unpacked_head() if self.compressed else beginning

    def _beginning(self) -> bytes:
        if self.path.is_dir():
            raise IsADirectoryError(
                f"{self.path} is a folder; name the file of {self.content} inside it."
            )
        try:
            with open(self.path, "rb") as file:
                if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return file.read(HEAD_BYTES)
                # What comes through a pipe comes once, and several looks at it are needed.
                self.data = file.read()
                return self.data[:HEAD_BYTES]
        except FileNotFoundError:
            raise FileNotFoundError(
                f"There is no file {self.path}; check the name and the folder "
                f"(now in {Path.cwd()})."
            ) from None

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the content, unpacked where it is gzip, and say so if it is damaged."""
        try:
            with open(self.path, "rb") if self.data is None else io.BytesIO(self.data) as file:
                if self.compressed:
                    with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
                        yield unpacked  # type: ignore[misc]
                else:
                    yield file
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{self.where} is a damaged gzip file ({error}); fetch or compress it again."
            ) from error

    def _unpacked_head(self) -> bytes:
        with self.open() as file:
            return file.read(HEAD_BYTES)
