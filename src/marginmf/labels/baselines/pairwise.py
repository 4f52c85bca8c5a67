"""Calibrated label ranking: labels compared in pairs, and each with a virtual one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from marginmf._utils.parameters import check_flag
from marginmf._utils.saved import indices
from marginmf._utils.types import FloatArray, IntArray
from marginmf.labels.base import method
from marginmf.labels.baselines.binary import OneEach, rows_of_each
from marginmf.labels.baselines.classifiers import Problem, fit_classifiers
from marginmf.labels.baselines.labelsets import TIE, as_evidence

#: More labels than this have too many pairs.
MOST_LABELS = 500


@method("clr")
@dataclass(eq=False, repr=False)
class CLR(OneEach):
    """Calibrated label ranking: a classifier for every two labels, and a vote (Fürnkranz, 2008).

    The classifier of two labels is learned from the rows that have exactly one of them.  A virtual
    label stands between those that are present and those that are not: against it, a label has the
    classifier of `BinaryRelevance`.  Each classifier gives its vote to one of its two labels, and a
    label is present if it has at least as many votes as the virtual one.  The score is the
    difference, divided by the number of labels.

    Parameters
    ----------
    estimator : classifier, optional
        Any scikit-learn classifier of two classes that has ``decision_function`` or
        ``predict_proba``; by default a `LinearSVC` with the hinge loss and ``C=1``.
    soft : bool
        Whether the two labels of a classifier share its vote, by the logistic function of its
        score (as in `RAkEL`).  Otherwise the winner has it: with ``decision="sign"``, that is the
        published method.
    n_jobs : int or None
        How many classifiers are learned at a time, as in scikit-learn: None is one, -1 is as many
        as there are processors.  The result does not depend on it.

    Attributes
    ----------
    pairs_ : array of shape (n_pairs, 2)
        The two labels of each classifier, whose score is above 0 for the first.  A label beside
        itself is compared with the virtual one.
    classifiers_ : Classifiers
        The classifiers, with weights in single precision: there are many.

    Notes
    -----
    Fürnkranz, Hüllermeier, Loza Mencía and Brinker (2008), Multilabel classification via calibrated
    label ranking, Machine Learning 73.  Two labels that always go together share their vote.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=4, random_state=0)
    >>> model = CLR(soft=False, decision="sign").fit(X, Y)
    >>> model.predict(X).shape, len(model.pairs_)
    ((100, 4), 10)
    """

    estimator: Any = None
    soft: bool = True
    n_jobs: int | None = None

    _saved: ClassVar[dict[str, Any]] = {
        "pairs_": indices("pairs", "2", along="labels"),
        "classifiers_": "Classifiers",
        "_labels": "Varying",
    }

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        if len(self.pairs_) != len(self.classifiers_):
            yield ".pairs_ are not two labels for each classifier"

    def _check(self) -> None:
        super()._check()
        check_flag(self, "soft")

    @property
    def _probability_scores(self) -> bool:
        return False

    def _fit(self, X: Any, Y: csr_array) -> None:
        n_labels = self._seen.n_labels
        if n_labels > MOST_LABELS:
            raise ValueError(
                f"CLR learns a classifier for every two labels, which {n_labels} labels are too "
                f"many for: take at most {MOST_LABELS}, or RAkEL, whose cost grows with their "
                "number alone."
            )
        alone = [(label, label) for label in range(Y.shape[1])]
        pairs = [*alone, *combinations(range(Y.shape[1]), 2)]
        self.pairs_: IntArray = np.array(pairs, np.int64).reshape(-1, 2)
        rows_of = rows_of_each(Y)
        problems = (
            tell_apart(rows_of[a], rows_of[b]) if a != b else Problem(rows_of[a]) for a, b in pairs
        )
        self.classifiers_ = fit_classifiers(X, problems, self.estimator, self.n_jobs, np.float32)

    def _scores(self, X: Any) -> FloatArray:
        n_labels = len(self._labels.varying)
        first, second = self.pairs_.T
        second = np.where(second == first, n_labels, second)
        votes = np.zeros((n_labels + 1, X.shape[0]))
        for part, scores in self.classifiers_.score_blocks(X):
            won = self._share(scores.T)
            columns = np.arange(won.shape[0])
            shape = (n_labels + 1, won.shape[0])
            votes += csr_array((np.ones(len(columns)), (first[part], columns)), shape) @ won
            votes += csr_array((np.ones(len(columns)), (second[part], columns)), shape) @ (
                1.0 - won
            )
        ahead: FloatArray = (votes[:-1] - votes[-1]).T
        return ahead / self._labels.varying.sum() + TIE

    def _share(self, scores: FloatArray) -> FloatArray:
        """Return what the first label of each pair has of its vote; half where nothing is known."""
        if self.soft:
            shares: FloatArray = expit(as_evidence(scores, super()._probability_scores))
            return shares
        return (np.sign(scores) + 1.0) / 2.0


def tell_apart(first: IntArray, second: IntArray) -> Problem:
    """Return the problem to tell rows that have only the first label from those of the second."""
    among = np.setxor1d(first, second, assume_unique=True)
    return Problem(np.flatnonzero(np.isin(among, first, assume_unique=True)), among)
