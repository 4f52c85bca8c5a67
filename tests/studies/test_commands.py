import doctest
import pkgutil
from importlib import import_module

import pytest

import studies
from studies.__main__ import COMMANDS, main

#: Adapters import libraries that are not installed here.
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(studies.__path__, "studies.")
    if ".adapters." not in module.name and not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_its_options(name, capsys):
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    assert f"python -m studies {name}" in capsys.readouterr().out


def test_an_unknown_command_lists_those_there_are(capsys):
    assert main(["nothing"]) == 2
    said = capsys.readouterr().err
    assert all(name in said for name in COMMANDS)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_of_the_studies(name):
    failures, _ = doctest.testmod(import_module(name))
    assert failures == 0
