from pathlib import Path
from typing import NamedTuple

import pytest
from report_samples import EVERYTHING, EXHIBITS, fill

from studies.__main__ import main
from studies.harness import Store
from studies.thesis.report import Section, write_report


class Report(NamedTuple):
    file: Path
    sections: list[Section]

    @property
    def text(self) -> str:
        return self.file.read_text()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A report with every kind of block, in which some cells have not been run."""
    folder: Path = tmp_path_factory.mktemp("report")
    store = Store(folder)
    fill(store, EVERYTHING.cells("full")[:60])
    return Report(folder / "report.md", write_report(EXHIBITS, store, "full", folder / "report.md"))


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def thesis(tmp_path: Path, monkeypatch, capsys):
    """Run ``python -m studies thesis`` with some words in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Outcome:
        capsys.readouterr()
        code = main(["thesis", *words])
        return Outcome(code, *capsys.readouterr())

    return run
