"""The example at the end of every command's help is one that works."""

import shlex
import shutil
from pathlib import Path

import pytest

from marginmf.cli.app import COMMANDS

NAMES = [command.__name__ for command in COMMANDS]


def example_in_help(run, command: str) -> list[str]:
    """Return the words of the example, taken from what --help prints at its end."""
    outcome = run(command, "--help")
    assert outcome.code == 0
    _, _, example = outcome.out.rpartition("Example: ")
    assert len(f" Example: {example.rstrip()}") <= 80, "it would be cut in two on a small terminal"
    words = shlex.split(example)
    assert words[:2] == ["marginmf", command]
    return words


@pytest.mark.parametrize("command", NAMES)
def test_the_example_of_the_help_runs(run, ratings_file: Path, command: str) -> None:
    words = example_in_help(run, command)
    shutil.copy(ratings_file, "ratings.csv")
    outcome = run(*words[1:])
    assert outcome.code == 0, outcome.err
    assert outcome.out
