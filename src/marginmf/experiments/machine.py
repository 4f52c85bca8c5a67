"""What is needed to read a measured figure: machine, versions, date."""

import hashlib
import os
import platform
import subprocess
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import marginmf

#: The parts of the package that figures depend on.
MEASURED = (
    "datasets/synthetic.py",
    "experiments/data.py",
    "experiments/measures",
    "backends",
    "labels",
    "losses.py",
    "metrics",
    "penalties.py",
    "protocols",
    "ratings",
    "solvers",
    "thresholds.py",
    "tuning.py",
)
#: Whose versions may matter to a figure.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def describe_run() -> dict[str, Any]:
    """Return the date, the machine, and the versions of what runs on it."""
    versions = {name: metadata.version(name) for name in LIBRARIES}
    machine = describe_machine()
    del machine["commit"]  # the digest says more: see there
    return {
        **machine,
        "version": marginmf.__version__,
        "code": code_digest(),
        "libraries": versions,
    }


def code_digest() -> str:
    """Return a digest of the sources that figures depend on.

    Unlike a commit, it is the same for all that does not matter to them, and an installed package
    has it too.
    """
    root = Path(marginmf.__file__).parent
    digest = hashlib.sha256()
    for part in MEASURED:
        path = root / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def describe_machine() -> dict[str, Any]:
    """Return the date and the machine."""
    return {
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "commit": _commit(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": _field(Path("/proc/cpuinfo"), "model name") or platform.processor(),
        "cores": os.cpu_count(),
        "memory": _field(Path("/proc/meminfo"), "MemTotal"),
        "python": platform.python_version(),
    }


def _commit() -> str | None:
    """Return the commit of the sources, with a mark where files differ from it, if they have one.

    Only the folder of the package itself is asked, so that an installed package does not claim the
    commit of whatever repository surrounds it.
    """
    root = Path(marginmf.__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=root, capture_output=True, text=True
        )
    except OSError:
        return None
    return found.stdout.strip() or None


def _field(file: Path, name: str) -> str | None:
    if not file.is_file():
        return None
    for line in file.read_text().splitlines():
        if line.startswith(name):
            return line.partition(":")[2].strip()
    return None
