import json

import pytest

from studies.peers import environments
from studies.peers.environments import Environment, Environments, Unavailable

KNOWN = {
    "good": Environment(("good==1",)),
    "java": Environment(("spark==1",), programs=("no-such-program",)),
}


@pytest.fixture
def installed(monkeypatch):
    """What is installed, in place of doing it."""
    calls = []

    def install(place, pins):
        calls.append(pins)
        (place / "bin").mkdir()
        (place / "bin" / "python").touch()

    monkeypatch.setattr(environments, "_install", install)
    return calls


def test_an_environment_is_made_once(tmp_path, installed):
    paths = {Environments(tmp_path, KNOWN).python("good") for _ in range(2)}
    assert paths == {str(tmp_path / "good" / "bin" / "python")}
    assert installed == [("good==1",)]


def test_a_changed_pin_makes_it_again(tmp_path, installed):
    Environments(tmp_path, KNOWN).python("good")
    Environments(tmp_path, {"good": Environment(("good==2",))}).python("good")
    assert installed == [("good==1",), ("good==2",)]
    assert json.loads((tmp_path / "good" / environments.NOTE).read_text())["pins"] == ["good==2"]


def test_an_interrupted_installation_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(place, pins):
        (place / "half").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(environments, "_install", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Environments(tmp_path, KNOWN).python("good")
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_install_says_why_and_is_not_tried_again(tmp_path, monkeypatch):
    tried = []

    def failing(place, pins):
        tried.append(pins)
        raise Unavailable("does not install: ERROR: no such version")

    monkeypatch.setattr(environments, "_install", failing)
    made = Environments(tmp_path, KNOWN)
    for _ in range(2):
        with pytest.raises(Unavailable, match="no such version"):
            made.python("good")
    assert len(tried) == 1


def test_the_reason_is_the_last_line_of_the_installer(tmp_path, monkeypatch):
    monkeypatch.setattr(environments.sys, "executable", "/bin/false")
    with pytest.raises(Unavailable, match="does not install: it says nothing"):
        environments._install(tmp_path, ("x==1",))


def test_a_missing_program_is_named(tmp_path, installed):
    with pytest.raises(Unavailable, match="java needs no-such-program"):
        Environments(tmp_path, KNOWN).python("java")
    assert installed == []
