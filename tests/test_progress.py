"""Progress bars: what they show, and where they show nothing."""

import re
import threading
from contextlib import contextmanager
from functools import partial

import pytest

from marginmf.datasets import make_ratings
from marginmf.progress import progress_bar, show_bar
from marginmf.ratings import MarginEnsemble
from marginmf.solvers import Progress, Record

#: What moves the cursor and sets colours.
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
#: Bars that stay in the output.
show = partial(show_bar, transient=False)


@pytest.fixture
def shown(monkeypatch, capsys):
    """A function that returns what was shown so far on what seems to be a terminal."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")  # so that rich takes it for a terminal, too
    monkeypatch.setattr("marginmf.progress.is_watched", lambda: True)
    return lambda: CODES.sub("", capsys.readouterr().err)


def test_a_bar_counts_steps_and_names_the_last_one(shown) -> None:
    with show("Start [1/2]", 3, text="loss {task.fields[loss]:.1f}", loss=9.0) as update:
        update("HMF, split 1", done=1, loss=4.25)
        update(done=2)
    text = shown()
    assert "HMF, split 1" in text
    assert "2/3" in text
    assert "loss 4.2" in text


def test_a_total_that_is_not_known_has_no_bar(shown) -> None:
    with show("Reading") as update:
        update("Reading more", done=3)
    text = shown()
    assert "Reading more" in text
    assert "3" not in text


@pytest.mark.parametrize("visible", [True, False])
def test_nothing_is_shown_where_it_is_not_wanted(capsys, visible) -> None:
    with show_bar("Reading", 2, visible=visible, loss=1.0) as update:
        update("Reading more", done=1, loss=0.5)
    assert capsys.readouterr() == ("", "")


def test_the_time_left_is_shown_where_the_total_is_known(shown) -> None:
    with show("Reading", 4) as update:
        update(done=1)
        update(done=2)
    assert " left " in shown()
    with show("Reading"):
        pass
    assert " left " not in shown()


def test_a_fit_shows_its_iterations_on_a_terminal(shown) -> None:
    with progress_bar("HMF", 2, visible=True) as report:
        (callback,) = report("stage 1")
        callback(Progress(Record(5, 1234.5, 1.0, 6, 0.1), None, 10))
    text = shown()
    assert "iteration 5  objective 1,234.5" in text
    assert "2/2" in text
    with progress_bar("HMF", 2, visible=False) as report:
        assert report("stage 1") == []
    assert shown() == ""


def test_a_part_is_finished_when_the_next_one_begins(monkeypatch) -> None:
    done: list[float] = []

    @contextmanager
    def watch(*_, **__):
        yield lambda label=None, done=None, **_: seen(done)

    seen = done.append
    monkeypatch.setattr("marginmf.progress.show_bar", watch)
    with progress_bar("HMF", 3, visible=True) as report:
        (first,) = report("stage 1")
        first(Progress(Record(5, 1.0, 1.0, 6, 0.1), None, 10))
        report("stage 2")
        other = threading.Thread(target=report, args=["stage 3"])
        other.start()
        other.join()
    assert done == [0.0, 0.5, 1.0, 1.0, 3]


def test_a_log_gets_the_last_state_of_a_fit(capsys) -> None:
    with progress_bar("HMF", 2, visible=True) as report:
        (callback,) = report("stage 1")
        callback(Progress(Record(5, 1234.5, 1.0, 6, 0.1), None, 10))
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "objective 1,234.5" in err


@pytest.mark.parametrize(("ensemble", "n_fits"), [("bagging", 4), ("seeds", 8)])
def test_an_ensemble_counts_its_members(monkeypatch, ensemble, n_fits) -> None:
    labels: list[str] = []

    @contextmanager
    def watch(*_, visible, **__):
        yield lambda label=None, **_: labels.append(label) if visible else None

    monkeypatch.setattr("marginmf.progress.show_bar", watch)
    data = make_ratings(30, 20, n_factors=2, observed=0.5, random_state=0)
    few = {"n_estimators": 2, "ensemble": ensemble, "random_state": 0, "verbose": 1}
    MarginEnsemble(("mmmf", "bias"), **few).fit(data.pairs, data.ratings)
    wanted = [f"MarginEnsemble member {k + 1} of {n_fits}" for k in range(n_fits)]
    assert [label for label in labels if label] == [*wanted, "MarginEnsemble"]
