import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from reproduce_samples import BROKEN, MISSING, SMALL, install, small_cells

from marginmf.experiments import Store


@pytest.fixture(autouse=True)
def few_exhibits(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, SMALL, MISSING, BROKEN)


def test_a_run_says_what_it_did_and_a_second_one_keeps_it(run) -> None:
    first = run("reproduce", "run", "nmae", "--quick", "--jobs", 1)
    assert first.code == 0
    assert first.out.startswith("2 cells run in ")
    assert "marginmf reproduce report --out reproduction" in first.err
    second = run("reproduce", "run", "nmae", "--jobs", 1, "--json", "--quiet")
    found = json.loads(second.out)
    assert (found["done"], found["kept"], found["failures"]) == (2, 2, {})
    assert second.err == ""
    assert run("reproduce", "run", "nmae").out == "0 cells run, 4 kept from before.\n"
    assert "4 cells run in" in run("reproduce", "run", "nmae", "--again", "--jobs", 1).out


def test_what_could_not_be_run_is_counted_by_reason_and_1(run) -> None:
    outcome = run("reproduce", "run", "--all", "--quick", "--out", "here", "--jobs", 1)
    assert outcome.code == 1
    lines = outcome.out.splitlines()
    assert lines[0].startswith("2 cells run in ")
    assert lines[1].startswith("3 cells could not be run: ")
    assert "no such data" in lines[1]
    assert len(lines) == 2
    assert len(Store(Path("here")).records) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Name tables and figures, or give --all"),
        (["nmae", "--all"], "Name tables and figures, or give --all"),
        (["nonsense"], "There is no table or figure 'nonsense'; the known ones are nmae, ranks"),
        (["nmae", "--jobs", "0"], "--jobs 0 would run nothing"),
        (["nmae", "--backend", "nonsense"], "nonsense"),
        (["nmae", "--out", "file"], "file"),
    ],
)
def test_bad_arguments_are_one_line_and_2(run, tmp_path: Path, arguments, said: str) -> None:
    (tmp_path / "file").touch()
    outcome = run("reproduce", "run", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("marginmf: ")
    assert said in outcome.err
    assert outcome.err.count("\n") == 1


def test_an_interruption_says_that_a_second_run_goes_on(run, monkeypatch) -> None:
    from marginmf.experiments import running

    find, calls = running.find, []

    def interrupted(cell):
        calls.append(cell)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return find(cell)

    monkeypatch.setattr(running, "find", interrupted)
    outcome = run("reproduce", "run", "nmae", "--jobs", 1, "--backend", "sequential")
    assert outcome.code == 130
    assert outcome.out == ""
    said = (
        "marginmf: interrupted; reproduction has 2 new cells. The same command goes on from there."
    )
    assert outcome.err == f"{said}\n"
    assert json.loads(run("reproduce", "run", "nmae", "--jobs", 1, "--json").out)["kept"] == 2


PROGRAM = """
import sys, time
from pathlib import Path
import pytest
from reproduce_samples import SMALL, install
from marginmf.experiments import running

measure = running.measure
def slow(cell):
    time.sleep(1.0)
    return measure(cell)
running.measure = slow
install(pytest.MonkeyPatch(), SMALL)
from marginmf.cli import main
sys.argv = ["marginmf", "reproduce", "run", "nmae", "--out", sys.argv[1], "--backend", "threading"]
main()
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
    wait_for_a_cell(folder, process)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert "The same command goes on from there." in err
    assert "Traceback" not in err
    store = Store(folder)
    assert 0 < len(store.records) < len(small_cells("full"))


def wait_for_a_cell(folder: Path, process: subprocess.Popen[str]) -> None:
    while process.poll() is None and not Store(folder).records:
        time.sleep(0.05)
