"""Many threads that ask one model get, to the last bit, what one thread gets."""

import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import marginmf
from contracts import synthetic
from label_contracts import dense, labelled
from marginmf.labels import MLCHMF, GroPLE, KernelEmbedding, MLkNN, RAkEL
from marginmf.ratings import ALS, BPMF, EASE, HMF, MMMF, ItemKNN, OneClassMMMF
from marginmf.ratings.positive import PositiveOnly

N_THREADS, N_CALLS = 16, 160
PAIRS, STARS = synthetic((1, 2, 3, 4, 5))
ASKED = [*map(tuple, PAIRS[:40].tolist()), (10_000, 3), (3, 10_000)]
NEW = PAIRS[:60] + np.array([1000, 0])
QUICK: dict[str, Any] = {"random_state": 0, "max_iter": 5}

RATINGS = {
    "HMF": lambda: HMF(3, 1.0, calibrate=False, **QUICK),
    "MMMF": lambda: MMMF(3, 1.0, calibrate=False, implicit="both", n_jobs=2, **QUICK),
    "ALS": lambda: ALS(3, 1.0, calibrate=False, random_state=0),
    "BPMF": lambda: BPMF(3, n_burn=2, n_samples=4, random_state=0),
    "EASE": lambda: EASE(reg=1.0),
    "ItemKNN": lambda: ItemKNN(),
    "OneClassMMMF": lambda: OneClassMMMF(n_factors=3, random_state=0),
}


def frame(found: Any) -> Any:
    return {name: found[name].tolist() for name in found}


def calls_of(model: Any) -> dict[str, Callable[[Any], Any]]:
    """Return all that users ask of a model."""
    found: dict[str, Callable[[Any], Any]] = {
        "decision_function": lambda m: m.decision_function(ASKED).tobytes(),
        "recommend": lambda m: frame(m.recommend([0, 7, 33], n=5)),
        "similar_items": lambda m: frame(m.similar_items([3, 4], n=4)),
        "fold_in": lambda m: frame(m.fold_in(NEW, STARS[:60]).recommend(n=3)),
        "pickle": lambda m: len(pickle.dumps(m)) > 0,
        "deepcopy": lambda m: m is not deepcopy(m),
    }
    if hasattr(model, "predict_proba"):
        found |= {
            "predict": lambda m: m.predict(ASKED).tobytes(),
            "predict_proba": lambda m: m.predict_proba(ASKED).tobytes(),
            "expected": lambda m: frame(m.recommend([1, 2], n=5, by="expected")),
        }
    if not isinstance(model, BPMF | PositiveOnly):
        found["explain"] = lambda m: frame(m.explain(0, 7, n=3))
    if hasattr(model, "credible_interval"):
        found["credible_interval"] = lambda m: np.array(m.credible_interval(ASKED[:40])).tobytes()
    return found


@pytest.fixture(autouse=True)
def _many_switches() -> Iterator[None]:
    """Let threads take turns a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def ask_at_once(shared: Any, calls: dict[str, Callable[[Any], Any]], n_calls: int) -> None:
    """Assert that the answers of many threads are those of one, from the first on."""
    expected = {name: call(deepcopy(shared)) for name, call in calls.items()}
    together, names = Barrier(N_THREADS), list(calls)

    def ask(thread: int) -> list[str]:
        together.wait()
        wrong = []
        for number in range(n_calls // N_THREADS + 1):
            name = names[(thread + number) % len(names)]
            if calls[name](shared) != expected[name]:
                wrong.append(name)
        return wrong

    with ThreadPoolExecutor(N_THREADS) as pool:
        wrong = [name for answers in pool.map(ask, range(N_THREADS)) for name in answers]
    assert wrong == []


@pytest.mark.parametrize("name", RATINGS)
def test_rating_methods_and_lists(name: str, tmp_path: Any) -> None:
    model = RATINGS[name]().fit(PAIRS, STARS)
    calls = calls_of(model)

    def save(m: Any) -> bool:
        path = tmp_path / f"{np.random.default_rng().integers(1 << 40)}.marginmf"
        m.save(path)
        return type(marginmf.load(path)) is type(m)

    calls["save"] = save
    ask_at_once(model, calls, N_CALLS)


LABELS = {
    "GroPLE": lambda: GroPLE(max_iter=20, calibrate=True, random_state=0),
    "MLCHMF": lambda: MLCHMF(calibrate=True, random_state=0),
    "KernelEmbedding": lambda: KernelEmbedding(calibrate=True),
    "MLkNN": lambda: MLkNN(calibrate=True),
    "RAkEL": lambda: RAkEL(calibrate=True, random_state=0),
}


@pytest.mark.parametrize("name", LABELS)
def test_label_methods(name: str) -> None:
    X, Y = labelled()
    model = LABELS[name]().fit(X, Y)
    calls: dict[str, Callable[[Any], Any]] = {
        "decision_function": lambda m: m.decision_function(X).tobytes(),
        "predict": lambda m: dense(m.predict(X)).tobytes(),
        "predict_proba": lambda m: m.predict_proba(X[:9]).tobytes(),
        "pickle": lambda m: len(pickle.dumps(m)) > 0,
    }
    ask_at_once(model, calls, N_CALLS)


def test_a_sparse_matrix_of_a_model_does_not_change_while_it_is_copied() -> None:
    """SciPy notes on a matrix whether it is in order, when somebody first needs to know."""
    model = RATINGS["ItemKNN"]().fit(PAIRS, STARS)
    before = set(vars(model.weights_.matrix))
    model.recommend([0], n=3)
    model.weights_.by_source.sum()
    assert set(vars(model.weights_.matrix)) == before
