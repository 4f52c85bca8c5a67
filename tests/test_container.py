"""A hardened container: read-only packages, no home, an unknown user, nowhere to write but out.

Started by the administrator, the processes run as a user that is in no list of users; else as the
same user, who cannot write to the packages either.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import marginmf

STRANGER = "12345"
#: Another user, who may read everything (Python may be in the administrator's home), and write
#: only where all may.
AS_STRANGER = [
    "setpriv",
    *("--reuid", STRANGER, "--regid", STRANGER, "--clear-groups"),
    *(f"--{name}=-all,+dac_read_search" for name in ("inh-caps", "ambient-caps", "bounding-set")),
]

# The commands run in one process, so that kernels are compiled once.
PROGRAM = """
import json, os, sys
from marginmf.cli import main
from marginmf.backends.cpu import compiling, linear_algebra

if hasattr(os, "getuid") and os.getuid() == int(sys.argv[2]):
    import pwd
    try:
        pwd.getpwuid(os.getuid())
        sys.exit("this user is in the list of users")
    except KeyError:
        pass
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    print(json.dumps({"command": words[0], "code": code, "kept": linear_algebra.scores.stats[0]}))
    if code:
        sys.exit(f"{words} ended with {code}")
"""


@pytest.fixture(scope="module")
def container() -> Iterator[Path]:
    """A folder with ``site``, which nobody can write to, and ``out``, which all can."""
    if not hasattr(os, "getuid"):
        pytest.skip("this system has other rights than POSIX")
    if os.getuid() == 0:
        if shutil.which(AS_STRANGER[0]) is None:
            pytest.skip("the administrator can write anywhere, and setpriv is missing")
        if subprocess.run([*AS_STRANGER, "true"], check=False).returncode:
            pytest.skip("this system lets nobody become another user")
    # The folders of pytest are closed to other users.
    root = Path(tempfile.mkdtemp())
    root.chmod(0o755)
    source = Path(marginmf.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, root / "site" / "marginmf", ignore=ignored)
    (root / "out").mkdir()
    (root / "out").chmod(0o777)
    folders = [Path(folder) for folder, _, _ in os.walk(root / "site")]
    for folder in folders:
        folder.chmod(0o555)
    yield root
    for folder in folders:
        folder.chmod(0o755)
    shutil.rmtree(root)


def run_inside(container: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the container, where there are no folders for temporary files either."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(container / "site"),
        "MARGINMF_PLAIN_KERNELS": "1",  # they are compiled sooner
        "TMPDIR": "/nonexistent",
        **more,
    }
    return subprocess.run(
        [*(AS_STRANGER if os.getuid() == 0 else ()), sys.executable, *arguments],
        env=environment,
        cwd=container / "site",
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_main_job_works_and_leaves_nothing_behind(container: Path) -> None:
    out = container / "out"
    ratings, model, predicted = (str(out / name) for name in ("r.csv", "m.marginmf", "p.csv"))
    rows = [f"{u},{i},{(u * i) % 5 + 1}\n" for u in range(30) for i in range(0, 20, 2)]
    Path(ratings).write_text("user,item,rating\n" + "".join(rows))
    commands = [
        # Of all methods, this one has the fewest kernels to compile.
        ["fit", ratings, "--model", "bias", "--no-lists", "--quiet", "--out", model],
        ["predict", model, ratings, "--out", predicted, "--quiet"],
        ["datasets", "list", "--quiet"],
    ]
    done = run_inside(container, "-c", PROGRAM, json.dumps(commands), STRANGER)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    answers = [line for line in done.stdout.splitlines() if line.startswith('{"command"')]
    assert [json.loads(answer)["kept"] for answer in answers] == [None] * 3
    assert {file.name for file in out.iterdir()} == {"m.marginmf", "p.csv", "r.csv"}
    assert {file.name for file in (container / "site").iterdir()} == {"marginmf"}


def test_a_dataset_by_name_gets_a_sentence(container: Path) -> None:
    command = ("-m", "marginmf", "evaluate", "ml-100k", "--model", "als")
    done = run_inside(container, *command, MARGINMF_OFFLINE="1")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "is not available from any source" in done.stderr
    done = run_inside(container, "-m", "marginmf", "datasets", "get", "ml-100k", "--from", __file__)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
