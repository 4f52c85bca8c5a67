"""Sets of labels as classes: label powersets, and random k-labelsets (RAkEL)."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import comb
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.special import softmax

from marginmf._utils.parameters import check_flag, check_number
from marginmf._utils.random import as_generator
from marginmf._utils.saved import Stored, are_row_ends, counts, indices, within
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.labels.algebra.matrices import row_blocks
from marginmf.labels.base import method
from marginmf.labels.baselines.binary import OneEach, rows_of_each
from marginmf.labels.baselines.classifiers import Classifiers, Problem, fit_classifiers
from marginmf.labels.calibration import as_predictors

#: A label with exactly as many votes as the threshold wants is present.
TIE = 1e-9
#: Scores of support vector machines are multiplied by this before a vote is shared: without it, the
#: many unlikely combinations or pairs would outweigh the likely ones.
SHARPNESS = 8.0
#: How many labels are read as one binary number.
BITS = 32


class LabelSets(OneEach):
    """An estimator that learns which combination of the labels in a set a row has.

    For every set of labels there is a classifier for each combination that occurs, against the
    rest, and that with the highest score is predicted; where two occur, one classifier decides.
    The score of a label is the share of its sets whose combination has it, minus the threshold.

    Parameters
    ----------
    estimator : classifier, optional
        Any scikit-learn classifier of two classes that has ``decision_function`` or
        ``predict_proba``; by default a `LinearSVC` with the hinge loss and ``C=1``.
    soft : bool
        Whether the combinations of a set share its vote, by the softmax of their scores (times
        `SHARPNESS`, unless these are probabilities), which ranks labels far better.  Otherwise the
        best has it: with ``decision="sign"``, that is the published method.
    n_jobs : int or None
        How many classifiers are learned at a time, as in scikit-learn: None is one, -1 is as many
        as there are processors.  The result does not depend on it.

    Attributes
    ----------
    labelsets_ : array of shape (n_sets, k)
        The labels of every set.
    combinations_ : csr_array of shape (n_combinations, n_labels)
        The labels of every combination, set by set.
    set_ends_ : array of shape (n_sets + 1,)
        Where the combinations of each set end, after a first 0.
    classifier_of_ : array of shape (n_combinations,)
        The classifier of each combination: sets may have some in common.
    classifiers_ : Classifiers
        The classifiers; the score of the first is always 0.
    """

    soft: bool
    _saved: ClassVar[dict[str, Any]] = {
        "labelsets_": indices("sets", "labels of a set", along="labels"),
        "set_ends_": counts("sets + 1"),
        "combinations_": Stored(("combinations", "labels")),
        "classifier_of_": counts("combinations"),
        "classifiers_": "Classifiers",
        "_labels": "Varying",
    }
    labelsets_: IntArray
    set_ends_: IntArray
    combinations_: csr_array
    classifier_of_: IntArray
    classifiers_: Classifiers

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        ends, found = self.set_ends_, self.combinations_
        if not are_row_ends(ends, found.shape[0]) or (np.diff(ends) == 0).any():
            yield ".set_ends_ do not divide the combinations"
        if type(found) is not csr_array or not (found.data == 1).all():
            yield ".combinations_ has something else than ones"
        if not within(self.classifier_of_, len(self.classifiers_)):
            yield ".classifier_of_ has classifiers that do not exist"

    def _check(self) -> None:
        super()._check()
        check_flag(self, "soft")

    @property
    def _least_vote(self) -> float:
        """The share of votes from which on a label is present."""
        return 0.5

    @property
    def _probability_scores(self) -> bool:
        return bool(self.soft) and self._least_vote == 0.5

    @abstractmethod
    def _draw(self, n_labels: int) -> IntArray:
        """Return the sets of labels, one a row."""

    def _fit(self, X: Any, Y: csr_array) -> None:
        self.labelsets_ = self._draw(Y.shape[1])
        rows_of = rows_of_each(Y)
        nothing = np.zeros(0, np.int64)
        problems, sets = [Problem(nothing, among=nothing)], []
        number_of: dict[bytes, int] = {}
        numbers: list[int] = []
        for labels in self.labelsets_:
            found = find_combinations(labels, rows_of, Y.shape)
            sets.append(found)
            first = 1 if len(found) == 2 else 0
            numbers += [0] * first
            for rows in found.rows[first:]:
                # Rare labels are mostly alone, in whatever set they are.
                number = number_of.setdefault(rows.tobytes(), len(problems))
                if number == len(problems):
                    problems.append(Problem(rows))
                numbers.append(number)
        self.set_ends_ = np.cumsum([0, *(len(found) for found in sets)])
        empty = csr_array((0, Y.shape[1]))
        self.combinations_ = csr_array(vstack([empty, *(each.labels for each in sets)], "csr"))
        self.classifier_of_ = np.array(numbers, np.int64)
        self.classifiers_ = fit_classifiers(X, problems, self.estimator, self.n_jobs)

    def _scores(self, X: Any) -> FloatArray:
        width = max(len(self.classifier_of_), len(self.classifiers_))
        blocks = [self._votes(block) for block in row_blocks(X, width)]
        of_label = np.bincount(self.labelsets_.ravel(), minlength=len(self._labels.varying))
        shares = np.concatenate(blocks) / np.maximum(of_label, 1)
        return shares - self._least_vote + TIE

    def _votes(self, X: Any) -> Float64Array:
        scores = self.classifiers_.scores(X)
        if self.soft:
            scores = as_evidence(scores, super()._probability_scores)
        weights = scores[:, self.classifier_of_]
        for start, end in pairwise(self.set_ends_):
            one = weights[:, start:end]
            if self.soft:
                one[:] = softmax(one, axis=1)
            else:
                best = one.argmax(axis=1)
                one[:] = 0.0
                one[np.arange(len(one)), best] = 1.0
        votes: Float64Array = (self.combinations_.T @ weights.T).T
        return votes


def as_evidence(scores: FloatArray, of_probabilities: bool) -> Float64Array:
    """Return the scores of classifiers on the scale of logits, on which votes are shared."""
    return as_predictors(scores, of_probabilities) * (1.0 if of_probabilities else SHARPNESS)


class Combinations(NamedTuple):
    """The combinations of a set of labels that occur: their labels, and the rows of each."""

    labels: csr_array
    rows: list[IntArray]

    def __len__(self) -> int:
        return len(self.rows)


def find_combinations(
    labels: IntArray, rows_of: list[IntArray], shape: tuple[int, int]
) -> Combinations:
    """Return which combinations of these labels rows have; that of no labels is the first."""
    codes = np.zeros(shape[0], np.int64)
    for start in range(0, len(labels), BITS):
        numbers = np.zeros(shape[0], np.int64)
        for bit, label in enumerate(labels[start : start + BITS]):
            numbers[rows_of[label]] += 1 << bit
        # There are fewer codes than rows, so that both fit into 64 bits.
        codes = np.unique(codes << BITS | numbers, return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    rows: list[IntArray] = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    number_of = np.full(shape[0], -1)
    number_of[[each[0] for each in rows]] = np.arange(len(rows))
    # Each combination is read off its first row.
    having = [number_of[rows_of[label]] for label in labels]
    found = np.concatenate(having)
    columns = np.repeat(labels, [len(each) for each in having])
    kept = found >= 0
    pairs = (found[kept], columns[kept])
    matrix = csr_array((np.ones(len(pairs[0])), pairs), (len(rows), shape[1]))
    matrix.sort_indices()
    return Combinations(matrix, rows)


def draw_sets(n_labels: int, k: int, n_sets: int, generator: np.random.Generator) -> IntArray:
    """Return distinct sets of k labels, in which every label occurs.

    They are drawn uniformly; labels that are in none get further sets, filled up with others.
    """
    k = min(k, n_labels)
    if n_labels == 0:
        return np.zeros((0, 0), np.int64)
    if n_sets >= comb(n_labels, k):
        return np.array(list(combinations(range(n_labels), k)), np.int64).reshape(-1, k)
    found: dict[tuple[int, ...], None] = {}
    while len(found) < n_sets:
        drawn = generator.choice(n_labels, k, replace=False)
        found[tuple(np.sort(drawn).tolist())] = None
    sets = np.array(list(found), np.int64)
    left = generator.permutation(np.setdiff1d(np.arange(n_labels), sets))
    if len(left) == 0:
        return sets
    others = generator.permutation(np.setdiff1d(np.arange(n_labels), left))
    # The sets that were drawn have at least k labels to fill up with.
    filled = np.append(left, others[: -len(left) % k])
    return np.concatenate([sets, np.sort(filled.reshape(-1, k), axis=1)])


@method("rakel")
@dataclass(eq=False, repr=False)
class RAkEL(LabelSets):
    """Random k-labelsets: classifiers of the combinations in small sets of labels, which vote.

    After Tsoumakas and Vlahavas (2007); `LabelPowerset` is the case of one set with all labels.
    Every label is in some set here: labels that the draw leaves out get further sets.

    Parameters
    ----------
    k : int
        How many labels a set has.
    n_sets : int, optional
        How many distinct sets are drawn; by default twice as many as there are labels.  All there
        are, if that is fewer.
    threshold : float
        The share of votes from which on a label is present, with ``decision="sign"``.
    random_state : int, Generator or None
        Seeds the draw.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=4, random_state=0)
    >>> model = RAkEL(k=2, soft=False, random_state=0, decision="sign").fit(X, Y)
    >>> model.predict(X).shape, model.labelsets_.shape
    ((100, 4), (6, 2))
    """

    k: int = 3
    n_sets: int | None = None
    estimator: Any = None
    threshold: float = 0.5
    soft: bool = True
    random_state: Any = None
    n_jobs: int | None = None

    def _check(self) -> None:
        super()._check()
        check_number(self, "k", int, 1)
        if self.n_sets is not None:
            check_number(self, "n_sets", int, 1)
        check_number(self, "threshold", float, 0)
        if self.threshold > 1:
            raise ValueError(f"threshold={self.threshold!r} must be a share of votes, from 0 to 1.")
        as_generator(self.random_state)

    @property
    def _least_vote(self) -> float:
        return float(self.threshold)

    def _draw(self, n_labels: int) -> IntArray:
        n_sets = 2 * n_labels if self.n_sets is None else self.n_sets
        return draw_sets(n_labels, self.k, n_sets, as_generator(self.random_state))


@method("label-powerset")
@dataclass(eq=False, repr=False)
class LabelPowerset(LabelSets):
    """A class for every set of labels that occurs: only these can be predicted.

    `RAkEL` with one set of all labels.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=4, random_state=0)
    >>> model = LabelPowerset(soft=False, decision="sign").fit(X, Y)
    >>> model.predict(X).shape, model.combinations_.shape
    ((100, 4), (16, 4))
    """

    estimator: Any = None
    soft: bool = True
    n_jobs: int | None = None

    def _draw(self, n_labels: int) -> IntArray:
        return np.arange(n_labels).reshape(1 if n_labels else 0, n_labels)
