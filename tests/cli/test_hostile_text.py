"""Whatever stands in files, what is printed is text: nothing in it is obeyed, hidden or markup."""

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from shutil import copytree

import pytest
from faults import SOURCES

from hostile import (
    FOLDER,
    HONEST,
    HOSTILE,
    TYPED,
    obeyed,
    write_features,
    write_labels,
    write_ratings,
)
from marginmf._utils.printable import LONGEST_MESSAGE
from marginmf.cli.app import COMMANDS, GROUPS
from marginmf.cli.estimators import set_names
from marginmf.datasets import read_labels, read_ratings
from marginmf.labels import PLST
from marginmf.ratings import MMMF

IDS = HOSTILE + HONEST
RATINGS, LABELLED, MODEL, TYPED_MODEL, TAGS, USERS, ITEMS = (
    f"{FOLDER}/{name}"
    for name in ("r.csv", "l.csv", "m.marginmf", "t.marginmf", "l.marginmf", "u.csv", "i.csv")
)
LABELS = ["--labels", str(len(IDS))]
TITLES = ["--items", ITEMS]
SAMPLE = IDS[::6]
QUICK = ["--model", "mmmf", "--reg", "1", "--factors", "2", "--set", "calibrate=false"]
QUICK += ["--max-iter", "2"]
SIGN = ["--decision", "sign"]
ALL = ["recommend", MODEL, "--users", "all", "-n", "3", *TITLES]
FEW = [word for name in IDS[:20] for word in ("--user", name)]

#: Of every command, the arguments after its name; more than one list if it prints several things.
SCENARIOS: dict[str, list[list[str]]] = {
    "demo": [[RATINGS, "--picture", f"{FOLDER}/p.png"]],
    "fit": [[RATINGS, *QUICK, "--users", USERS, "--out", f"{FOLDER}/new.marginmf"]],
    "predict": [[MODEL, RATINGS], [MODEL, f"{FOLDER}/t.jsonl", "--unknown", "raise"]],
    "recommend": [
        [MODEL, *FEW, "-n", "3", *TITLES],
        [MODEL, "--users", "all", "-n", "3", *TITLES],
        [MODEL, "--users", "all", "--out", f"{FOLDER}/o.csv"],
        [TYPED_MODEL, *(word for name in TYPED for word in ("--user", name))],
        *([MODEL, "--user", f"{name}?"] for name in SAMPLE),
    ],
    "similar": [
        [MODEL, *(word for name in IDS[:20] for word in ("--item", name)), *TITLES],
        [TYPED_MODEL, *(word for name in TYPED for word in ("--item", name))],
    ],
    "explain": [
        *([MODEL, "--user", name, "--item", SAMPLE[0], *TITLES] for name in SAMPLE),
        *([TYPED_MODEL, "--user", name, "--item", name] for name in TYPED[:2]),
    ],
    "fold-in": [[MODEL, f"{FOLDER}/new.csv", *TITLES], [MODEL, RATINGS]],
    "update": [[MODEL, f"{FOLDER}/new.csv", "--out", f"{FOLDER}/new.marginmf"]],
    "evaluate": [[RATINGS, *QUICK, "--protocol", "holdout", "--items", ITEMS]],
    "compare": [[RATINGS, "--models", "bias", "--protocol", "holdout"]],
    "tune": [[RATINGS, "--model", "als", "--try", "reg=1,2", "--max-iter", "2"]],
    "info": [[RATINGS], [f"{FOLDER}/t.jsonl"], [f"{FOLDER}/twice.csv"], [MODEL]],
    "doctor": [[]],
    "labels fit": [[LABELLED, *LABELS, "--model", "plst", *SIGN, "--out", f"{FOLDER}/n.marginmf"]],
    "labels predict": [
        [TAGS, LABELLED],
        [TAGS, LABELLED, "--as", "table", "--scores"],
        [TAGS, LABELLED, "--top", "3"],
        [TAGS, USERS],
    ],
    "labels evaluate": [[LABELLED, *LABELS, "--model", "plst", *SIGN, "--cv", "2"]],
    "labels compare": [[LABELLED, *LABELS, "--models", "plst", *SIGN, "--cv", "2"]],
    "labels tune": [[LABELLED, *LABELS, "--model", "plst", "--try", "reg=1", "--cv", "2", *SIGN]],
    "labels info": [[LABELLED, *LABELS], [TAGS], [LABELLED, "--labels", HOSTILE[0]]],
    "datasets list": [[]],
    "datasets get": [["eachmovie", "--from", RATINGS], [HOSTILE[0]]],
    "datasets info": [["ml-1m"], *([name] for name in SAMPLE[:3])],
    "datasets path": [["ml-1m"], *([name] for name in SAMPLE[:3])],
}
RUNS = [(name, arguments) for name, lists in SCENARIOS.items() for arguments in lists]
pytestmark = [
    pytest.mark.usefixtures("quick_demo", "hostile_files"),
    pytest.mark.filterwarnings("default::UserWarning"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files and models full of hostile text, in a folder with a hostile name."""
    folder = tmp_path_factory.mktemp("hostile") / FOLDER
    folder.mkdir()
    table = read_ratings(write_ratings(folder / "r.csv"))
    MMMF(2, 1.0, max_iter=3, random_state=0).fit(table).fit_exposure().save(folder / "m.marginmf")
    write_ratings(folder / "new.csv", (*HOSTILE[:9], "=new"))
    typed = read_ratings(write_ratings(folder / "t.jsonl", TYPED + IDS))
    model = MMMF(2, 1.0, max_iter=3, random_state=0).fit(typed).fit_exposure()
    model.save(folder / "t.marginmf")
    twice = (folder / "r.csv").read_text(encoding="utf-8").splitlines()
    (folder / "twice.csv").write_text("\n".join(twice + twice[1:9]), encoding="utf-8")
    for side in ("user", "item"):
        write_features(folder / f"{side[0]}.csv", side)
    labelled = read_labels(write_labels(folder / "l.csv"), labels=len(IDS))
    tags = PLST(n_factors=2, decision="sign").fit(labelled.X, labelled.Y)
    set_names(tags, labelled)
    tags.save(folder / "l.marginmf")
    return folder


@pytest.fixture
def hostile_files(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copytree(made, tmp_path / FOLDER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MARGINMF_DATA", f"{tmp_path / FOLDER}")
    monkeypatch.setenv("MARGINMF_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))


def test_every_command_has_a_scenario() -> None:
    grouped = {f"{name} {one.name}" for name, (_, own) in GROUPS.items() for one in own}
    assert SCENARIOS.keys() == {one.name for one in COMMANDS} | grouped


def check_plain(outcome, styled: bool = False) -> None:
    """Nothing in the output is obeyed, and what is wrong is said in a line."""
    for text in outcome[1:]:
        assert obeyed(text, styled) == []
        assert "\x1b[8m" not in text
    assert all(len(line) <= LONGEST_MESSAGE + 100 for line in outcome.err.splitlines())
    assert outcome.code == 0 or outcome.err.count("\n") == 1, outcome.err


@pytest.mark.parametrize("styled", [False, True], ids=["pipe", "colours"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_that_is_printed_is_obeyed(run, name: str, styled: bool, monkeypatch) -> None:
    if styled:
        monkeypatch.setenv("FORCE_COLOR", "1")
    outcomes = [run(*name.split(), *arguments) for arguments in SCENARIOS[name]]
    assert outcomes[0].code == 0 or name.startswith("datasets "), outcomes[0].err
    for outcome in outcomes:
        check_plain(outcome, styled)


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != "doctor"])
def test_json_escapes_it_too_and_loses_nothing(run, name: str) -> None:
    printed = [run(*name.split(), *arguments, "--json").out for arguments in SCENARIOS[name]]
    for text in filter(None, printed):
        assert obeyed(text) == []
        json.loads(text)


@pytest.mark.skipif(os.name != "posix", reason="needs a terminal of its own")
@pytest.mark.parametrize("size", [(24, 80), (1, 1), (0, 0)], ids=str)
def test_nothing_is_obeyed_by_a_terminal_of_any_size(size: tuple[int, int]) -> None:
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    command = [sys.executable, "-m", "marginmf", "fit", RATINGS, *QUICK, "--out", f"{FOLDER}/n.mmf"]
    environment = {key: one for key, one in os.environ.items() if key not in ("COLUMNS", "LINES")}
    environment |= {"PYTHONPATH": str(SOURCES), "TERM": "xterm-256color"}
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    process = subprocess.Popen(command, env=environment, **streams)
    os.close(theirs)
    printed = b""
    with suppress(OSError):  # the terminal is gone when the process is
        while data := os.read(ours, 1 << 16):
            printed += data
    os.close(ours)
    text = printed.decode()
    assert process.wait() == 0, text
    # Bars move the cursor up and back, and hide it.
    plain = re.sub(r"\x1b\[(\?25[lh]|[0-9;]*m|[12]?[AK])|\r", "", text)
    assert obeyed(plain) == []
    assert "52;c;" in plain


def test_every_id_comes_back_from_json(run) -> None:
    words = [word for name in (*TYPED, *IDS) for word in ("--user", name)]
    found = json.loads(run("recommend", TYPED_MODEL, *words, "-n", 1, "--json").out)
    assert [row["user"] for row in found["recommendations"]] == [*TYPED, *IDS]


@pytest.mark.parametrize("name", ["[bold red]rich[/]", "[/]", ":bomb:", "[red", *HONEST])
def test_text_is_no_markup_and_stays_readable(run, name: str, monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    outcome = run("similar", MODEL, "--item", name, *TITLES)
    assert f"item {name}: {name} long long" in outcome.out
    outcome = run("explain", MODEL, "--user", name, "--item", name)
    assert f"user {name}, item {name}" in outcome.out


def test_long_titles_and_ids_are_cut_to_a_line(run, monkeypatch) -> None:
    monkeypatch.delenv("COLUMNS")
    outcome = run("explain", MODEL, "--user", "x" * 240, "--item", "x" * 240, *TITLES)
    heading = outcome.out.splitlines()[0]
    assert len(heading) < 700
    assert heading.count("...") == 3
    outcome = run("similar", MODEL, "--item", "y" * 10**6)
    assert len(outcome.err) < 1000
