"""Every example in docstrings, in the README and in docs/ runs and gives the output shown."""

import doctest
import importlib
from pathlib import Path

import pytest

from examples import BLOCK, run_page
from marginmf import labels, ratings
from marginmf._utils.saved import SAVED

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")))
    if BLOCK.search(page.read_text())
]
SOURCES = ROOT / "src" / "marginmf"
MODULES = sorted(
    ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCES.rglob("*.py")
    if ">>> " in path.read_text()
)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    failures, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failures == 0


@pytest.fixture
def registries():
    """Take back the methods that a page registers."""
    kept = [(one, dict(one)) for one in (SAVED, labels.METHODS, ratings.METHODS)]
    yield
    for registry, before in kept:
        registry.clear()
        registry.update(before)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.usefixtures("registries")
def test_page_examples(page, request, monkeypatch, tmp_path):
    text = page.read_text()
    if "load_ratings" in text or "load_labels" in text:
        monkeypatch.setenv("MARGINMF_DATA", str(request.getfixturevalue("data_root")))
    monkeypatch.chdir(tmp_path)
    run_page(page)
