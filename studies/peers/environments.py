"""A virtual environment for each peer, with pinned versions, made when it is first needed.

An environment is built under a temporary name and renamed when it is whole, so that an interrupted
installation is never taken for a finished one.  A note inside it says what it was made from:
change a pin, or the Python, and it is made again.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from studies.harness.commands import OUT

#: Where environments are kept unless `--venvs` names another folder.
FOLDER = OUT / "venvs"
NOTE = "made-from.json"
SCIENCE = ("numpy==2.4.6", "scipy==1.17.1")
PANDAS, ARROW = "pandas==2.3.3", "pyarrow==26.0.1"


class Unavailable(Exception):  # noqa: N818, a state of the world more than an error
    """A peer cannot be run here; the message is the reason, in one line."""


class Environment(NamedTuple):
    """What to install for one peer, and the programs that must be there already.

    ``alone`` is installed without what it declares: a part of it needs less.
    """

    pins: tuple[str, ...]
    programs: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()


#: What a peer fails to declare stands behind it.
ENVIRONMENTS = {
    "surprise": Environment(("scikit-surprise==1.1.5", *SCIENCE)),
    "cmfrec": Environment(("cmfrec==3.5.1.post14", "threadpoolctl==3.8.0", PANDAS, *SCIENCE)),
    "lenskit": Environment(("lenskit==2025.8.1", "torch==2.13.0", PANDAS, ARROW, *SCIENCE)),
    "libmf": Environment(("libmf==0.9.2", *SCIENCE)),
    "myfm": Environment(("myfm==0.4.0", "setuptools==80.10.2", *SCIENCE)),
    "smurff": Environment(("smurff==1.1", *SCIENCE)),
    "cornac": Environment(("cornac==3.0.1", *SCIENCE)),
    "implicit": Environment(("implicit==0.7.3", "threadpoolctl==3.8.0", *SCIENCE)),
    "pyspark": Environment(
        ("pyspark==4.3.0", PANDAS, ARROW, "setuptools==80.10.2", *SCIENCE), programs=("java",)
    ),
    "scikit-multilearn": Environment(
        ("scikit-multilearn-ng==0.0.8", "scikit-learn==1.9.1", *SCIENCE)
    ),
    "scikit-learn": Environment(("scikit-learn==1.9.1", *SCIENCE)),
    # Its linear models need neither PyTorch nor transformers, but matrices of an older SciPy.
    "pecos": Environment(
        ("numpy==1.26.4", "scipy==1.11.4", "scikit-learn==1.5.2"), alone=("libpecos==1.2.8",)
    ),
}


class Environments:
    """The environments in one folder; what could not be made is remembered, not tried again."""

    def __init__(self, folder: Path = FOLDER, known: dict[str, Environment] = ENVIRONMENTS) -> None:
        self.folder = folder.absolute()
        self.known = known
        self._failures: dict[str, str] = {}

    def python(self, name: str) -> str:
        """Return the interpreter of a peer, ours where the name is empty; make it if need be."""
        if not name:
            return sys.executable
        if name in self._failures:
            raise Unavailable(self._failures[name])
        try:
            return str(self._ready(name) / "bin" / "python")
        except Unavailable as reason:
            self._failures[name] = str(reason)
            raise

    def _ready(self, name: str) -> Path:
        environment = self.known[name]
        for program in environment.programs:
            if shutil.which(program) is None:
                raise Unavailable(f"{name} needs {program}, which is not on the path")
        folder = self.folder / name
        pins = [*environment.pins, *environment.alone]
        made_from = {"pins": pins, "python": sys.version.split()[0]}
        note = folder / NOTE
        if note.is_file() and json.loads(note.read_text()) == made_from:
            return folder
        print(f"Making an environment for {name}: {' '.join(pins)}", file=sys.stderr)
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = Path(mkdtemp(prefix=f".{name}-", dir=self.folder))
        try:
            _install(temporary, environment)
            (temporary / NOTE).write_text(json.dumps(made_from, indent=1))
            if folder.exists():
                shutil.rmtree(folder)
            os.replace(temporary, folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        return folder


def _install(folder: Path, environment: Environment) -> None:
    """Make an environment and install into it; on failure say what the last line of pip was."""
    install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    commands = [[sys.executable, "-m", "venv", str(folder)], [*install, *environment.pins]]
    if environment.alone:
        commands.append([*install, "--no-deps", *environment.alone])
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise Unavailable(f"does not install: {last_line(done.stderr or done.stdout)}")


def last_line(text: str) -> str:
    """Return the last line that says something.

    >>> last_line("Traceback\\nValueError: no\\n\\n")
    'ValueError: no'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it says nothing"
