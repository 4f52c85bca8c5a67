import subprocess
import sys
import warnings
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import marginmf
from marginmf.cli.app import COMMANDS, GROUPS
from marginmf.cli.commands import describe_error, expand_groups


def test_without_arguments_shows_help(run) -> None:
    outcome = run()
    assert outcome.code == 0
    assert "Usage: marginmf" in outcome.out
    assert "demo" in outcome.out


def test_version(run) -> None:
    assert run("--version") == (0, f"marginmf {marginmf.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "No such command 'nonsense'. See marginmf --help."),
        (["evalute"], "Did you mean 'evaluate'? See marginmf --help."),
        (["demo", "--nonsense"], " See marginmf demo --help."),
        (["evaluate"], "Missing argument 'FILE'. See marginmf evaluate --help."),
        (["labels", "nonsense"], "No such command 'nonsense'. See marginmf labels --help."),
        (["labels", "fit"], " See marginmf labels fit --help."),
    ],
)
def test_wrong_usage_is_one_line_and_2(run, arguments: list[str], message: str) -> None:
    outcome = run(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("marginmf: ")
    assert outcome.err.endswith(f"{message}\n")
    assert outcome.err.count("\n") == 1


def test_the_command_line_is_light() -> None:
    heavy = {"numba", "sklearn", "scipy", "numpy", "matplotlib"}
    code = f"import sys, marginmf.cli.app; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "marginmf", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("marginmf ")


def test_an_interruption_is_one_line_and_130(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("marginmf.cli.inputs.read_demo_ratings", interrupt)
    assert run("demo") == (130, "", "marginmf: interrupted.\n")


def test_a_fault_of_the_library_keeps_its_traceback(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **named: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("marginmf.cli.inputs.read_demo_ratings", fail)
    with pytest.raises(ZeroDivisionError):
        run("demo")


def test_a_warning_is_one_line(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(*arguments: object, **named: object) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            for _ in range(3):  # as several fits would
                warnings.warn("The cache\nis damaged.", stacklevel=2)
        raise ValueError("The end.")

    monkeypatch.setattr("marginmf.cli.inputs.read_demo_ratings", warn)
    assert run("demo").err == "marginmf: The cache is damaged.\nmarginmf: The end.\n"


def test_an_error_of_the_system_names_its_file() -> None:
    error = FileNotFoundError(2, "No such file or directory", "a.csv")
    assert describe_error(error) == "a.csv: No such file or directory."


def test_an_error_without_words_is_named() -> None:
    assert describe_error(ValueError()) == "ValueError"


def test_too_little_memory_is_a_sentence() -> None:
    assert describe_error(MemoryError()) == "There is not enough memory."
    assert describe_error(MemoryError("75 GiB")) == "There is not enough memory. 75 GiB"


def test_every_command_has_short_help(run) -> None:
    outcome = run()
    for command in COMMANDS:
        assert f" {command.name} " in outcome.out
    for group in GROUPS:
        assert f" {group} " in outcome.out


@pytest.mark.parametrize("name", GROUPS)
def test_groups_of_commands_have_help_of_their_own(run, name: str) -> None:
    outcome = run(name)
    assert outcome.code == 0
    assert outcome.out.split() == run(name, "--help").out.split()
    for command in GROUPS[name][1]:
        assert f" {command.name} " in outcome.out


@dataclass(frozen=True)
class Group:
    size: Annotated[int, typer.Option("--size")] = 3
    name: Annotated[str, typer.Option("--name")] = "x"


def program() -> typer.Typer:
    app = typer.Typer()

    @app.command()
    @expand_groups
    def show(group: Group, loud: bool = False) -> None:
        typer.echo(f"{group} {loud}")

    return app


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ([], "Group(size=3, name='x') False"),
        (["--size", "5", "--loud"], "Group(size=5, name='x') True"),
        (["--name", "y"], "Group(size=3, name='y') False"),
    ],
)
def test_a_group_arrives_as_one_object(arguments: list[str], printed: str) -> None:
    assert CliRunner().invoke(program(), arguments).stdout.strip() == printed
