import doctest
from importlib import import_module

import pytest

from benchmarks.__main__ import COMMANDS, main

DOCUMENTED = (
    *("environments", "lists", "pareto", "rating_problems", "tables"),
    *("cold_start", "performance_page", "scaling_law", "scaling_report", "synthetic"),
)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_its_options(name, capsys):
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    assert f"python -m benchmarks {name}" in capsys.readouterr().out


def test_an_unknown_command_lists_those_there_are(capsys):
    with pytest.raises(SystemExit) as end:
        main(["nothing"])
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert all(name in said for name in COMMANDS)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_in_the_benchmarks(name):
    failures, tried = doctest.testmod(import_module(f"benchmarks.{name}"))
    assert tried > 0
    assert failures == 0
