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
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(sources)}
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


# As after an upgrade, or in a checkout: another file than the kernels' own has changed.
CHANGES = {
    "the definition of a loss": (
        "losses.py",
        "return np.maximum(1.0 - z, 0.0)\n",
        "return 7.0 + 0.0 * z\n",
        [21.0, 0.0, 35.0],
    ),
    "the loss of a row": (
        "backends/cpu/losses.py",
        "total += value\n        weight[k] = y * derivative\n",
        "total += 3.0\n        weight[k] = y * derivative\n",
        [9.0, 0.0, 15.0],
    ),
    "an inner loop": (
        "backends/cpu/inner_loops.py",
        "out[k] = total\n",
        "out[k] = 1.0\n",
        None,
    ),
}


def test_changed_code_is_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARGINMF_PLAIN_KERNELS", "1")
    sources, cache = tmp_path / "src", tmp_path / "cache"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCES / "marginmf", sources / "marginmf", ignore=ignore)
    first = process(cache, "hinge", sources=sources)
    assert_right(first, "hinge", TWO_LEVEL["hinge"])
    for name, before, after, expected in CHANGES.values():
        file = sources / "marginmf" / name
        text = file.read_text()
        assert before in text
        file.write_text(text.replace(before, after, 1))
        changed = process(cache, "hinge", sources=sources)
        file.write_text(text)
        assert changed["compiled"] > 0
        losses = changed["results"]["hinge"][0]
        if expected is None:
            # All scores are one: right answers cost nothing, wrong ones two.
            assert set(losses) <= {0.0, 2.0, 4.0, 6.0, 8.0, 10.0}
        else:
            assert losses == expected
