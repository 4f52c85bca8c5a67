"""The site leaves nothing out: every public name is in the reference, every page in the menu."""

import re
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

import marginmf

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def documented() -> set[str]:
    """Return the dotted names that the pages of the reference are made from."""
    pages = (DOCS / "reference").glob("*.md")
    return {name for page in pages for name in re.findall(r"^::: (\S+)", page.read_text(), re.M)}


@pytest.mark.parametrize("name", sorted(set(marginmf.__all__) - {"__version__"}))
def test_every_public_name_is_in_the_reference(name: str) -> None:
    public, wanted = getattr(marginmf, name), {f"marginmf.{name}"}
    if not isinstance(public, ModuleType):
        # A function is on the page of its package.
        wanted = {".".join(public.__module__.split(".")[:2])}
    elif not wanted <= documented():
        # No page shows the whole module, so each of its names must have an entry.
        wanted = {f"marginmf.{name}.{member}" for member in public.__all__}
    assert wanted - documented() == set()


def test_every_page_is_in_the_menu() -> None:
    menu = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    assert {page.relative_to(DOCS).as_posix() for page in DOCS.glob("**/*.md")} == menu


def test_every_command_of_the_contributing_page_is_run_by_the_checks() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    checks = (ROOT / ".ci" / "run").read_text()
    commands = set(re.findall(r"^make [a-z-]+", page, re.M)) - {"make help"}
    assert commands
    assert commands <= set(re.findall(r"^make [a-z-]+", checks, re.M))


def test_make_lists_every_command() -> None:
    command = ["make", "--no-print-directory", "help"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.M)
    assert phony is not None
    assert {line.split()[0] for line in listed.stdout.splitlines()} == set(phony[1].split())
