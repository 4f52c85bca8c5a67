from pathlib import Path

import marginmf
from marginmf.experiments import machine


def test_a_run_is_described_by_machine_and_versions() -> None:
    found = machine.describe_run()
    assert found["version"] == marginmf.__version__
    assert found["libraries"].keys() == set(machine.LIBRARIES)
    assert found["cores"] >= 1
    assert found["date"][4] == "-"


def test_an_installed_package_has_no_commit(monkeypatch, tmp_path: Path) -> None:
    # Even where a repository of somebody else surrounds it.
    (tmp_path / ".git").mkdir()
    place = tmp_path / "lib" / "python" / "site-packages" / "marginmf" / "__init__.py"
    monkeypatch.setattr(marginmf, "__file__", str(place))
    assert machine.describe_machine()["commit"] is None


def test_without_git_there_is_no_commit(monkeypatch, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(marginmf, "__file__", str(tmp_path / "src" / "marginmf" / "__init__.py"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.describe_machine()["commit"] is None
