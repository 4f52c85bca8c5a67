"""What the checks install is pinned, hashed, and within the ranges of pyproject.toml."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = DOCUMENT["project"]
EXTRAS = PROJECT["optional-dependencies"]
FILES = (".ci/constraints.txt", ".ci/constraints-lowest.txt")
PIN = re.compile(
    r"(?P<name>[a-z0-9-]+)==(?P<version>[\w.+!]+)( ; [^\\]+)? \\\n(?P<hashes>(    --hash.*\n)+)"
)
HASHES = re.compile(r"(    --hash=sha256:[0-9a-f]{64}( \\)?\n)+")


def pins(file: str) -> dict[str, Version]:
    found = PIN.finditer((ROOT / file).read_text())
    return {match["name"]: Version(match["version"]) for match in found}


def ranges(lines: list[str]) -> dict[str, Requirement]:
    found = [Requirement(line) for line in lines]
    return {canonicalize_name(one.name): one for one in found if one.name != "marginmf"}


@pytest.mark.parametrize("file", FILES)
def test_a_file_has_pins_with_hashes_and_nothing_else(file: str) -> None:
    text = (ROOT / file).read_text()
    assert text.startswith("# Python 3.11 on Linux\n")
    rest = re.sub("^#.*\n", "", PIN.sub("", text), flags=re.MULTILINE)
    assert rest == ""  # so no index, no address and no path either
    for match in PIN.finditer(text):
        assert HASHES.fullmatch(match["hashes"])


def test_the_newest_pins_are_within_the_ranges_and_complete() -> None:
    lines = PROJECT["dependencies"] + [line for group in EXTRAS.values() for line in group]
    wanted, pinned = ranges([*lines, *DOCUMENT["build-system"]["requires"]]), pins(FILES[0])
    assert not set(wanted) - set(pinned)
    for name, requirement in wanted.items():
        assert requirement.specifier.contains(pinned[name]), requirement


def test_the_lowest_pins_are_the_lower_ends() -> None:
    pinned = pins(FILES[1])
    for name, requirement in ranges(PROJECT["dependencies"]).items():
        (least,) = (one.version for one in requirement.specifier if one.operator == ">=")
        assert pinned[name] == Version(least)


def test_the_backend_is_the_same_with_isolation_and_without() -> None:
    assert set(DOCUMENT["build-system"]["requires"]) <= set(EXTRAS["dev"])


def test_the_lowest_are_printed_for_pip() -> None:
    command = [sys.executable, str(ROOT / ".ci" / "lowest"), "pyarrow"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert {"numpy==1.26", "numba==0.60", "pyarrow==15"} < set(shown)
    assert all(re.fullmatch(r"[\w-]+==[\d.]+", line) for line in shown)


STUB = """#!/bin/sh
if [ "$1" = -c ]; then exec '{python}' "$@"; fi
echo "$@" >> calls
case "$*" in *refused*) exit 1 ;; esac
"""


@pytest.mark.skipif(shutil.which("bash") is None or os.name == "nt", reason="there is no bash here")
@pytest.mark.parametrize(
    ("pinned", "head", "file", "said", "calls"),
    [
        ("", "", "f", "", ["--editable .[dev]"]),
        (
            "1",
            "# Python 2.7 on VMS",
            "f",
            "f is for Python 2.7 on VMS: pip chooses",
            ["--editable .[dev]"],
        ),
        (
            "1",
            "",
            "f",
            "",
            [
                "--require-hashes --only-binary :all: --requirement f",
                "--no-deps --no-build-isolation --editable .",
            ],
        ),
        ("1", "", "refused", "", ["--require-hashes --only-binary :all: --requirement refused"]),
    ],
)
def test_hashes_are_demanded_where_the_file_fits(
    pinned: str, head: str, file: str, said: str, calls: list[str], tmp_path: Path
) -> None:
    python, this = tmp_path / "python", f"{sys.version_info[0]}.{sys.version_info[1]}"
    python.write_text(STUB.format(python=sys.executable))
    python.chmod(0o755)
    system = os.uname().sysname
    (tmp_path / file).write_text(f"{head or f'# Python {this} on {system}'}\n")
    command = [str(ROOT / ".ci" / "install"), "./python", file, "--editable", ".[dev]"]
    ran = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PINNED": pinned},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == (1 if file == "refused" else 0)
    assert said in ran.stderr
    begin = "-m pip install --quiet --disable-pip-version-check "
    assert (tmp_path / "calls").read_text().splitlines() == [begin + call for call in calls]
