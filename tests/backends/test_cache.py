"""The cache of compiled kernels: used by the next process, and never for another loss."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import marginmf
from marginmf.backends.reference import ReferenceKernels
from marginmf.losses import TWO_LEVEL, TwoLevelLoss
from marginmf.thresholds import REACH

SOURCES = Path(marginmf.__file__).parents[1]

# What each process runs: the losses named on its command line through two row losses, then a
# kernel without a loss.  "own" is a loss that only the process knows.
PROGRAM = """
import json, sys
import numpy as np
from marginmf.backends import compiled, cpu
from marginmf.losses import TWO_LEVEL, TwoLevelLoss

own = TwoLevelLoss("own", lambda z: np.exp(-z), lambda z: -np.exp(-z))
kernels = cpu.CpuKernels(1)
rng = np.random.default_rng(0)
indptr = np.array([0, 3, 3, 8])
scores, levels, thresholds = rng.normal(size=8), rng.integers(4, size=8), rng.normal(size=(3, 3))
results = {}
for name in sys.argv[1:]:
    loss = own if name == "own" else TWO_LEVEL[name]
    results[name] = [
        array.tolist()
        for arrays in (
            kernels.two_level_rows(indptr, scores, levels, 1, loss),
            kernels.threshold_rows(indptr, scores, levels, thresholds, np.inf, loss),
        )
        for array in arrays
    ]
results["dot"] = kernels.dot(scores, scores)
print(json.dumps({"compiled": compiled.n_compilations(), "results": results}))
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
    """Return what the program computes, by the reference kernels."""
    kernels, rng = ReferenceKernels(), np.random.default_rng(0)
    indptr = np.array([0, 3, 3, 8])
    scores, levels = rng.normal(size=8), rng.integers(4, size=8)
    thresholds = rng.normal(size=(3, 3))
    return [
        *kernels.two_level_rows(indptr, scores, levels, 1, loss),
        *kernels.threshold_rows(indptr, scores, levels, thresholds, REACH["all"], loss),
    ]


def assert_right(answer: dict[str, Any], name: str, loss: TwoLevelLoss) -> None:
    for ours, expected in zip(answer["results"][name], reference(loss), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-10)


def test_second_process_compiles_nothing_and_gets_the_same(tmp_path: Path) -> None:
    first = process(tmp_path, "logistic")
    second = process(tmp_path, "logistic")
    assert first["compiled"] > 0
    assert second["compiled"] == 0
    assert second["results"] == first["results"]


def test_losses_do_not_get_each_others_code(tmp_path: Path) -> None:
    own = TwoLevelLoss("own", lambda z: np.exp(-z), lambda z: -np.exp(-z))
    first = process(tmp_path, "own", "smooth_hinge")
    assert_right(first, "own", own)
    assert_right(first, "smooth_hinge", TWO_LEVEL["smooth_hinge"])
    second = process(tmp_path, "hinge", "modified_square")
    for name in ("hinge", "modified_square"):
        assert_right(second, name, TWO_LEVEL[name])


def test_changed_loss_is_compiled_anew(tmp_path: Path) -> None:
    # As after an upgrade, or in a checkout: another file than the kernels' own has changed.
    sources, cache = tmp_path / "src", tmp_path / "cache"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCES / "marginmf", sources / "marginmf", ignore=ignore)
    before = process(cache, "hinge", sources=sources)
    assert_right(before, "hinge", TWO_LEVEL["hinge"])

    file = sources / "marginmf" / "losses.py"
    text = file.read_text()
    definition = "return np.maximum(1.0 - z, 0.0)\n"
    assert definition in text
    file.write_text(text.replace(definition, "return 7.0 + 0.0 * z\n", 1))
    after = process(cache, "hinge", sources=sources)
    assert after["results"]["hinge"][0] == [21.0, 0.0, 35.0]
