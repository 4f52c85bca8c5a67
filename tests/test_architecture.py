"""The tree is what docs/architecture.md says: its layers, and modules of readable size."""

import ast
import re
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {"marginmf": ROOT / "src" / "marginmf", "studies": ROOT / "studies"}
LAYERS = re.search(r"```layers\n(.*?)```", (ROOT / "docs" / "architecture.md").read_text(), re.S)
MOST_LINES = 450


@cache
def modules(package: str) -> dict[str, Path]:
    """Return every module of a package by its dotted name."""
    root = SOURCES[package]
    return {
        ".".join((package, *path.relative_to(root).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path
        for path in root.rglob("*.py")
    }


@cache
def imports(package: str) -> dict[str, set[str]]:
    """Return the modules of the package that each of its modules imports, lazily or not."""
    known = modules(package)
    found: dict[str, set[str]] = {}
    for name, path in known.items():
        wanted: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{name} has a relative import"
                source = str(node.module)
                inner = {f"{source}.{alias.name}" for alias in node.names}
                wanted |= {one if one in known else source for one in inner}
        found[name] = {one for one in wanted if one in known} - {name}
    return found


def layer_of(name: str) -> int:
    """Return the position of a module's package, lowest first."""
    assert LAYERS is not None
    part = name.split(".")[1] if "." in name else "marginmf"
    lines = [line.split() for line in LAYERS[1].splitlines()]
    return next(number for number, line in enumerate(lines) if part in line)


@pytest.mark.parametrize("package", SOURCES)
def test_no_imports_in_circles(package: str) -> None:
    # The empty modules of packages import nothing of what is in them, or only what is below.
    TopologicalSorter(imports(package)).prepare()


def test_no_module_imports_from_a_higher_layer() -> None:
    upward = {
        f"{name} imports {one}"
        for name, wanted in imports("marginmf").items()
        for one in wanted
        if layer_of(one) > layer_of(name)
    }
    assert upward == set()


def test_the_library_does_not_know_the_studies() -> None:
    for path in modules("marginmf").values():
        assert not re.search(r"^\s*(from|import) studies\b", path.read_text(), re.M), path


@pytest.mark.parametrize("package", SOURCES)
def test_no_module_is_too_long(package: str) -> None:
    lines = {name: len(path.read_text().splitlines()) for name, path in modules(package).items()}
    assert {name: n for name, n in lines.items() if n > MOST_LINES} == {}


def test_text_for_a_terminal_is_made_at_one_place() -> None:
    makers = {
        name
        for name, path in modules("marginmf").items()
        if re.search(r"import Text\b|rich\.text|\bConsole\(\w", path.read_text())
    }
    assert makers == {"marginmf.cli.terminal", "marginmf.progress"}


def test_public_class_names_occur_once() -> None:
    names = Counter(
        node.name
        for path in modules("marginmf").values()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, n in names.items() if n > 1} == set()
