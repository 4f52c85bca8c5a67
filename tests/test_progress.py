"""Progress bars: what they show, and where they show nothing."""

from functools import partial

import pytest

from marginmf.progress import progress_bar, show_bar
from marginmf.solvers import Progress, Record

#: Bars that stay in the output, of a terminal or not.
show = partial(show_bar, terminal_only=False, transient=False)


@pytest.fixture
def shown(monkeypatch, capsys):
    """A function that returns what was shown so far."""
    monkeypatch.setenv("COLUMNS", "120")
    return lambda: capsys.readouterr().err


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


def test_a_fit_shows_its_iterations_even_in_a_log(capsys) -> None:
    with progress_bar("HMF", 2, visible=True) as report:
        (callback,) = report("stage 1")
        callback(Progress(Record(5, 1234.5, 1.0, 6, 0.1), None, 10))
    shown = capsys.readouterr().err
    assert "iteration 5  objective 1,234.5" in shown
    assert "2/2" in shown
    with progress_bar("HMF", 2, visible=False) as report:
        assert report("stage 1") == []
