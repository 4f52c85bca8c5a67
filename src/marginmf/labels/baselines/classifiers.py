"""Many binary classifiers of the same features, for methods that need more than one a label."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from marginmf._utils.saved import Optional, Stored, floats, saved
from marginmf._utils.types import Float64Array, IntArray
from marginmf.labels.algebra.matrices import BLOCK, take_rows
from marginmf.labels.baselines.binary import PROBES, fit_each, linear_weights
from marginmf.labels.linear import affine
from marginmf.labels.wrappers import score_flaws, scores_of


class Problem(NamedTuple):
    """Which rows to tell from which: some of those ``among``, or of all rows, from the others."""

    rows: IntArray
    among: IntArray | None = None

    def constant(self, n_rows: int) -> float | None:
        """Return the score where there is nothing to tell apart: 0 of no rows, or 1 or -1."""
        n_rows = n_rows if self.among is None else len(self.among)
        if 0 < len(self.rows) < n_rows:
            return None
        return 0.0 if n_rows == 0 else 1.0 if len(self.rows) else -1.0


@saved
@dataclass(eq=False)
class Classifiers:
    """Binary classifiers: weights of the features, and estimators where these are not linear.

    Parameters
    ----------
    intercept : array of shape (n_classifiers,)
        What is added; the score of a classifier that had nothing to learn.
    coef : array or csr_array of shape (n_classifiers, n_features)
        The weights of the features; sparse if the features were.
    estimators : list, optional
        The classifiers that are not linear, and None for the others.
    """

    intercept: Float64Array
    coef: Any
    estimators: list[Any] | None = None

    _saved: ClassVar[dict[str, Any]] = {
        "intercept": floats("classifiers"),
        "coef": Stored(("classifiers", "features")),
        "estimators": Optional(list),
    }

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        if self.estimators is None:
            return
        if len(self.estimators) != len(self):
            yield ".estimators are not one for each classifier"
        for k, each in enumerate(self.estimators):
            if each is not None:
                yield from score_flaws(each, f".estimators.{k}", 1, lengths["features"])

    def __len__(self) -> int:
        return len(self.intercept)

    def score_blocks(self, X: Any) -> Iterator[tuple[slice, Float64Array]]:
        """Yield some classifiers and their scores of all rows, so that memory is bounded."""
        size = max(1, BLOCK // max(1, *X.shape))
        for start in range(0, len(self), size):
            part = slice(start, min(start + size, len(self)))
            coef = self.coef[part]
            weights = coef.toarray() if issparse(coef) else coef
            scores = affine(X, weights.T.astype(np.float64, copy=False), self.intercept[part])
            for k, each in enumerate(self.estimators[part] if self.estimators else ()):
                if each is not None:
                    scores[:, k] = scores_of(each, X, 1)[:, 0]
            yield part, scores

    def scores(self, X: Any) -> Float64Array:
        """Return the score of every row and classifier, above 0 for the rows that were meant."""
        found = np.empty((X.shape[0], len(self)))
        for part, scores in self.score_blocks(X):
            found[:, part] = scores
        return found


def fit_classifiers(
    X: Any,
    problems: Iterable[Problem],
    estimator: Any,
    n_jobs: int | None,
    dtype: Any = np.float64,
) -> Classifiers:
    """Fit a copy of the estimator to each problem; their weights are kept in the given type."""
    n_features = X.shape[1]
    intercepts, coefs = [np.zeros(0)], [_as_stored(np.zeros((0, n_features), dtype), X)]
    estimators: list[Any] = []
    probes = X[:PROBES]
    # Of a classifier that is linear the weights alone are kept, block by block.
    remaining, size = iter(problems), max(16, BLOCK // max(1, n_features))
    while block := list(islice(remaining, size)):
        constants = [problem.constant(X.shape[0]) for problem in block]
        open_ones = [k for k, constant in enumerate(constants) if constant is None]
        fitted = fit_each(estimator, (_features(X, block[k]) for k in open_ones), n_jobs)
        linear = linear_weights(fitted, repeat(probes, len(fitted)))
        intercept = np.array([constant or 0.0 for constant in constants])
        coef = np.zeros((len(block), n_features), dtype)
        kept: list[Any] = [None] * len(block)
        if linear is None:
            for k, each in zip(open_ones, fitted, strict=True):
                kept[k] = each
        elif fitted:
            coef[open_ones], intercept[open_ones] = linear
        intercepts.append(intercept)
        coefs.append(_as_stored(coef, X))
        estimators += kept
    coef = csr_array(vstack(coefs)) if issparse(X) else np.concatenate(coefs)
    some = any(each is not None for each in estimators)
    return Classifiers(np.concatenate(intercepts), coef, estimators if some else None)


def _features(X: Any, problem: Problem) -> tuple[Any, IntArray]:
    return X if problem.among is None else take_rows(X, problem.among), problem.rows


def _as_stored(coef: Any, X: Any) -> Any:
    return csr_array(coef) if issparse(X) else coef
