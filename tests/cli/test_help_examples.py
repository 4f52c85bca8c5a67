"""The example at the end of every command's help is one that works."""

import shlex
import shutil
from pathlib import Path

import pytest
from labels_inputs import as_csv, songs

from marginmf.cli.app import COMMANDS, GROUPS
from marginmf.cli.estimators import set_names
from marginmf.datasets import make_ratings
from marginmf.labels import PLST
from marginmf.ratings import MMMF

NAMES = [
    *(command.name for command in COMMANDS),
    *(f"{group} {command.name}" for group, (_, commands) in GROUPS.items() for command in commands),
]


def example_in_help(run, command: str) -> list[str]:
    """Return the words of the example, taken from what --help prints at its end."""
    outcome = run(*command.split(), "--help")
    assert outcome.code == 0
    _, _, example = outcome.out.rpartition("Example: ")
    assert len(f" Example: {example.rstrip()}") <= 80, "it would be cut in two on a small terminal"
    words = shlex.split(example)
    assert f"{' '.join(words)} ".startswith(f"marginmf {command} ")
    return words


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that examples speak of: ratings by users 0 to 59 of items 0 to 59, and so on."""
    folder = tmp_path_factory.mktemp("examples")
    table = make_ratings(60, 60, n_factors=2, observed=0.2, random_state=0)
    rows = zip(table.users, table.items, table.ratings, strict=True)
    lines = [f"{user},{item},{rating:g}" for user, item, rating in rows]
    (folder / "ratings.csv").write_text("\n".join(["user,item,rating", *lines]) + "\n")
    (folder / "pairs.csv").write_text("user,item\n42,50\n7,8\n")
    (folder / "new.csv").write_text("user,item,rating\n100,50,3\n100,8,2\n")
    model = MMMF(3, 1.0, random_state=0).fit(table.pairs, table.ratings)
    model.save(folder / "m.marginmf")
    tagged = songs()
    (folder / "songs.csv").write_text(as_csv(tagged))
    labelled = PLST().fit(tagged.X, tagged.Y)
    set_names(labelled, tagged)
    labelled.save(folder / "l.marginmf")
    return folder


@pytest.mark.usefixtures("quick_demo")
@pytest.mark.parametrize("command", NAMES)
def test_the_example_of_the_help_runs(
    run, files: Path, command: str, request: pytest.FixtureRequest, monkeypatch
) -> None:
    words = example_in_help(run, command)
    if command.startswith("datasets"):  # which names datasets
        monkeypatch.setenv("MARGINMF_DATA", str(request.getfixturevalue("data_root")))
    for file in files.iterdir():
        if f"--out {file.name}" not in " ".join(words):  # what it makes is not there yet
            shutil.copy(file, file.name)
    outcome = run(*words[1:])
    assert outcome.code == 0, outcome.err
    assert outcome.out
