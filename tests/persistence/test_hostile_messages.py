"""Text in a model file that a terminal would obey: no message repeats it, and none is long."""

import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

import marginmf
from hostile import HOSTILE, obeyed
from marginmf._utils.printable import LONGEST_MESSAGE
from marginmf.cli.app import app
from marginmf.persistence import describe
from tampering import every_node

TEXTS = ["".join(HOSTILE[:20]) + "\n\r\0", "half \ud800 a pair", "x" * 10**5]


def message_of(act, path: Path) -> str:
    """Return all that is said when a model is read."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            act(path)
        except ValueError as error:
            return "".join(map(str, [error, *(one.message for one in caught)]))
    return "".join(str(one.message) for one in caught)


def check_plain(path: Path) -> None:
    """Neither the library nor the command line repeats what is obeyed."""
    for act in (marginmf.load, describe):
        message = message_of(act, path)
        assert obeyed(message) == []
        assert len(message) <= LONGEST_MESSAGE + len(str(path)) + 50
    outcome = CliRunner().invoke(app, ["info", str(path)], prog_name="marginmf")
    assert outcome.exit_code in (0, 2), outcome.exception
    assert obeyed(outcome.stdout + outcome.stderr) == []
    assert len(outcome.stderr) <= LONGEST_MESSAGE + 50


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", ["hmf", "als", "grople"])
def test_strings_anywhere_in_a_model(parts, path: Path, name: str, text: str) -> None:
    whole = parts(name)
    for number, (node, key) in enumerate(every_node(whole.document, [])):
        if not isinstance(node[key], str):
            continue
        changed = whole.copy()
        node, key = every_node(changed.document, [])[number]
        node[key] = text
        changed.write(path)
        check_plain(path)


@pytest.mark.parametrize("text", TEXTS)
def test_names_anywhere_in_a_model(parts, path: Path, text: str) -> None:
    made = parts("als")
    for node in (made.document, made.params, made.fitted, made.document["counts"]):
        node[text] = 1
        made.write(path)
        check_plain(path)
        del node[text]
    made.tensors[text] = made.tensors["user_factors_"]
    made.write(path)
    check_plain(path)


@pytest.mark.parametrize("name", ["decision", "tune_for", "top1_if_empty", "estimator"])
@pytest.mark.parametrize("value", [2.5, None, [], {"dict": {}}])
def test_a_description_may_say_anything_of_the_decision(name, value, parts, path):
    made = parts("scaled" if name == "estimator" else "ridge")
    made.params[name] = value
    made.write(path)
    result = CliRunner().invoke(app, ["info", str(path)])
    assert isinstance(result.exception, SystemExit | None), repr(result.exception)
