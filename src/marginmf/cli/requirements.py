"""What marginmf needs, and what its extras need: from the package's own metadata."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from itertools import zip_longest
from pathlib import Path

import marginmf

#: Extras for people who work on marginmf, and the one that is all the others together.
NOT_FOR_USERS = {"all", "dev", "docs", "test"}
# Such as: numpy>=1.26 or matplotlib>=3.10; extra == "plots"
WRITTEN = re.compile(
    r"(?P<name>[\w.-]+)(\[[^]]*\])?\s*(>=\s*(?P<least>[\d.]+))?[^;]*"
    r"(;.*extra\s*==\s*['\"](?P<extra>[\w-]+)['\"].*)?"
)


@dataclass(frozen=True)
class Requirement:
    """A distribution, the lowest version of it that will do, and the extra that wants it."""

    name: str
    least: str | None = None
    extra: str | None = None

    @property
    def install(self) -> str:
        """What to give to pip: the extra, or the distribution itself."""
        if self.extra:
            return f"marginmf[{self.extra}]"
        return f"{self.name}>={self.least}" if self.least else self.name


def requirements() -> list[Requirement]:
    """Return what every user needs, then what each extra needs."""
    found = [parse(line) for line in _lines()]
    wanted = [one for one in found if one.extra not in NOT_FOR_USERS and one.name != "marginmf"]
    return sorted(wanted, key=lambda one: (one.extra is not None, one.extra or "", one.name))


def parse(line: str) -> Requirement:
    """Read one requirement.

    >>> parse('matplotlib>=3.10; extra == "plots"')
    Requirement(name='matplotlib', least='3.10', extra='plots')
    """
    match = WRITTEN.match(line)
    if match is None:
        raise ValueError(f"The requirement {line!r} cannot be read.")
    return Requirement(match["name"], match["least"], match["extra"])


def too_old(version: str, least: str | None) -> bool:
    """Whether a version is below the lowest that will do, by the numbers it begins with.

    >>> too_old("1.9.0", "1.26"), too_old("2.0rc1", "1.26"), too_old("4.0.0", "4")
    (True, False, False)
    """
    if least is None:
        return False
    mine, theirs = _numbers(version), _numbers(least)
    for a, b in zip_longest(mine, theirs, fillvalue=0):
        if a != b:
            return a < b
    return False


def _numbers(version: str) -> list[int]:
    match = re.match(r"\d+(\.\d+)*", version)
    return [int(part) for part in match[0].split(".")] if match else []


def _lines() -> Iterator[str]:
    """Yield requirements as they are written: beside the sources, else as installed."""
    beside = Path(marginmf.__file__).parents[2] / "pyproject.toml"
    if beside.is_file():
        project = tomllib.loads(beside.read_text())["project"]
        if project.get("name") == "marginmf":
            yield from project["dependencies"]
            for extra, lines in project.get("optional-dependencies", {}).items():
                yield from (f'{line}; extra == "{extra}"' for line in lines)
            return
    yield from metadata.requires("marginmf") or ()
