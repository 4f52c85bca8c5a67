"""How the command line talks: its own words, no residue in pipes, completion, tidy help."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from marginmf.cli.app import COMMANDS, GROUPS
from marginmf.cli.commands import describe_error, in_options
from marginmf.cli.options import LABEL_METHODS

FIT = frozenset({"--factors", "--seed", "--duplicates", "--labels", "--reg", "--set", "--top1"})


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("n_factors=0 must be >= 1.", "--factors 0 must be >= 1."),
        ("random_state='x' cannot seed.", "--seed x cannot seed."),
        ("reg=[1.0, 2.5] has 2 values.", "--reg 1,2.5 has 2 values."),
        ("tol=-1e-05 must be positive.", "--set tol=-1e-05 must be positive."),
        ("loss='a b' is not known.", "--set 'loss=a b' is not known."),
        ("Say so with labels=n or labels=-n.", "Say so with --labels n or --labels -n."),
        ("Give names with labels=[...].", "Give names with --labels NAME,...."),
        ("Take labels='tag_*'.", "Take --labels 'tag_*'."),
        ("Use Ratings.of(..., duplicates='last').", "Use --duplicates last."),
        ("Not done, because top1=True.", "Not done, because --top1."),
        ("Give n_factors and tol.", "Give --factors and tol."),
        # What cannot be set here is left alone, or out where it is the second advice.
        ("Give kind=.", "Give kind=."),
        ("Rename it, or give kind='csv'.", "Rename it."),
        ("Choose 'a', or pass a Loss.", "Choose 'a'."),
        # Not parameters at all.
        ("There is no file reg=3.csv; look.", "There is no file reg=3.csv; look."),
        ("It needs a <label name=...> each.", "It needs a <label name=...> each."),
        ("Unknown: a=b=c.", "Unknown: a=b=c."),
    ],
)
def test_parameters_of_the_library_become_options(message: str, said: str) -> None:
    assert in_options(message, FIT) == said


def test_a_quoted_name_like_a_call_does_not_keep_the_command_busy() -> None:
    # For each letter more, the search for calls took twice the time.
    name = f"'f({'a=' * 400}' is not known."
    assert in_options(name, FIT).endswith("is not known.")


def test_words_of_the_command_line_itself_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    from marginmf.cli.estimators import parse_setting

    with pytest.raises(ValueError, match="loss=logistic") as caught:
        parse_setting("reg")
    assert "such as loss=logistic" in describe_error(caught.value, FIT)


@pytest.mark.filterwarnings("default:random_state")
def test_warnings_of_the_library_name_options(run, ratings_file: Path, monkeypatch) -> None:
    from marginmf._utils.parameters import warn
    from marginmf.ratings import BiasOnly

    monkeypatch.setattr(BiasOnly, "_check", lambda *_: warn("random_state=3 is not used."))
    outcome = run("fit", ratings_file, "--model", "bias", "--out", "m.marginmf")
    assert "marginmf: --seed 3 is not used.\n" in outcome.err


def commands() -> list[list[str]]:
    own = [[command.name] for command in COMMANDS]
    inner = [[group, one.name] for group, (_, members) in GROUPS.items() for one in members]
    return [[], *own, *([group] for group in GROUPS), *inner]


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_help_names_no_types_of_flags(run, path: list[str]) -> None:
    help_text = run(*path, "--help").out
    assert "Show this message" in help_text
    for residue in ("bool", "BOOLEAN", "range", "RANGE"):
        assert residue not in help_text


def complete(*words: str) -> list[str]:
    """Return what bash is told after these words."""
    command = [sys.executable, "-m", "marginmf"]
    settings = {
        "_MARGINMF_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["marginmf", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_names_of_methods_and_datasets_are_completed() -> None:
    assert complete("fit", "x", "--model", "pm") == ["pmmmf", "pmf"]
    found = complete("labels", "compare", "x", "--models", "plst,ml")
    assert found == [f"plst,{name}" for name in LABEL_METHODS if name.startswith("ml")]
    assert found[:2] == ["plst,mlchmf", "plst,mlknn"]
    assert "ml-100k" in complete("fit", "ml-1")
    assert "yeast" not in complete("fit", "y")
    assert "yeast" in complete("labels", "fit", "y")


def test_files_are_completed_beside_datasets(tmp_path: Path, monkeypatch) -> None:
    from marginmf.cli.options import complete_data

    monkeypatch.chdir(tmp_path)
    (tmp_path / "ml.csv").touch()
    (tmp_path / ".hidden").touch()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.csv").touch()
    find = complete_data("ratings")
    assert find("ml.") == ["ml.csv"]
    assert find("mor") == ["more/"]
    assert find("more/") == ["more/a.csv"]
    assert ".hidden" not in find("")


def test_completion_can_be_shown(run) -> None:
    help_text = run("--help").out
    assert "--install-completion" in help_text
    assert "--show-completion" in help_text
    assert "completion" not in run("labels", "--help").out


def test_tables_in_a_pipe_have_no_edge(run, ratings_file: Path, monkeypatch) -> None:
    monkeypatch.delenv("COLUMNS")
    names = "mmmf,als,pmf,bias"
    quick = ("--reg", 1, "--factors", 2, "--max-iter", 2, "--set", "calibrate=false")
    outcome = run("compare", ratings_file, "--models", names, "--protocol", "holdout", *quick)
    (heading,) = (line for line in outcome.out.splitlines() if "method" in line)
    assert heading.split() == ["method", "MAE", "zero-one", "RMSE", "NMAE", "p", "seconds"]
    assert not any(line.endswith("…") for line in outcome.out.splitlines())
    assert "\x1b" not in outcome.out + outcome.err
    assert outcome.err == ""
