"""How faulty input is tested: one line that says it, exit code 2, and nothing left behind."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

import marginmf
from marginmf.cli.app import app

SOURCES = Path(marginmf.__file__).parents[1]


#: A parameter as Python has it, such as ``reg=-1`` or ``labels=``, but for ``--set reg=-1``.
PARAMETER = re.compile(r"(?<!--set )(?<![\w.-])[a-z_]+=|\w\(\.\.\.")
#: Where the command line speaks of what ``--set`` takes.
EXAMPLES = re.compile(r"write it as name=value, .*")


class Case(NamedTuple):
    """Arguments, and the message that they must get."""

    arguments: str
    message: str


def case(name: str, arguments: str, message: str) -> object:
    return pytest.param(Case(arguments, message), id=name)


def lines(*rows: str) -> bytes:
    return "\n".join(rows).encode() + b"\n"


def fill(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, with folders beside them that cases speak of."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    for name in ("folder", "f.csv", "locked"):
        (folder / name).mkdir()


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder, as somebody who may not write to the one that is called locked."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(os, "access", _locked(os.access))
    return folder


def _locked(access: Callable[..., bool]) -> Callable[..., bool]:
    """Return ``os.access`` without the right to write to one folder, also for root."""
    return lambda path, mode: Path(path).name != "locked" and access(path, mode)


def listing(folder: Path) -> dict[str, bytes | None]:
    """Return every path below a folder, with its content if it is a file."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def check_refused(folder: Path, faulty: Case) -> None:
    """Run a command in this process."""
    before = listing(folder)
    result = CliRunner().invoke(app, faulty.arguments.split(), prog_name="marginmf")
    assert isinstance(result.exception, SystemExit), result.exception
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("marginmf: ")
    assert result.stderr.count("\n") == 1
    assert faulty.message in result.stderr
    assert not PARAMETER.search(EXAMPLES.sub("", result.stderr))
    assert listing(folder) == before


def check_refused_by_process(folder: Path, faulty: Case) -> None:
    """Run a command in a process of its own."""
    before = listing(folder)
    done = subprocess.run(
        [sys.executable, "-m", "marginmf", *faulty.arguments.split()],
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("marginmf: ")
    assert done.stderr.count("\n") == 1
    assert faulty.message in done.stderr
    assert listing(folder) == before
