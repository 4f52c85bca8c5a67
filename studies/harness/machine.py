"""What is needed to read a measured figure: machine, versions, code, date."""

import hashlib
import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import marginmf

ROOT = Path(__file__).resolve().parents[2]
#: Parts of the package that no figure depends on.
UNMEASURED = ("cli", "plots")
#: Measures that live outside the package.
MEASURES = ROOT / "studies" / "thesis" / "measures.py"
#: Whose versions may matter to a figure.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def describe_run() -> dict[str, Any]:
    """Return the date, the machine, what else it was doing, and the versions of the software."""
    return {
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "commit": find_commit(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": _read_field(Path("/proc/cpuinfo"), "model name") or platform.processor(),
        "cores": os.cpu_count(),
        "memory": _read_field(Path("/proc/meminfo"), "MemTotal"),
        "load": list(os.getloadavg()),
        "python": platform.python_version(),
        "version": marginmf.__version__,
        "code": digest_code(),
        "libraries": {name: metadata.version(name) for name in LIBRARIES},
    }


@cache
def digest_code() -> str:
    """Return a digest of the sources that figures depend on.

    Unlike a commit, it does not change with anything else.
    """
    package = Path(marginmf.__file__).parent
    own = [
        file
        for file in package.rglob("*.py")
        if file.relative_to(package).parts[0] not in UNMEASURED
    ]
    return digest_files([*own, MEASURES])


def digest_files(files: Iterable[Path]) -> str:
    """Return a digest of the names and contents of some files."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def find_commit(root: Path = ROOT) -> str | None:
    """Return the commit of the checkout, marked where files differ from it; None without git."""
    if not (root / ".git").exists():
        return None
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=root, capture_output=True, text=True
        )
    except OSError:
        return None
    return found.stdout.strip() or None


def _read_field(file: Path, name: str) -> str | None:
    if not file.is_file():
        return None
    lines = file.read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)
