"""What is needed to read a measured figure: machine, versions, code, date."""

import hashlib
import os
import platform
import resource
import subprocess
import sys
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
MEASURES = [
    ROOT / "studies" / "thesis" / f"{name}.py"
    for name in ("measures", "label_trials", "systems", "penalties")
]
#: Whose versions may matter to a figure.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def describe_run() -> dict[str, Any]:
    """Return the date, the machine, what else it was doing, and the versions of the software."""
    return {
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "commit": find_commit(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": read_field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": os.cpu_count(),
        "memory": read_field("/proc/meminfo", "MemTotal"),
        "load": list(os.getloadavg()),
        "python": platform.python_version(),
        "version": marginmf.__version__,
        "code": digest_code(),
        "libraries": {name: metadata.version(name) for name in LIBRARIES},
    }


@cache
def digest_code() -> str:
    """Return a digest of the sources that figures depend on, and of nothing else."""
    package = Path(marginmf.__file__).parent
    files = package.rglob("*.py")
    own = [one for one in files if one.relative_to(package).parts[0] not in UNMEASURED]
    return digest_files([*own, *MEASURES])


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


def read_field(file: str, name: str) -> str | None:
    """Return a value from one of the files in which Linux describes itself; None elsewhere."""
    lines = Path(file).read_text().splitlines() if Path(file).is_file() else ()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)


def resident_bytes(peak: bool = False) -> int:
    """Return the memory of this process now, or the most that it has had."""
    if found := read_field("/proc/self/status", "VmHWM" if peak else "VmRSS"):
        return 1024 * int(found.split()[0])
    # Not Linux: the peak is all there is, on macOS in bytes.  (On Linux this number would count
    # what the parent process had when it started this one.)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
