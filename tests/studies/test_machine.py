from pathlib import Path

import marginmf
from studies.harness import machine


def test_a_run_is_described_by_machine_and_versions() -> None:
    found = machine.describe_run()
    assert found["version"] == marginmf.__version__
    assert found["libraries"].keys() == set(machine.LIBRARIES)
    assert found["cores"] >= 1
    assert found["date"][4] == "-"


def test_without_a_repository_there_is_no_commit(tmp_path: Path) -> None:
    assert machine.find_commit(tmp_path) is None


def test_without_git_there_is_no_commit(monkeypatch, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.find_commit(tmp_path) is None
