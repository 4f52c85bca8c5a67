"""The checks that ``marginmf doctor`` makes; each says what was found and what to do about it."""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from marginmf.cli.requirements import Requirement, requirements, too_old

Verdict = Literal["ok", "note", "wrong"]
Answer = tuple[Verdict, str, str]


@dataclass(frozen=True)
class Finding:
    """One check: ``note`` is worth knowing, ``wrong`` has to be mended; ``advice`` says how."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""


def findings() -> Iterator[Finding]:
    """Make every check, one after the other; a check that fails is itself a finding."""
    yield _finding("Python", _python)
    for one in requirements():
        yield _finding(one.name, partial(_dependency, one))
    yield _finding("cores", _cores)
    yield _finding("Numba cache", _numba_cache)
    yield _finding("data folder", _data_folder)
    yield _finding("GPU", _gpu)
    yield _finding("self-test", _self_test)


def _finding(name: str, check: Callable[[], Answer]) -> Finding:
    try:
        return Finding(name, *check())
    except Exception as error:  # whatever is broken here is what the doctor is asked about
        reason = " ".join(str(error).split()) or type(error).__name__
        return Finding(name, "wrong", f"{type(error).__name__}: {reason}")


def _python() -> Answer:
    from marginmf import __version__

    return "ok", f"{platform.python_version()} on {platform.platform()}; marginmf {__version__}", ""


def _dependency(wanted: Requirement) -> Answer:
    mend = f"pip install '{wanted.install}'"
    missing: Verdict = "note" if wanted.extra else "wrong"
    try:
        version = metadata.version(wanted.name)
    except metadata.PackageNotFoundError:
        why = f"not installed; it is in the extra {wanted.extra!r}" if wanted.extra else "missing"
        return missing, why, mend
    if too_old(version, wanted.least):
        return "wrong", f"{version}, older than {wanted.least}", mend
    return "ok", version, ""


def _cores() -> Answer:
    from joblib import effective_n_jobs

    return "ok", f"{os.cpu_count()} cores, {effective_n_jobs(-1)} threads unless told", ""


def _numba_cache() -> Answer:
    from marginmf.backends.cpu import linear_algebra

    folder = Path(str(linear_algebra.scores.stats.cache_path))
    advice = "set NUMBA_CACHE_DIR to a folder that can be written to"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return "wrong", f"{folder} cannot be written to ({error.strerror})", advice
    return "ok", f"{folder} can be written to", ""


def _data_folder() -> Answer:
    from marginmf.datasets import dataset_info, dataset_names, places

    folder = places.cache_folder()
    kept = [name for name in dataset_names() if places.kept_file(dataset_info(name)).exists()]
    found = f"{folder} holds {', '.join(kept) or 'no dataset yet'}"
    named = os.environ.get(places.DATA_FOLDER)
    if not named:
        return "ok", found, ""
    if not Path(named).is_dir():
        advice = f"correct or remove the environment variable {places.DATA_FOLDER}"
        return "note", f"{found}; {places.DATA_FOLDER}={named} is not a folder", advice
    return "ok", f"{found}; {places.DATA_FOLDER}={named}", ""


def _gpu() -> Answer:
    if find_spec("torch") is not None:
        torch = import_module("torch")  # an extra that the type checker need not have
        if torch.cuda.is_available():
            return "ok", f"{torch.cuda.get_device_name(0)}, through torch {torch.__version__}", ""
    program = shutil.which("nvidia-smi")
    if program is None:
        return "note", "none found; the processor does the work", ""
    listed = subprocess.run(
        [program, "--query-gpu=name", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    names = listed.stdout.strip().replace("\n", ", ")
    if listed.returncode or not names:
        return "note", "none that answers; the processor does the work", ""
    return "note", f"{names}, but torch does not see it", ""


def _self_test() -> Answer:
    """Fit and predict with the compiled kernels and with their oracle, and compare."""
    import numpy as np

    from marginmf.backends import BACKENDS
    from marginmf.datasets import make_ratings
    from marginmf.ratings import HMF

    data = make_ratings(30, 20, n_factors=2, observed=0.5, random_state=0)
    # Few steps, so that rounding has no time to grow.
    settings: dict[str, Any] = {"max_iter": 5, "random_state": 0, "dtype": "float64"}
    compiled, oracle = (
        HMF(4, 1.0, backend=backend, **settings).fit(data.pairs, data.ratings)
        for backend in BACKENDS
    )
    ours, theirs = (model.decision_function(data.pairs) for model in (compiled, oracle))
    apart = float(np.abs(ours - theirs).max())
    if not apart < 1e-6:
        return (
            "wrong",
            f"compiled kernels and their NumPy reference differ by {apart:.2g}",
            f"remove the Numba cache and try again ({sys.executable} -m pip install --upgrade "
            "numba if that does not help)",
        )
    accuracy = float((compiled.predict(data.pairs) == data.ratings).mean())
    return "ok", f"compiled kernels agree with NumPy; {accuracy:.0%} of ratings recovered", ""
