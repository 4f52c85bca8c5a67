"""Numbers that nobody expects, in data and parameters: an answer that is finite, or a sentence."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import label_models
from fuzz import corpus
from fuzz.judging import FailedAttackError, attempt

Change = Callable[[Any], Any]


def _ratings(change: Callable[[np.ndarray], Any]) -> Change:
    return lambda data: (data[0], change(np.array(data[1], float)))


def _first(value: float) -> Change:
    def change(stars: Any) -> Any:
        stars[0] = value
        return stars

    return _ratings(change)


#: Changes of pairs and stars.
OF_RATINGS: dict[str, Change] = {
    "all the same": _ratings(lambda stars: np.full_like(stars, 3.0)),
    "1e99 times": _ratings(lambda stars: stars * 1e99),
    "1e-300 times": _ratings(lambda stars: stars * 1e-300),
    "denormal": _ratings(lambda stars: stars * 5e-324),
    "a hair apart": _ratings(lambda stars: 1.0 + stars * 1e-15),
    "negative": _ratings(lambda stars: -stars),
    "one of 1e308": _first(1e308),
    "one of 1e101": _first(1e101),
    "one NaN": _first(np.nan),
    "one infinite": _first(np.inf),
    "all different": _ratings(lambda stars: np.arange(len(stars)) / 7),
    "one rating": lambda data: (data[0][:1], data[1][:1]),
    "two ratings": lambda data: (data[0][:2], np.array([1.0, 2.0])),
    "no ratings": lambda data: ([], []),
    "one user": lambda data: ([("u", f"i{k}") for k in range(20)], np.arange(20) % 5 + 1.0),
    "one item": lambda data: ([(f"u{k}", "i") for k in range(20)], np.arange(20) % 5 + 1.0),
    "huge ids": lambda data: (
        [(2**63 - 1 - k % 7, -(2**62) + k) for k in range(40)],
        np.arange(40) % 5,
    ),
    "float16": _ratings(lambda stars: stars.astype(np.float16)),
    "text": _ratings(lambda stars: stars.astype(str)),
    "objects": _ratings(lambda stars: stars.astype(object)),
}


def _features(change: Callable[[np.ndarray], Any]) -> Change:
    return lambda data: (change(data[0].copy()), data[1])


def _labels(change: Callable[[np.ndarray], Any]) -> Change:
    return lambda data: (data[0], change(data[1].copy()))


def _put(value: float) -> Change:
    def change(X: Any) -> Any:
        X[0, 0] = value
        return X

    return _features(change)


#: Changes of features and labels.
OF_LABELS: dict[str, Change] = {
    "zeros": _features(np.zeros_like),
    "1e150 times": _features(lambda X: X * 1e150),
    "1e30 times": _features(lambda X: X * 1e30),
    "1e-160 times": _features(lambda X: X * 1e-160),
    "one NaN": _put(np.nan),
    "one infinite": _put(np.inf),
    "one of 1e308": _put(1e308),
    "equal rows": _features(lambda X: np.ones_like(X)),
    "one row": lambda data: (data[0][:1], data[1][:1]),
    "two rows": lambda data: (data[0][:2], data[1][:2]),
    "one label": _labels(lambda Y: Y[:, :1]),
    "no labels": _labels(np.zeros_like),
    "all labels": _labels(np.ones_like),
    "empty sparse": _features(lambda X: csr_array(X.shape)),
    "float16": _features(lambda X: X.astype(np.float16)),
}
CASES = [
    *((name, what) for name in corpus.ratings_models() for what in OF_RATINGS),
    *((name, what) for name in label_models.estimators() for what in OF_LABELS),
]
TITLE = "Extreme numbers"
N = len(CASES)


def prepare(folder: Path) -> None:
    """Nothing comes before."""


def attack(seed: int, number: int, folder: Path) -> str:
    """Fit a method to extreme data; what it answers is finite, without a warning about numbers."""
    name, what = CASES[(number + seed) % N]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            if name in corpus.ratings_models():
                return _fit_ratings(corpus.ratings_models()[name], OF_RATINGS[what])
            return _fit_labels(label_models.estimators()[name], OF_LABELS[what])
        except FailedAttackError as error:
            raise FailedAttackError(f"{name}, {what}: {error}") from None


def _fit_ratings(model: Any, change: Change) -> str:
    pairs, stars = change((corpus.PAIRS, corpus.STARS))
    _, refused = attempt(model.fit, pairs, stars)
    if refused:
        return "refused"
    asked = list(pairs[:3]) + [("nobody", "nothing")] * isinstance(pairs[0][0], str)
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            answer, refused = attempt(getattr(model, method), asked)
            # A margin of PMMMF is infinite where there is no threshold to be above or below of.
            if not refused and np.isnan(answer).any():
                raise FailedAttackError(f"{method} answers {answer}")
    attempt(model.recommend, [pairs[0][0]], n=3)
    return "answered"


def _fit_labels(model: Any, change: Change) -> str:
    X, Y = change(label_models.labelled())
    _, refused = attempt(model.fit, X, Y)
    if refused:
        return "refused"
    for method in ("predict", "decision_function"):
        answer, refused = attempt(getattr(model, method), X)
        values = answer.toarray() if hasattr(answer, "toarray") else answer
        if not refused and not np.isfinite(values).all():
            raise FailedAttackError(f"{method} answers what is not finite")
    return "answered"
