import json
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from numba.core.caching import NullCache

from marginmf.backends.cpu import linear_algebra
from marginmf.cli.doctor import (
    Check,
    Requirement,
    parse_requirement,
    requirements,
    run_checks,
)

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def check(name: str) -> Check:
    return next(one for one in run_checks() if one.name == name)


def test_all_is_well_here(run) -> None:
    outcome = run("doctor", "--json", "--quiet")
    result = json.loads(outcome.out)
    wrong = {name: one for name, one in result["checks"].items() if one["verdict"] == "wrong"}
    assert (outcome.code, result["healthy"], wrong) == (0, True, {})
    assert result["checks"]["numpy"]["found"] == metadata.version("numpy")
    assert "agree" in result["checks"]["self-test"]["found"]


def test_every_dependency_is_looked_at() -> None:
    names = {one.name for one in requirements() if one.extra is None}
    assert names == {parse_requirement(line).name for line in PROJECT["dependencies"]}


def test_every_extra_is_looked_at() -> None:
    extras = {one.extra for one in requirements()} - {None}
    assert extras == set(PROJECT["optional-dependencies"]) - {"all", "dev", "docs", "test"}


def test_the_same_requirements_when_installed(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    expected = requirements()
    lines = [*PROJECT["dependencies"]]
    for extra, wanted in PROJECT["optional-dependencies"].items():
        lines += [f"{line} ; extra == '{extra}'" for line in wanted]
    monkeypatch.setattr("marginmf.__file__", str(tmp_path / "lib/site/marginmf/__init__.py"))
    monkeypatch.setattr(metadata, "requires", lambda name: lines)
    assert requirements() == expected


def test_a_dependency_that_is_too_old_is_wrong(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "0.1")
    outcome = run("doctor")
    assert outcome.code == 1
    assert "0.1, older than 1.26. To fix it: pip install 'numpy>=1.26,<3'." in outcome.out
    assert "Something is wrong with: joblib, narwhals, numba, numpy" in outcome.out


def test_a_dependency_that_is_newer_than_the_tests_is_a_note(monkeypatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "99.0")
    found = check("scipy")
    assert (found.verdict, found.found) == ("note", "99.0, with which marginmf was not tested")
    assert found.advice == "pip install 'scipy>=1.11.1,<2'"


@pytest.mark.parametrize("line", ["numpy>=1.26,<3", "numpy<3,>=1.26", "numpy <3, >=1.26"])
def test_both_ends_of_a_range_are_read_as_written_and_as_installed(line: str) -> None:
    assert parse_requirement(line) == Requirement("numpy", "1.26", "3", None)
    extra = parse_requirement(f"{line}; python_version < '4' and extra == 'io'")
    assert extra == Requirement("numpy", "1.26", "3", "io")


def test_every_dependency_has_both_ends() -> None:
    extras = [line for lines in PROJECT["optional-dependencies"].values() for line in lines]
    for line in [*PROJECT["dependencies"], *extras]:
        found = parse_requirement(line)
        assert found.name == "marginmf" or (found.least and found.below), line


def test_a_missing_extra_is_a_note_with_the_line_for_pip(monkeypatch) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    assert check("matplotlib").verdict == "note"
    assert check("matplotlib").advice == "pip install 'marginmf[plots]'"
    assert check("numba").verdict == "wrong"


def test_kernels_that_compute_something_else_are_wrong(monkeypatch) -> None:
    from marginmf.backends.reference import ReferenceBackend

    right = ReferenceBackend.scores
    monkeypatch.setattr(
        ReferenceBackend, "scores", lambda self, *arrays: right(self, *arrays) + 1e-3
    )
    finding = check("self-test")
    assert finding.verdict == "wrong"
    assert "differ by" in finding.found


def test_a_broken_part_is_a_finding_and_not_the_end(monkeypatch) -> None:
    monkeypatch.setitem(
        sys.modules, "marginmf.backends.cpu.backend", None
    )  # importing it now fails
    assert check("self-test").verdict == "wrong"
    assert "ImportError" in check("self-test").found or "ModuleNotFound" in check("self-test").found


def test_kernels_that_cannot_be_kept_are_a_note(monkeypatch) -> None:
    def refuse(*arguments: object, **named: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    found = check("Numba cache")
    assert found.verdict == "note"
    assert "cannot be written to (Permission denied): kernels that are there are" in found.found
    assert "NUMBA_CACHE_DIR" in found.advice
    monkeypatch.setattr(linear_algebra.scores, "_cache", NullCache())
    found = check("Numba cache")
    assert found.verdict == "note"
    assert "are not kept, so each process compiles the kernels that it uses" in found.found
    assert "NUMBA_CACHE_DIR" in found.advice


def test_a_named_folder_for_kernels_that_is_not_used_is_a_note(monkeypatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/no/such/folder")
    found = check("Numba cache")
    assert found.verdict == "note"
    assert "but not NUMBA_CACHE_DIR=/no/such/folder" in found.found


def test_a_user_without_a_home_is_a_note(monkeypatch) -> None:
    def refuse(*arguments: object, **named: object) -> str:
        raise RuntimeError("could not determine the home directory")

    for answer in (refuse, lambda *arguments, **named: "~/.cache/marginmf"):
        monkeypatch.setattr("platformdirs.user_cache_dir", answer)
        finding = check("data folder")
        assert finding.verdict == "note"
        assert "no home" in finding.found
        assert "XDG_CACHE_HOME" in finding.advice


def test_a_data_folder_that_is_not_there_is_a_note(monkeypatch) -> None:
    monkeypatch.setenv("MARGINMF_DATA", "/no/such/folder")
    finding = check("data folder")
    assert finding.verdict == "note"
    assert "/no/such/folder is not a folder" in finding.found
