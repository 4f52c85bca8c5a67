"""What people have and write in their first hour is read rightly, or gets one sentence."""

import re
from pathlib import Path
from typing import Any

import pytest
from odd_calls import CALLS, FRAMES, Call
from odd_commands import COMMANDS, FILES_OF_COMMANDS, Command
from odd_files import FILES
from typer.testing import CliRunner

from marginmf.cli.app import app
from marginmf.datasets import read_ratings

LONGEST = 450


def check_sentence(said: str, expected: str) -> None:
    """Check that a message is short, whole and the expected one."""
    assert re.search(expected, said), said
    assert said.rstrip().endswith((".", "?", ")", "]"))
    assert said.count("\n") < 3
    assert len(said) < LONGEST + 60


def check(do: Any, outcome: Any) -> None:
    """Check the value of a call, or the sentence that it gets."""
    if not isinstance(outcome, str):
        assert do() == outcome
        return
    with pytest.raises((ValueError, OSError, AttributeError)) as caught:
        do()
    check_sentence(str(caught.value), outcome)


def test_there_are_many() -> None:
    assert len(FILES) + len(FRAMES) + len(CALLS) + len(COMMANDS) >= 150


@pytest.mark.parametrize("name", FILES)
def test_files(tmp_path: Path, name: str) -> None:
    odd = FILES[name]
    path = tmp_path / "ratings.csv"
    path.write_bytes(odd.content if isinstance(odd.content, bytes) else odd.content.encode())

    def columns() -> list[list[Any]]:
        table = read_ratings(path, **odd.options)
        return [table.users.tolist(), table.items.tolist(), table.ratings.tolist()]

    check(columns, odd.outcome)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in FRAMES.items()])
def test_frames(call: Call) -> None:
    check(*call)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in CALLS.items()])
def test_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    monkeypatch.chdir(tmp_path)
    check(*call)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that commands speak of, and two models."""
    place = tmp_path_factory.mktemp("commands")
    for name, content in FILES_OF_COMMANDS.items():
        (place / name).write_text(content)
    runner = CliRunner()
    for name, options in (("m", ""), ("k", "--user kunde --item artikel --rating note")):
        source = "ratings.csv" if name == "m" else "noten.csv"
        words = f"fit {place / source} -m bias {options} -q --out {place / name}.marginmf".split()
        assert runner.invoke(app, words).exit_code == 0
    return place


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("one", [pytest.param(one, id=name) for name, one in COMMANDS.items()])
def test_commands(folder: Path, monkeypatch: pytest.MonkeyPatch, one: Command) -> None:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, one.words.split(), input=one.typed, prog_name="marginmf")
    if one.refused:
        assert result.exit_code == 2, result.output
        check_sentence(result.stderr, one.says)
        assert not re.search(r"\b(user|item|rating|levels|labels|header)=", result.stderr)
        assert "Value error" not in result.stderr
    else:
        assert result.exit_code == 0, result.output
        assert re.search(one.says, result.output), result.output
