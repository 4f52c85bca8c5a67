"""The cache of compiled kernels: used by the next process, and never for another loss."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import marginmf
from marginmf.backends.cpu import compiling
from marginmf.backends.reference import ReferenceBackend
from marginmf.backends.rows import Rows
from marginmf.backends.specs import Thresholds, TwoLevel
from marginmf.losses import TWO_LEVEL, TwoLevelLoss

SOURCES = Path(marginmf.__file__).parents[1]

# What each process runs: the losses named on its command line through the gradient of a row loss
# (of a second one too, if the name ends in "+"), then a kernel without a loss.  "own" is a loss
# that only the process knows.
PROGRAM = """
import json, sys
import numpy as np
from marginmf.backends.cpu import compiling
from marginmf.backends.cpu.backend import CpuBackend
from marginmf.backends.rows import Rows
from marginmf.backends.specs import Thresholds, TwoLevel
from marginmf.losses import TWO_LEVEL, TwoLevelLoss

own = TwoLevelLoss("own", lambda z: np.exp(-z), lambda z: -np.exp(-z))
cpu, rng = CpuBackend(1), np.random.default_rng(0)
rows = Rows(np.arange(4.0), np.array([0, 3, 3, 8]), np.arange(8) % 5, rng.integers(4, size=8))
U, V, thresholds = (rng.normal(size=shape) for shape in ((3, 2), (5, 2), (3, 3)))
results = {}
for name in sys.argv[1:]:
    loss = own if name == "own" else TWO_LEVEL[name.rstrip("+")]
    found = cpu.row_gradients(rows, TwoLevel(loss, 1), U, V, thresholds[:, :0].copy())[:2]
    if name.endswith("+"):
        found += cpu.row_gradients(rows, Thresholds(loss), U, V, thresholds)
    results[name] = [array.tolist() for array in found]
results["dots"] = cpu.dots((U.ravel(),), U.ravel())
print(json.dumps({"compiled": compiling.n_compilations(), "results": results}))
"""


def process(cache: Path, *losses: str, sources: Path = SOURCES) -> dict[str, Any]:
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(cache),
        "PYTHONPATH": str(sources),
        "MARGINMF_PLAIN_KERNELS": "1",  # they are compiled sooner
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *losses],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def reference(loss: TwoLevelLoss) -> list[np.ndarray]:
    """Return what the program computes, by the reference."""
    backend, rng = ReferenceBackend(), np.random.default_rng(0)
    rows = Rows(np.arange(4.0), np.array([0, 3, 3, 8]), np.arange(8) % 5, rng.integers(4, size=8))
    U, V, thresholds = (rng.normal(size=shape) for shape in ((3, 2), (5, 2), (3, 3)))
    found = [
        *backend.row_gradients(rows, TwoLevel(loss, 1), U, V, thresholds[:, :0])[:2],
        *backend.row_gradients(rows, Thresholds(loss), U, V, thresholds),
    ]
    return [array for array in found if array is not None]


def assert_right(answer: dict[str, Any], name: str, loss: TwoLevelLoss) -> None:
    for ours, expected in zip(answer["results"][name], reference(loss), strict=False):
        np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-10)


def test_the_next_process_compiles_nothing_anew_and_no_loss_gets_anothers_code(
    tmp_path: Path,
) -> None:
    own = TwoLevelLoss("own", lambda z: np.exp(-z), lambda z: -np.exp(-z))
    first = process(tmp_path, "own", "smooth_hinge+")
    assert first["compiled"] > 0
    assert_right(first, "own", own)
    assert len(first["results"]["smooth_hinge+"]) == 5
    assert_right(first, "smooth_hinge+", TWO_LEVEL["smooth_hinge"])
    second = process(tmp_path, "smooth_hinge+")
    assert second["compiled"] == 0
    assert second["results"]["smooth_hinge+"] == first["results"]["smooth_hinge+"]
    assert second["results"]["dots"] == first["results"]["dots"]
    third = process(tmp_path, "hinge+")
    assert third["compiled"] == 2
    assert_right(third, "hinge+", TWO_LEVEL["hinge"])


def test_a_changed_loss_is_compiled_anew(tmp_path: Path) -> None:
    # As after an upgrade, or in a checkout: another file than the kernel's own has changed.
    sources, cache = tmp_path / "src", tmp_path / "cache"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCES / "marginmf", sources / "marginmf", ignore=ignore)
    first = process(cache, "hinge", sources=sources)
    assert_right(first, "hinge", TWO_LEVEL["hinge"])
    file = sources / "marginmf" / "losses.py"
    text, before = file.read_text(), "return np.maximum(1.0 - z, 0.0)\n"
    assert before in text
    file.write_text(text.replace(before, "return 7.0 + 0.0 * z\n", 1))
    second = process(cache, "hinge", sources=sources)
    assert second["compiled"] > 0
    assert second["results"]["hinge"][0] == [21.0, 0.0, 35.0]


@pytest.mark.parametrize("name", ["compiling", "inner_loops", "losses", "vector_code"])
def test_a_change_of_what_is_inlined_changes_the_key_of_every_kernel(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in (SOURCES / "marginmf/backends/cpu").glob("*.py"):
        shutil.copy(file, tmp_path)
    sources = compiling.sources.__wrapped__
    before = sources(True)
    monkeypatch.setattr(compiling, "__file__", str(tmp_path / "compiling.py"))
    assert sources(True) == before != sources(False)
    with (tmp_path / f"{name}.py").open("a") as file:
        file.write("# changed\n")
    assert sources(True) != before
