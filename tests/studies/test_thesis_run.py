import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from thesis_samples import BROKEN, MISSING, SMALL, install, small_cells

from studies.harness import Store, running


@pytest.fixture(autouse=True)
def few_exhibits(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, SMALL, MISSING, BROKEN)


def test_a_run_says_what_it_did_and_a_second_one_keeps_it(thesis) -> None:
    first = thesis("run", "nmae", "--quick", "--jobs", "1")
    assert first.code == 0
    assert first.out.startswith("2 cells run in ")
    second = thesis("run", "nmae", "--jobs", "1", "--quiet")
    assert second.out.startswith("2 cells run in ")
    assert second.out.endswith(", 2 kept from before.\n")
    assert second.err == ""
    assert thesis("run", "nmae").out == "0 cells run, 4 kept from before.\n"
    assert "4 cells run in" in thesis("run", "nmae", "--again", "--jobs", "1").out


def test_what_could_not_be_run_is_counted_by_reason_and_1(thesis) -> None:
    outcome = thesis("run", "--all", "--quick", "--out", "here", "--jobs", "1")
    assert outcome.code == 1
    lines = outcome.out.splitlines()
    assert lines[0].startswith("2 cells run in ")
    assert lines[1].startswith("3 cells could not be run: ")
    assert "no such data" in lines[1]
    assert len(lines) == 2
    assert len(Store(Path("here")).records) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Name tables and figures, or give --all"),
        (["nmae", "--all"], "Name tables and figures, or give --all"),
        (["nonsense"], "There is no table or figure 'nonsense'; the known ones are nmae, ranks"),
        (["nmae", "--jobs", "0"], "--jobs 0 would run nothing"),
        (["nmae", "--backend", "nonsense"], "nonsense"),
        (["nmae", "--out", "file"], "file"),
    ],
)
def test_bad_arguments_are_one_line_and_2(thesis, tmp_path: Path, arguments, message) -> None:
    (tmp_path / "file").touch()
    outcome = thesis("run", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("studies: ")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_an_interruption_says_that_a_second_run_resumes(thesis, monkeypatch) -> None:
    find, calls = running.find, []

    def interrupted(cell, *more):
        calls.append(cell)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return find(cell, *more)

    monkeypatch.setattr(running, "find", interrupted)
    outcome = thesis("run", "nmae", "--jobs", "1", "--backend", "sequential")
    assert (outcome.code, outcome.out) == (130, "")
    message = "studies: interrupted; results has 2 new cells. The same command resumes from there."
    assert outcome.err == f"{message}\n"
    assert ", 2 kept from before." in thesis("run", "nmae", "--jobs", "1").out


PROGRAM = """
import sys, time
import pytest
from thesis_samples import SMALL, install
from studies.harness import cell
from studies.__main__ import main

find_measure = cell.find_measure
def slow(name):
    time.sleep(0.5)
    return find_measure(name)
cell.find_measure = slow
install(pytest.MonkeyPatch(), SMALL)
sys.exit(main(["thesis", "run", "nmae", "--out", sys.argv[1], "--backend", "threading"]))
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="this system has no groups of processes")
def test_control_c_ends_the_program_in_a_sentence(tmp_path: Path) -> None:
    program, folder = tmp_path / "program.py", tmp_path / "out"
    program.write_text(PROGRAM)
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    process = subprocess.Popen(
        [sys.executable, str(program), str(folder)],
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not Store(folder).records:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert "The same command resumes from there." in err
    assert "Traceback" not in err
    assert 0 < len(Store(folder).records) < len(small_cells("full"))
