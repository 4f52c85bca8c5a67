"""Labels learned from the similarity of rows: kernel ridge regression, and kernels as features."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from marginmf._utils.parameters import MOST, check_choice, check_number
from marginmf._utils.random import as_generator
from marginmf._utils.saved import Optional, Stored, floats, saved
from marginmf._utils.sparse import settled
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.labels.algebra.kernels import (
    PREPARATIONS,
    DualRidge,
    LandmarkMoments,
    median_distance,
    prepare_rows,
    rbf_kernel,
)
from marginmf.labels.algebra.matrices import ZERO, feature_factors, take_rows
from marginmf.labels.base import batches, method
from marginmf.labels.order import row_keys
from marginmf.labels.strengths import ChosenStrength, StrengthSearch, Trial, climb, middle
from marginmf.labels.wrappers import Transformed, score_flaws

#: Regularisation strengths, and bandwidths in units of the median rule, that "auto" may try; it
#: begins in the middle and goes on where that is better.
REGS, GAMMAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0), (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
#: How many rows the bandwidth and the preparation are chosen on, and the median is taken of.
N_CHOOSING, N_MEDIAN = 2000, 500
#: Up to this many rows the kernel of all rows is factorised, and up to that many in float64.
MOST_EXACT, MOST_DOUBLE = 8192, 1024
#: How many landmarks stand for more rows than that; of very many rows, which take long, fewer.
N_LANDMARKS, N_OF_MANY, MANY = 4096, 2048, 2**16


class Kernel(NamedTuple):
    """A preparation of rows, and a bandwidth in units of the median rule."""

    prepare: str
    gamma: float

    def prepare_training(self, X: Any) -> tuple[Float64Array | None, Any]:
        """Return the factors of the features, if they are scaled, and the rows prepared."""
        factor = feature_factors(X)[0] if self.prepare == "scale" else None
        return factor, prepare_rows(X, self.prepare, factor)

    def scale(self, rows: Any) -> float:
        """Return the bandwidth as a factor of squared distances of such rows."""
        return self.gamma / median_distance(rows[:N_MEDIAN])


@method("kernel")
@dataclass(eq=False, repr=False)
class KernelEmbedding(ChosenStrength):
    """Ridge regression of all labels on the similarity of rows, an RBF kernel.

    Rows are similar by ``exp(-gamma |x - x'|^2)``; a score is a weighted sum of the similarities to
    the training rows, minus one half.  It is linear regression on infinitely many features, and on
    most benchmark data sets ahead of every embedding of labels that is linear in the features.

    What is "auto" is chosen on rows held out: by the log loss of probabilities where the decision
    rule follows these, else by what thresholds reach of ``tune_for``.  One factorisation gives the
    predictions of all folds exactly, without a fit for each.  More than 8,192 rows are represented
    by landmarks (the Nystroem method), so that memory does not grow with the square of the rows.

    Parameters
    ----------
    reg : float or "auto"
        The regularisation strength; auto looks for the best from 0.01 to 10.
    gamma : float or "auto"
        The bandwidth: 1 is one over the median squared distance of 500 rows, 2 twice as narrow.
        Auto looks for the best from 1/8 to 8.
    prepare : {"auto", "none", "scale", "normalize"}
        How rows are made comparable: not at all, each feature divided by its range in training, or
        each row by its length, which suits counts of words.
    n_landmarks : int or "auto"
        How many training rows stand for all.  Auto: every row is one up to 8,192 rows, and 4,096
        of more (2,048 of more than 65,536).

    Attributes
    ----------
    kernel_ : dict
        The preparation, bandwidth (in units of the median rule) and strength that are used.
    gamma_ : float
        The bandwidth as a factor of squared distances.
    rows_ : array or csr_array of shape (n_rows, n_features)
        The training rows or landmarks, prepared.
    weights_ : array of shape (n_rows, n_labels)
        Their weights.
    intercept_ : array of shape (n_labels,)
        What is added to the weighted sum.
    factor_ : array of shape (n_features,) or None
        What features are multiplied with, where they are scaled.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=6, random_state=0)
    >>> model = KernelEmbedding().fit(X, Y)
    >>> model.predict(X).shape, sorted(model.kernel_)
    ((100, 6), ['gamma', 'prepare', 'reg'])
    """

    reg: float | str = "auto"
    gamma: float | str = "auto"
    prepare: str = "auto"
    _: KW_ONLY
    n_landmarks: int | str = "auto"

    # The regression of a constant label is that constant, and rare labels stay comparable.
    _varying_only: ClassVar[bool] = False
    _saved: ClassVar[dict[str, Any]] = {
        "kernel_": dict,
        "gamma_": float,
        "rows_": Stored(("rows", "features")),
        "weights_": floats("rows", "labels"),
        "intercept_": floats("labels"),
        "factor_": Optional(floats("features", most=MOST)),
    }

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        if not 0 < self.gamma_ < np.inf:
            yield ".gamma_ is not a positive number"
        how = self.kernel_.get("prepare")
        if how not in PREPARATIONS:
            yield f".kernel_ has prepare={how!r}, which is not known"
        elif how == "scale" and self.factor_ is None:
            yield ".factor_ is missing"

    def _check(self) -> None:
        super()._check()
        if self.gamma != "auto":
            check_number(self, "gamma", float, 0)
        for name in ("reg", "gamma"):
            if getattr(self, name) == 0:
                raise ValueError(f"{name}=0 must be above 0.")
        check_choice(self, "prepare", ("auto", *PREPARATIONS))
        if self.n_landmarks != "auto":
            check_number(self, "n_landmarks", int, 1)

    def _fit(self, X: Any, Y: csr_array) -> None:
        n_rows = X.shape[0]
        regs: Sequence[float] = REGS if self.reg == "auto" else (float(self.reg),)
        chosen, solution = self._choose_kernel(X, Y, regs)
        self.factor_, rows = chosen.prepare_training(X)
        self.rows_ = settled(rows)
        self.gamma_ = chosen.scale(self.rows_)
        n_landmarks = min(self._count_landmarks(n_rows), n_rows)
        if solution is None or n_rows > N_CHOOSING or n_landmarks < n_rows:
            start = middle(regs)
            if solution is not None:  # on all rows the best strength is near that of some of them
                start, index = solution.reg, regs.index(solution.reg)
                regs = regs[max(0, index - 1) : index + 2]
            prepared, self.rows_ = self.rows_, take_rows(self.rows_, np.arange(n_landmarks))
            exact = n_landmarks == n_rows
            solve = self._solve_exactly if exact else self._solve_by_landmarks
            solution = StrengthSearch(self, Y, solve(prepared, Y, self.gamma_)).best(regs, start)
        self.weights_, self.intercept_ = solution.learned
        self.kernel_ = {**chosen._asdict(), "reg": solution.reg}
        self._keep_held_out(solution.held_out)

    def _count_landmarks(self, n_rows: int) -> int:
        if self.n_landmarks != "auto":
            return int(self.n_landmarks)
        if n_rows <= MOST_EXACT:
            return n_rows
        return N_LANDMARKS if n_rows <= MANY else N_OF_MANY

    def _choose_kernel(
        self, X: Any, Y: csr_array, regs: Sequence[float]
    ) -> tuple["Kernel", Trial | None]:
        """Choose the kernel on some of the rows; return also what was learned from these."""
        preparations = PREPARATIONS if self.prepare == "auto" else (self.prepare,)
        gammas = GAMMAS if self.gamma == "auto" else (float(self.gamma),)
        first = Kernel(preparations[0], middle(gammas))
        if X.shape[0] < 2 or len(preparations) == len(gammas) == 1:
            return first, None
        X, Y = take_rows(X, np.arange(min(N_CHOOSING, X.shape[0]))), Y[:N_CHOOSING]
        solutions: dict[Kernel, Trial] = {}

        def value(kernel: Kernel, start: float) -> float:
            if kernel not in solutions:
                _, rows = kernel.prepare_training(X)
                search = StrengthSearch(self, Y, self._solve_exactly(rows, Y, kernel.scale(rows)))
                solutions[kernel] = search.best(regs, start, judged=True)
            return solutions[kernel].value

        begin = middle(regs)
        firsts = [first._replace(prepare=how) for how in preparations]
        best = max(firsts, key=lambda kernel: value(kernel, begin))
        begin = solutions[best].reg
        gamma = climb(lambda one: value(best._replace(gamma=one), begin), best.gamma, gammas)
        best = best._replace(gamma=gamma)
        value(best, begin)
        return best, solutions[best]

    def _solve_exactly(self, rows: Any, Y: csr_array, gamma: float) -> Callable[[float], Any]:
        """Return what learns the weights of all rows with a strength."""
        parts = self._fold_parts(rows.shape[0])
        dtype = np.float64 if rows.shape[0] <= MOST_DOUBLE else np.float32
        matrix = rbf_kernel(rows, rows, gamma, dtype)

        def solve(reg: float) -> Any:
            ridge = DualRidge(matrix, reg)
            learned = ridge.weights(Y)
            return learned, zip(parts, ridge.held_out(Y, learned[0], parts), strict=True)

        return solve

    def _solve_by_landmarks(self, rows: Any, Y: csr_array, gamma: float) -> Callable[[float], Any]:
        """Return what learns the weights of landmarks, which are in ``rows_``, with a strength."""
        n_landmarks, n_labels = self.rows_.shape[0], Y.shape[1]
        parts = self._fold_parts(rows.shape[0])

        def features(part: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
            for chosen in batches(part, max(n_landmarks, n_labels)):
                yield chosen, rbf_kernel(rows[chosen], self.rows_, gamma)

        moments = [LandmarkMoments(n_landmarks, n_labels) for _ in parts]
        for own, part in zip(moments, parts, strict=True):
            for chosen, similar in features(part):
                own.add(similar, Y[chosen])
        total = sum(moments[1:], moments[0])
        penalty = rbf_kernel(self.rows_, self.rows_, gamma)

        def solve(reg: float) -> Any:
            model = cache(lambda number: (total - moments[number]).weights(penalty, reg))

            def score(number: int, chosen: IntArray) -> FloatArray:
                weights, intercept = model(number)
                found = [similar @ weights for _, similar in features(chosen)]
                return np.concatenate(found) + intercept

            weights, intercept = total.weights(penalty, reg)
            return (weights.astype(np.float32), intercept), self._score_some(parts, n_labels, score)

        return solve

    def _scores(self, X: Any) -> FloatArray:
        scores = np.empty((X.shape[0], len(self.intercept_)))
        rows = prepare_rows(X, self.kernel_["prepare"], self.factor_)
        for part in batches(np.arange(X.shape[0]), self.rows_.shape[0]):
            similar = rbf_kernel(rows[part], self.rows_, self.gamma_, self.weights_.dtype)
            scores[part] = similar @ self.weights_
        return scores + (self.intercept_ - 0.5)


@saved
@dataclass(eq=False, repr=False)
class KernelFeatures(Transformed):
    """An estimator that sees the features of an RBF kernel instead of those it is given.

    Products of these features are about the kernel ``exp(-gamma |x - x'|^2)``, so that any method
    can be compared with kernel methods on equal features: ``KernelFeatures(GroPLE())``.

    Parameters
    ----------
    estimator : LabelsEstimator
        A method of `marginmf.labels`.
    n_components : int
        How many features at most.
    kind : {"nystroem", "fourier"}
        Nystroem: similarities to as many training rows, made orthogonal (Williams and Seeger,
        2001).  Fourier: cosines and sines of random directions (Rahimi and Recht, 2007), which need
        no training rows in the model.
    gamma : float
        The bandwidth: 1 is one over the median squared distance of 500 rows, 2 twice as narrow.
    prepare : {"none", "scale", "normalize"}
        How rows are made comparable: not at all, each feature divided by its range in training, or
        each row by its length, which suits counts of words.
    random_state : int, Generator or None
        Seeds the random directions; nothing else is random.

    Attributes
    ----------
    estimator_ : LabelsEstimator
        The estimator, fitted to the kernel's features.
    gamma_ : float
        The bandwidth as a factor of squared distances.
    landmarks_ : array or csr_array of shape (n_landmarks, n_features) or None
        The training rows that others are compared with, prepared.
    map_ : array
        From similarities to features; or the random directions, of shape (n_features, n_pairs).
    factor_ : array of shape (n_features,) or None
        What features are multiplied with, where they are scaled.

    Examples
    --------
    >>> from marginmf.labels import GroPLE
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=4, random_state=0)
    >>> model = KernelFeatures(GroPLE(3, random_state=0), n_components=20).fit(X, Y)
    >>> model.predict(X).shape, model.estimator_.feature_map_.shape
    ((100, 4), (20, 3))
    """

    n_components: int = 1000
    kind: str = "nystroem"
    gamma: float = 1.0
    prepare: str = "scale"
    random_state: Any = None

    _saved: ClassVar[dict[str, Any]] = {
        "gamma_": float,
        "landmarks_": Optional(Stored(("landmarks", "features"))),
        "map_": floats("inputs", "outputs"),
        "factor_": Optional(floats("features", most=MOST)),
    }
    _separate: ClassVar[frozenset[str]] = frozenset({"estimator_"})

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        n_inputs = lengths["features"] if self.landmarks_ is None else self.landmarks_.shape[0]
        if self.map_.shape[0] != n_inputs:
            yield ".map_ is not a map from what is there"
        n_outputs = self.map_.shape[1] * (2 if self.landmarks_ is None else 1)
        yield from score_flaws(self.estimator_, ".estimator_", lengths["labels"], n_outputs)
        if not 0 < self.gamma_ < np.inf:
            yield ".gamma_ is not a positive number"
        if self.prepare == "scale" and self.factor_ is None:
            yield ".factor_ is missing"

    def _check(self) -> None:
        super()._check()
        check_number(self, "n_components", int, 1)
        check_number(self, "gamma", float, 0)
        if self.gamma == 0:
            raise ValueError("gamma=0 must be above 0.")
        check_choice(self, "kind", ("nystroem", "fourier"))
        check_choice(self, "prepare", PREPARATIONS)
        as_generator(self.random_state)

    def _learn_map(self, X: Any) -> Any:
        # In an order of their own, so that shuffled rows give the same features.
        keys, first = np.unique(row_keys(X), return_index=True)
        kernel = Kernel(self.prepare, self.gamma)
        self.factor_, rows = kernel.prepare_training(take_rows(X, first))
        self.gamma_ = kernel.scale(rows)
        self.landmarks_: Any = None
        if self.kind == "fourier":
            n_pairs = max(1, self.n_components // 2)
            generator = as_generator(self.random_state)
            directions = generator.standard_normal((n_pairs, X.shape[1]))
            self.map_ = np.sqrt(2.0 * self.gamma_) * directions.T
            return self._map(X)
        self.landmarks_ = take_rows(rows, np.arange(min(self.n_components, len(keys))))
        similar = rbf_kernel(self.landmarks_, self.landmarks_, self.gamma_)
        values, vectors = np.linalg.eigh(similar)
        kept = values > ZERO * values[-1]
        self.map_ = vectors[:, kept] / np.sqrt(values[kept])
        return self._map(X)

    def _map(self, X: Any) -> FloatArray:
        n_outputs = self.map_.shape[1] * (2 if self.landmarks_ is None else 1)
        found = np.empty((X.shape[0], n_outputs), np.float32)
        rows = prepare_rows(X, self.prepare, self.factor_)
        for part in batches(np.arange(X.shape[0]), max(self.map_.shape)):
            if self.landmarks_ is None:
                angles = rows[part] @ self.map_
                waves = np.hstack([np.cos(angles), np.sin(angles)])
                found[part] = waves / np.sqrt(self.map_.shape[1])
            else:
                found[part] = rbf_kernel(rows[part], self.landmarks_, self.gamma_) @ self.map_
        return found
