"""Every example in docstrings, in the README and in docs/ runs and gives the output shown."""

import contextlib
import doctest
import importlib
import io
import pkgutil
import re
from pathlib import Path

import pytest

import marginmf
from marginmf import labels, ratings
from marginmf._utils.saved import SAVED

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(marginmf.__path__, "marginmf.")
    if not module.name.endswith("__main__")
)
# A block of Python and, where the next block is text, the output that it prints.
BLOCK = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)


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
    names: dict[str, object] = {}
    for code, expected in BLOCK.findall(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), names)
        assert printed.getvalue().strip() == expected.strip(), code
