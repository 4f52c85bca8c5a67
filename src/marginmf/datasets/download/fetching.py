"""Get a file from an address: whole, checked, and from where the last try broke off."""

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from marginmf._utils.files import acquire_lock
from marginmf.datasets.download.parts import Part, Validator, described
from marginmf.datasets.download.progress import bar

CHUNK = 1 << 16


class DownloadError(OSError):
    """A file could not be downloaded, or is not the file that was expected."""


class _Readable(Protocol):
    def read1(self, amount: int, /) -> bytes: ...


def fetch(
    url: str,
    destination: str | PathLike[str],
    *,
    expected_size: int | None = None,
    sha256: str | None = None,
    progress: bool = True,
    timeout: float = 30.0,
) -> Path:
    """Download one file; it appears under its name whole and checked, or not at all.

    What came before an interruption is kept beside it as ``name.part``, and the next call asks for
    the rest alone, provided that the server says that the file is still the same. Where two
    processes want one file at once, one of them downloads it and the other waits.

    Parameters
    ----------
    url : str
        An ``http`` or ``https`` address.
    destination : path-like
        Where the file goes; its folder is made if need be.
    expected_size : int, optional
        Size in bytes that the file must have.
    sha256 : str, optional
        Checksum, in hexadecimal, that the file must have.
    progress : bool
        Show a progress bar on standard error, if that is a terminal.
    timeout : float
        Seconds to wait for the server at any one step.

    Returns
    -------
    Path
        The destination.

    Raises
    ------
    DownloadError
        If the server cannot be reached, refuses, stops half-way, or sends another file.
    """
    destination = Path(destination)
    if not url.startswith(("http://", "https://")):
        raise DownloadError(f"{url} is not an http or https address.")
    job = _Job(url, destination, expected_size, sha256, progress, timeout)
    try:
        before = _edition(job.target)
        with acquire_lock(job.target.with_name(f"{job.target.name}.lock")) as waited:
            # Whoever held the lock may have brought the file.
            if not (waited and _edition(job.target) != before and job.is_as_expected()):
                job.run()
    except urllib.error.HTTPError as error:
        error.close()
        raise DownloadError(f"{url} answered {error.code} ({error.reason}).") from error
    except urllib.error.URLError as error:
        raise DownloadError(f"{url} could not be reached: {error.reason}.") from error
    except TimeoutError as error:
        raise DownloadError(
            f"{url} did not answer within {timeout:g} seconds.{job.kept()}"
        ) from error
    except (http.client.HTTPException, ConnectionError) as error:
        raise DownloadError(f"The download of {url} broke off: {error!r}.{job.kept()}") from error
    except DownloadError:
        raise
    except OSError as error:  # a full disk, a folder that may not be written
        raise DownloadError(f"{url} could not be put into {destination}: {error}.") from error
    return destination


class _Job:
    """One download, while the lock on its destination is held."""

    def __init__(
        self,
        url: str,
        destination: Path,
        expected_size: int | None,
        sha256: str | None,
        progress: bool,
        timeout: float,
    ) -> None:
        # Where the name is a link, the file that it leads to is replaced and the link stays.
        link = destination.is_symlink()
        self.target = Path(os.path.realpath(destination)) if link else destination
        self.part = Part(self.target)
        self.url, self.progress, self.timeout = url, progress, timeout
        self.expected_size, self.sha256 = expected_size, sha256

    def run(self) -> None:
        """Get the rest of what is there, or all of it; check it, and give it its name."""
        known = self.part.validator(self.url)
        try:
            if known is None or known.size is None or known.size != self.part.size:
                known = self._get(known)
            self._check(known)
        except BaseException:
            # Without a validator nobody could tell whether the rest belongs to this beginning.
            if self.part.validator(self.url) is None:
                self.part.remove()
            raise
        self.part.become(self.target)

    def kept(self) -> str:
        """Say how much is kept for the next try, if anything is."""
        size = self.part.size if self.part.validator(self.url) else 0
        return f" {size:,} bytes are kept, and the next try goes on from there." if size else ""

    def is_as_expected(self) -> bool:
        """Tell whether the file at the destination has the size and checksum asked for."""
        if self.expected_size not in (None, self.target.stat().st_size):
            return False
        return self.sha256 is None or digest_of(self.target) == self.sha256.lower()

    def _get(self, known: Validator | None) -> Validator:
        response = self._answer(known, self.part.size)
        with response:
            start, validator = described(self.url, response.status, response.headers)
            if response.status == 206 and not (
                known is not None and start == self.part.size and known.agrees(validator)
            ):
                return self._get_afresh()
            if response.status != 206:
                self.part.remove()  # another edition, or a server that knows no ranges
                self.part.note(validator)
            with (
                open(self.part.path, "ab") as file,
                bar(self.target.name, validator.size, start, self.progress) as advance,
            ):
                for chunk in _chunks(response):
                    file.write(chunk)
                    advance(len(chunk))
        return validator

    def _answer(self, known: Validator | None, size: int) -> Any:
        request = urllib.request.Request(self.url, headers={"User-Agent": "marginmf"})
        if known is not None and known.condition is not None and size:
            request.add_header("Range", f"bytes={size}-")
            request.add_header("If-Range", known.condition)
        try:
            return urllib.request.urlopen(request, timeout=self.timeout)
        except urllib.error.HTTPError as error:
            if error.code != 416 or not request.has_header("Range"):
                raise
            error.close()  # the file is shorter now than what came of it
            return self._answer(None, 0)

    def _get_afresh(self) -> Validator:
        self.part.remove()
        return self._get(None)

    def _check(self, validator: Validator) -> None:
        size, promised = self.part.size, validator.size
        if promised is not None and size < promised:
            kept = self.kept() or " Try again."
            raise DownloadError(
                f"The download of {self.url} broke off after {size:,} of {promised:,} bytes.{kept}"
            )
        wrong = None
        if self.expected_size is not None and size != self.expected_size:
            wrong = f"{size:,} bytes where {self.expected_size:,} were expected"
        elif self.sha256 is not None:
            digest = digest_of(self.part.path)
            if digest != self.sha256.lower():
                wrong = f"a file with SHA-256 {digest} where {self.sha256.lower()} was expected"
        if wrong is not None:
            self.part.remove()
            raise DownloadError(
                f"{self.url} sent {wrong}; the file has changed or something on the way has "
                f"replaced it. What came is removed."
            )


def _chunks(response: _Readable) -> Iterator[bytes]:
    # What is there already, and no waiting for more: a timeout would lose it.
    while chunk := response.read1(CHUNK):
        yield chunk


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _edition(path: Path) -> tuple[int, int] | None:
    """Return what changes when a file is replaced; None where there is none."""
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_mtime_ns, about.st_ino
