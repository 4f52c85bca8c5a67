"""Streams that are closed, full or narrow, and encodings without the letters, end no command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults import SOURCES

posix = pytest.mark.skipif(os.name != "posix", reason="closes streams by a shell")


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of a shell, in which $M is the command."""
    clean = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    command = {"M": f"{sys.executable} -m marginmf", "PYTHONPATH": str(SOURCES)}
    return subprocess.run(
        ["sh", "-c", line],
        env={**clean, **command, **environment},
        capture_output=True,
        check=False,
    )


@pytest.fixture(autouse=True)
def files(tmp_path: Path, model_file: Path, ratings_file: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.marginmf").write_bytes(model_file.read_bytes())
    (tmp_path / "r.csv").write_bytes(ratings_file.read_bytes())
    header, *lines = ratings_file.read_text().splitlines()
    (tmp_path / "long.csv").write_text("\n".join([header, *(lines * 100)]) + "\n")


@posix
@pytest.mark.parametrize(
    "command", ["predict m.marginmf long.csv", "recommend m.marginmf --user u1 -n 20"]
)
def test_a_reader_that_has_enough_ends_the_command_quietly(command: str) -> None:
    done = shell(f"$M {command} | head -n 1")
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""


@posix
@pytest.mark.parametrize(
    "line", ["predict m.marginmf r.csv 1>&-", "datasets list 2>&-", "datasets list 0<&- 1>&- 2>&-"]
)
def test_closed_streams(line: str) -> None:
    done = shell(f"$M {line}")
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("command", ["predict m.marginmf r.csv", "--help"])
def test_a_full_disk_is_a_sentence(command: str) -> None:
    done = shell(f"$M {command} >/dev/full")
    assert done.returncode == 2
    assert done.stderr == b"marginmf: Reading or writing failed: No space left on device.\n"
    assert shell("$M nonsense 2>/dev/full").returncode == 2


@posix
def test_a_standard_input_that_is_closed_is_a_sentence() -> None:
    done = shell("$M info - <&-")
    assert done.returncode == 2
    assert done.stderr.startswith(b"marginmf: Standard input is not connected to anything")


@posix
@pytest.mark.parametrize("encoding", ["ascii:strict", "cp1252"])
def test_letters_that_the_encoding_does_not_have_are_escaped(encoding: str) -> None:
    names = "".join(f"{k},Zo\xeb \u6771 \U0001f600 {k}\n" for k in range(25))
    Path("i.csv").write_text(f"item,title\n{names}", encoding="utf-8")
    done = shell(
        "$M similar m.marginmf --item 3 -n 2 --items i.csv", PYTHONIOENCODING=encoding, LANG="C"
    )
    assert (done.returncode, done.stderr) == (0, b"")
    first = done.stdout.splitlines()[0].decode(encoding.partition(":")[0])
    assert first.replace("\\xeb", "\xeb") == "item 3: Zo\xeb \\u6771 \\U0001f600 3"


@pytest.mark.parametrize("columns", ["0", "1", "2", "-1", "abc", "", "9" * 5000, "\xb2"])
@pytest.mark.parametrize(
    "command",
    ["recommend m.marginmf --user u1 -n 2", "info r.csv", "compare r.csv --models bias", "--help"],
)
def test_any_width(run, tmp_path: Path, columns: str, command: str, monkeypatch) -> None:
    for name in ("m.marginmf", "r.csv"):
        assert (tmp_path / name).exists()
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("NO_COLOR", "1")
    outcome = run(*command.split())
    assert (outcome.code, outcome.err) == (0, "")
    assert "\x1b" not in outcome.out
