import subprocess
import sys
import warnings

import pytest

import marginmf
from marginmf.cli.app import COMMANDS
from marginmf.cli.commands import command_name
from marginmf.cli.datasets.app import COMMANDS as DATASETS_COMMANDS
from marginmf.cli.errors import sentence
from marginmf.cli.labels.app import COMMANDS as LABELS_COMMANDS


def test_without_arguments_shows_help(run) -> None:
    outcome = run()
    assert outcome.code == 0
    assert "Usage: marginmf" in outcome.out
    assert "demo" in outcome.out


def test_version(run) -> None:
    assert run("--version") == (0, f"marginmf {marginmf.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "No such command 'nonsense'. See marginmf --help."),
        (["evalute"], "Did you mean 'evaluate'? See marginmf --help."),
        (["demo", "--nonsense"], " See marginmf demo --help."),
        (["evaluate"], "Missing argument 'FILE'. See marginmf evaluate --help."),
        (["labels", "nonsense"], "No such command 'nonsense'. See marginmf labels --help."),
        (["labels", "fit"], " See marginmf labels fit --help."),
    ],
)
def test_wrong_usage_is_one_line_and_2(run, arguments: list[str], said: str) -> None:
    outcome = run(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("marginmf: ")
    assert outcome.err.endswith(f"{said}\n")
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

    monkeypatch.setattr("marginmf.cli.data.demo_ratings", interrupt)
    assert run("demo") == (130, "", "marginmf: interrupted.\n")


def test_a_fault_of_the_library_keeps_its_traceback(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **named: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("marginmf.cli.data.demo_ratings", fail)
    with pytest.raises(ZeroDivisionError):
        run("demo")


def test_a_warning_is_one_line(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(*arguments: object, **named: object) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("The cache\nis damaged.", stacklevel=2)
        raise ValueError("The end.")

    monkeypatch.setattr("marginmf.cli.data.demo_ratings", warn)
    assert run("demo").err == "marginmf: The cache is damaged.\nmarginmf: The end.\n"


def test_an_error_of_the_system_names_its_file() -> None:
    error = FileNotFoundError(2, "No such file or directory", "a.csv")
    assert sentence(error) == "a.csv: No such file or directory."


def test_an_error_without_words_is_named() -> None:
    assert sentence(ValueError()) == "ValueError"


def test_too_little_memory_is_a_sentence() -> None:
    assert sentence(MemoryError()) == "There is not enough memory."
    assert sentence(MemoryError("75 GiB")) == "There is not enough memory. 75 GiB"


def test_every_command_has_short_help(run) -> None:
    outcome = run()
    for command in COMMANDS:
        assert f" {command_name(command)} " in outcome.out
    for group in ("labels", "datasets"):
        assert f" {group} " in outcome.out


@pytest.mark.parametrize(
    ("name", "commands"),
    [
        ("labels", LABELS_COMMANDS),
        ("datasets", DATASETS_COMMANDS),
    ],
)
def test_groups_of_commands_have_help_of_their_own(run, name: str, commands) -> None:
    outcome = run(name)
    assert outcome.code == 0
    assert outcome.out.split() == run(name, "--help").out.split()
    for command in commands:
        assert f" {command_name(command)} " in outcome.out
