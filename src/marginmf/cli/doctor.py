"""``marginmf doctor``: whether everything that marginmf needs is here and works."""

import os
import platform
import re
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import typer

import marginmf
from marginmf.cli.commands import command, describe_error
from marginmf.cli.options import ConsoleOptions

Verdict = Literal["ok", "note", "wrong"]
Answer = tuple[Verdict, str, str]
STYLES = {"ok": "green", "note": "yellow", "wrong": "bold red"}
#: Extras for people who work on marginmf, and the one that is all the others together.
NOT_FOR_USERS = {"all", "dev", "docs", "test"}
KERNELS = "NUMBA_CACHE_DIR"
# Such as: numpy>=1.26,<3 or matplotlib<4,>=3.10; extra == "plots"
REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(\[[^]]*\])?(?=[^;]*>=\s*(?P<least>[\d.]+))?(?=[^;]*<\s*(?P<below>[\d.]+))?"
    r"[^;]*(;.*extra\s*==\s*['\"](?P<extra>[\w-]+)['\"].*)?"
)


@command("marginmf doctor")
def doctor(console: ConsoleOptions) -> None:
    """Check versions, extras, cores, folders and the compiled kernels.

    Ends with exit code 1 if something must be fixed, and says how.
    """
    from marginmf.cli.output import new_table
    from marginmf.cli.terminal import styled
    from marginmf.progress import show_bar

    label = "Checking, and compiling the kernels if that is the first time"
    with show_bar(label, visible=console.progress):
        found = list(run_checks())
    wrong = [one.name for one in found if one.verdict == "wrong"]
    console.print_json({"healthy": not wrong, "checks": {one.name: asdict(one) for one in found}})
    table = new_table("check", "", "found")
    for one in found:
        text = f"{one.found}. To fix it: {one.advice}." if one.advice else one.found
        table.add_row(one.name, styled(one.verdict, STYLES[one.verdict]), text)
    console.out.print(table)
    if wrong:
        console.print(f"Something is wrong with: {', '.join(wrong)}.")
        raise typer.Exit(1)
    console.print("All is well.")


@dataclass(frozen=True)
class Check:
    """What a check found: a note is worth knowing, what is wrong must be fixed."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""


@dataclass(frozen=True)
class Requirement:
    """A distribution, its lowest supported version, the first untested one, and its extra."""

    name: str
    least: str | None = None
    below: str | None = None
    extra: str | None = None


def run_checks() -> Iterator[Check]:
    """Run every check, one after the other; a check that fails is itself a finding."""
    checks: dict[str, Callable[[], Answer]] = {
        "Python": _python,
        **{one.name: partial(_dependency, one) for one in requirements()},
        "cores": _cores,
        "Numba cache": _numba_cache,
        "data folder": _data_folder,
        "self-test": _self_test,
    }
    for name, check in checks.items():
        try:
            yield Check(name, *check())
        except Exception as error:  # whatever is broken here is what the doctor is asked about
            yield Check(name, "wrong", f"{type(error).__name__}: {describe_error(error)}")


def _python() -> Answer:
    version = marginmf.__version__
    return "ok", f"{platform.python_version()} on {platform.platform()}; marginmf {version}", ""


def _dependency(wanted: Requirement) -> Answer:
    least, below = (
        f">={wanted.least}" * bool(wanted.least),
        f",<{wanted.below}" * bool(wanted.below),
    )
    name = f"{wanted.name}{least}{below}"
    fix = f"pip install '{f'marginmf[{wanted.extra}]' if wanted.extra else name}'"
    try:
        version = metadata.version(wanted.name)
    except metadata.PackageNotFoundError:
        if wanted.extra:
            return "note", f"not installed; it is in the extra {wanted.extra!r}", fix
        return "wrong", "missing", fix
    if is_too_old(version, wanted.least):
        return "wrong", f"{version}, older than {wanted.least}", fix
    if wanted.below and not is_too_old(version, wanted.below):
        return "note", f"{version}, with which marginmf was not tested", fix
    return "ok", version, ""


def _cores() -> Answer:
    from joblib import effective_n_jobs

    return "ok", f"{os.cpu_count()} cores, {effective_n_jobs(-1)} threads by default", ""


def _numba_cache() -> Answer:
    from marginmf.backends.cpu import linear_algebra

    found, wanted = linear_algebra.scores.stats.cache_path, os.environ.get(KERNELS)
    lost = "so each process compiles the kernels that it uses, which takes 5 to 20 seconds"
    advice = f"set {KERNELS} to a folder of your own that can be written to"
    if found is None:
        return "note", f"compiled kernels are not kept, {lost}", advice
    folder = Path(found)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = f"{folder} cannot be written to ({error.strerror})"
        return "note", f"{reason}: kernels that are there are used, others not kept", advice
    if wanted and not folder.is_relative_to(wanted):
        return "note", f"{folder} can be written to, but not {KERNELS}={wanted}", advice
    return "ok", f"{folder} can be written to", ""


def _data_folder() -> Answer:
    from marginmf.datasets import cache, dataset_info, dataset_names

    try:
        folder = cache.cache_folder()
    except OSError as error:
        return "note", str(error).partition(":")[0], "set HOME or XDG_CACHE_HOME to a folder"
    kept = [name for name in dataset_names() if cache.cached_path(dataset_info(name)).exists()]
    found, variable = f"{folder} holds {', '.join(kept) or 'no dataset yet'}", cache.DATA_FOLDER
    named = os.environ.get(variable)
    if named and not Path(named).is_dir():
        advice = f"correct or remove the environment variable {variable}"
        return "note", f"{found}; {variable}={named} is not a folder", advice
    return "ok", f"{found}; {variable}={named}" if named else found, ""


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
        upgrade = f"{sys.executable} -m pip install --upgrade numba"
        advice = f"remove the Numba cache and try again ({upgrade} if that does not help)"
        return "wrong", f"compiled kernels and their NumPy reference differ by {apart:.2g}", advice
    accuracy = float((compiled.predict(data.pairs) == data.ratings).mean())
    return "ok", f"compiled kernels agree with NumPy; {accuracy:.0%} of ratings recovered", ""


def requirements() -> list[Requirement]:
    """Return what every user needs, then what each extra needs."""
    found = [parse_requirement(line) for line in _requirement_lines()]
    wanted = [one for one in found if one.extra not in NOT_FOR_USERS and one.name != "marginmf"]
    return sorted(wanted, key=lambda one: (one.extra is not None, one.extra or "", one.name))


def parse_requirement(line: str) -> Requirement:
    """Read one requirement.

    >>> parse_requirement('matplotlib<4,>=3.10; extra == "plots"')
    Requirement(name='matplotlib', least='3.10', below='4', extra='plots')
    """
    match = REQUIREMENT.match(line)
    assert match is not None, line
    return Requirement(match["name"], match["least"], match["below"], match["extra"])


def is_too_old(version: str, least: str | None) -> bool:
    """Whether a version is below the lowest supported one, by the numbers it begins with.

    >>> is_too_old("1.9.0", "1.26"), is_too_old("2.0rc1", "1.26"), is_too_old("4.0.0", "4")
    (True, False, False)
    """
    starts = (re.match(r"\d+(\.\d+)*", text) for text in (version, least or ""))
    found, lowest = ([int(n) for n in one[0].split(".")] if one else [] for one in starts)
    return found + [0] * len(lowest) < lowest


def _requirement_lines() -> Iterator[str]:
    """Yield requirements as they are written: beside the sources, else as installed."""
    beside = Path(marginmf.__file__).parents[2] / "pyproject.toml"
    project = tomllib.loads(beside.read_text())["project"] if beside.is_file() else {}
    if project.get("name") != "marginmf":
        yield from metadata.requires("marginmf") or ()
        return
    yield from project["dependencies"]
    for extra, lines in project.get("optional-dependencies", {}).items():
        yield from (f'{line}; extra == "{extra}"' for line in lines)
