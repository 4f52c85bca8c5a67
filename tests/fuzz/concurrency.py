"""Many calls of one model at the same time, and processes that are forked among them."""

import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import marginmf
from fuzz import corpus, model_files
from fuzz.judging import FailedAttackError, attempt

N_THREADS = 8

TITLE = "Calls at the same time"
N = 1_000
#: Seconds that a forked child may take for one call.
PATIENCE = 30.0


def prepare(folder: Path) -> None:
    """Save the honest models."""
    corpus.save_all(folder)


def attack(seed: int, number: int, folder: Path) -> str:
    """Ask a model the same from several threads at once, or from a child while others ask."""
    rng = random.Random(f"{seed} {number}")
    name = rng.choice(corpus.NAMES)
    model = shared(name, folder)
    calls = list(model_files.calls_of(model))
    method, *given = rng.choice([call for call in calls if hasattr(model, call[0])])
    if method.startswith(("update", "fit_")):  # they change the model
        method, *given = calls[0]
    if number % 20 == 0 and hasattr(os, "fork") and name in corpus.ratings_models():
        return forked(name)
    alone = answer(marginmf.load(corpus.path_of(folder, name)), method, given)
    barrier = threading.Barrier(N_THREADS)

    def ask(_: int) -> Any:
        barrier.wait()
        return answer(model, method, given)

    with ThreadPoolExecutor(N_THREADS) as pool:
        if any(each != alone for each in pool.map(ask, range(N_THREADS))):
            raise FailedAttackError(f"{name}.{method} answers otherwise among threads")
    return "the same answers"


@cache
def shared(name: str, folder: Path) -> Any:
    """Return the model that all threads ask."""
    return marginmf.load(corpus.path_of(folder, name))


def answer(model: Any, method: str, given: Any) -> bytes:
    """Return an answer as bytes, or the sentence of a refusal."""
    found, refused = attempt(getattr(model, method), *given[:-1], **given[-1])
    if method in model_files.NEW_ROWS and not refused:
        found = attempt(getattr(found, "predict", found.recommend), given[0])[0]
    return refused.encode() or flat(found)


def flat(value: Any) -> bytes:
    """Return the numbers and words of an answer as bytes."""
    if hasattr(value, "toarray"):
        value = value.toarray()
    if isinstance(value, dict):
        value = [value[name] for name in sorted(value)]
    if isinstance(value, list | tuple):
        return b"|".join(map(flat, value))
    if hasattr(value, "to_numpy") or hasattr(value, "dtype"):
        array = np.asarray(value)
        return repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
    return repr(value).encode()


def forked(name: str) -> str:
    """Fork while threads calibrate, predict and list; the child must answer like its parent."""
    model = corpus.ratings_models()[name]
    if "calibrate" in model.get_params():
        model.set_params(calibrate=False)
    model.fit(corpus.PAIRS, corpus.STARS)
    method = "predict_proba" if hasattr(model, "predict_proba") else "recommend"
    given = [corpus.PAIRS[:5], {}] if method == "predict_proba" else [["user 01"], {"n": 3}]
    threads = [threading.Thread(target=answer, args=(model, method, given)) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(random.random() * 0.02)
    child = os.fork()
    if child == 0:
        try:
            answer(model, method, given)
            os._exit(0)
        except BaseException:
            os._exit(1)
    until = time.monotonic() + PATIENCE
    found, status = 0, 0
    while not found and time.monotonic() < until:
        found, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    for thread in threads:
        thread.join()
    if not found:
        os.kill(child, 9)
        os.waitpid(child, 0)
        raise FailedAttackError(f"the child of a fork hangs in {name}.{method}")
    if status:
        raise FailedAttackError(f"the child of a fork of {name} ended with {status}")
    return "a child that answered"
