"""Checkpoints that are changed anywhere: a fit goes on from them or refuses, with a sentence."""

import os
import random
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import corpus, model_files
from fuzz.judging import attempt
from marginmf.ratings import ALS, HMF, IPMMMF, MMMF, PMMMF, SVD, GibbsIPMMMF, GibbsMMMF
from tampering import ModelParts

TITLE = "Mutated checkpoints"
N = 2_000

QUICK: dict[str, Any] = {"random_state": 0, "n_jobs": 1, "max_iter": 8, "calibrate": False}
CHAIN: dict[str, Any] = {"n_jobs": 1, "n_burn": 4, "n_samples": 4, "thin": 1}


def unfitted() -> dict[str, Any]:
    """Return estimators with every kind of solver, and generators that are kept."""
    fresh = np.random.default_rng(0)
    old = np.random.Generator(np.random.MT19937(0))
    return {
        "hmf": HMF(3, 1.0, **QUICK),
        "mmmf": MMMF(3, 1.0, **QUICK | {"random_state": fresh}),
        "pmmmf": PMMMF(3, 1.0, solver="gd", **QUICK | {"random_state": old}),
        "als": ALS(3, 1.0, **QUICK),
        "svd": SVD(3, **QUICK),
        "ipmmmf": IPMMMF(3, 1.0, **QUICK),
        "gibbs": GibbsMMMF(3, random_state=fresh, **CHAIN),
        "gibbs infinite": GibbsIPMMMF(max_factors=6, random_state=0, **CHAIN),
    }


def interrupted(name: str, at: int, path: Path) -> None:
    """Leave the checkpoint of a fit that ended after an iteration."""

    def interrupt(progress: Any) -> None:
        if progress.record.iteration == at:
            raise KeyboardInterrupt

    model = unfitted()[name].set_params(callbacks=[interrupt])
    try:
        model.fit(corpus.PAIRS, corpus.STARS, checkpoint=path)
    except KeyboardInterrupt:
        return
    raise AssertionError(f"{name} was not interrupted")


def prepare(folder: Path) -> None:
    """Leave a checkpoint of every estimator."""
    for name in unfitted():
        interrupted(name, 3, folder / name)


@cache
def parts_of(path: Path) -> ModelParts:
    """Return the parts of one file of a checkpoint."""
    return ModelParts(path)


def attack(seed: int, number: int, folder: Path) -> str:
    """Change a file of a checkpoint, and fit."""
    rng = random.Random(f"{seed} {number}")
    name = rng.choice(list(unfitted()))
    path = folder / f"attacked-{os.getpid()}"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(folder / name, path)
    chosen = rng.choice(sorted(path.iterdir())).name
    if rng.random() < 0.2:
        honest = (folder / name / chosen).read_bytes()
        (path / chosen).write_bytes(model_files.change_bytes(rng, honest))
    else:
        parts = parts_of(folder / name / chosen).copy()
        changes: list[Callable[..., None]] = [model_files.change_node]
        changes += [model_files.change_tensor] * 2 * bool(parts.tensors)
        for _ in range(rng.choice((1, 1, 2))):
            rng.choice(changes)(rng, parts, folder)
        parts.write(path / chosen)
    with np.errstate(all="ignore"):
        _, refused = attempt(unfitted()[name].fit, corpus.PAIRS, corpus.STARS, checkpoint=path)
    return "refused" if refused else "went on"
