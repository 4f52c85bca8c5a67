"""Importing is cheap: nothing heavy is loaded before it is needed."""

import subprocess
import sys

import pytest


def modules_after(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in run.stdout.split()}


def test_the_package_alone_imports_nothing_heavy():
    heavy = {"numpy", "scipy", "sklearn", "numba", "matplotlib", "rich", "typer", "narwhals"}
    assert not modules_after("import marginmf") & heavy


def test_numba_and_matplotlib_wait_until_they_are_needed():
    modules = "ratings protocols datasets backends cli labels plots persistence stats"
    statement = "; ".join(f"import marginmf.{module}" for module in modules.split())
    assert not modules_after(statement) & {"numba", "matplotlib"}


def test_submodules_are_attributes():
    import marginmf

    assert "ratings" in dir(marginmf)
    assert marginmf.ratings.HMF.__name__ == "HMF"
    assert marginmf.load is marginmf.persistence.load
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        marginmf.nonsense  # noqa: B018
