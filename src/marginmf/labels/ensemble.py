"""Several label methods combined: their scores of rows held out say how far to trust each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, logit
from sklearn.base import clone

from marginmf._utils.indicators import counts
from marginmf._utils.parameters import check_n_jobs, suggestion, warn
from marginmf._utils.random import as_generator
from marginmf._utils.saved import ListOf, flags, floats, saved
from marginmf._utils.types import BoolArray, Float64Array, FloatArray, IntArray
from marginmf.backends.threads import one_blas_thread
from marginmf.labels.base import METHODS, LabelsEstimator, batches, method
from marginmf.labels.calibration import MAX_STEPS, as_predictors, damped_newton
from marginmf.labels.order import canonical_order
from marginmf.labels.wrappers import score_flaws

#: What members are called here besides their names on the command line, and how they are made.
MEMBERS: dict[str, tuple[str, dict[str, Any]]] = {
    "ridge": ("ridge-embedding", {}),
    "kernel": ("kernel", {}),
    "forest": ("mldt", {"n_trees": 200, "min_samples_leaf": 2, "bootstrap": True}),
    "knn": ("mlknn", {}),
    "hmf": ("mlchmf", {"max_depth": 0}),
}
#: The members by default; the forest, which needs the labels as a dense matrix, if that has no
#: more cells than these.
DEFAULT = ("ridge", "kernel", "forest")
MOST_OF_FOREST = 2**23
#: The combination is learned from at most about this many scores of each member, of rows at equal
#: distances; and from all labels that these rows have, but at most this many that they have not.
MOST_SCORES, MOST_ABSENT = 2**24, 150_000
#: The precision of the normal priors of the weights and of the labels' own intercepts.
WEIGHT_PRECISION, LABEL_PRECISION = 1.0, 4.0


@method("ensemble")
@dataclass(eq=False, repr=False)
class LabelEnsemble(LabelsEstimator):
    """Ridge regression, a kernel and a forest together: the label method to start with.

    Every member scores rows that it has not seen, by cross-validation.  A logistic regression
    over all pairs of a row and a label turns the members' scores into one: its inputs are each
    member's score, how far that is below the row's highest one, and how frequent the label is.  The
    decision rule and the probabilities are then learned as those of every method.

    Parameters
    ----------
    members : "auto" or sequence of str or LabelsEstimator
        What is combined: names such as "ridge", "kernel", "forest", "knn", "hmf", or of any label
        method on the command line, and estimators of `marginmf.labels`.  Auto: ridge, kernel and
        forest; without the forest if rows times labels are more than 8 million.
    random_state : int, Generator or None
        Seeds members that are given by name.
    n_jobs : int or None
        For members that are given by name, as in scikit-learn.  The result does not depend on it.

    Attributes
    ----------
    members_ : list of LabelsEstimator
        The members, fitted to all rows.
    combiner_ : Combiner
        How their scores become one.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=4, random_state=0)
    >>> model = LabelEnsemble(members=("ridge", "kernel")).fit(X, Y)
    >>> model.predict(X).shape, [type(member).__name__ for member in model.members_]
    ((100, 4), ['RidgeEmbedding', 'KernelEmbedding'])
    """

    members: str | Sequence[Any] = "auto"
    _: KW_ONLY
    random_state: Any = None
    n_jobs: int | None = None

    # Both are for the members to say.
    _order, _varying_only = None, False
    _saved: ClassVar[dict[str, Any]] = {
        "members_": ListOf(LabelsEstimator),
        "combiner_": "Combiner",
    }

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        for number, member in enumerate(self.members_):
            name = f".members_.{number}"
            yield from score_flaws(member, name, lengths["labels"], lengths["features"])
        if self.members != "auto" and len(self.members) != len(self.members_):
            yield ".members_ are of another number than members"
        if len(self.combiner_.weights) != len(self.members_):
            yield ".combiner_ is of another number of members"

    def _check(self) -> None:
        check_n_jobs(self)
        as_generator(self.random_state)
        if isinstance(self.members, str) and self.members == "auto":
            return
        if isinstance(self.members, str) or not np.iterable(self.members) or not len(self.members):
            raise ValueError(
                f"members={self.members!r} must be 'auto' or a sequence of names and estimators, "
                "such as ('ridge', 'kernel')."
            )
        for member in self.members:
            known = [*MEMBERS, *METHODS]
            if not isinstance(member, LabelsEstimator) and (
                not isinstance(member, str) or member not in known or member == "ensemble"
            ):
                raise ValueError(
                    f"members has {member!r}, which is neither an estimator of marginmf.labels "
                    f"nor one of {', '.join(dict.fromkeys(known))}.{suggestion(str(member), known)}"
                )
            made = make_member(member)
            made._check()
            if made._chosen_alone:
                raise ValueError(
                    f"members has {member!r}, whose {made._chosen_alone} is chosen only where it "
                    f"is fitted by itself: give {made._chosen_alone} a value for the ensemble."
                )

    def _learn(self, X: Any, Y: csr_array, tuned: bool) -> None:
        if X.shape[0] < 2:
            super()._learn(X, Y, tuned)
            return
        rows, scores = self._fit_members(X, Y)
        present = Y[rows].toarray() > 0
        having, n_rows = counts(Y, axis=0), Y.shape[0]

        def hold_out() -> Iterator[tuple[IntArray, FloatArray]]:
            for half in (0, 1):
                others, own = (slice(start, None, 2) for start in (1 - half, half))
                part = Combiner.fit([s[others] for s in scores], present[others], having, n_rows)
                for batch in batches(np.arange(len(rows))[own], Y.shape[1]):
                    yield rows[batch], part([s[batch] for s in scores])

        # One thread, because products that BLAS shares out come otherwise rounded.
        with one_blas_thread():
            self._set_rule(self._tune(hold_out(), Y) if tuned else None, Y)
            combiner = Combiner.fit(scores, present, having, n_rows)
        self.combiner_ = combiner.of_members([m._probability_scores for m in self.members_])

    def _fit(self, X: Any, Y: csr_array) -> None:
        """Learn from a single row: members have no rows held out, and are trusted alike."""
        for member in self._make_inside(X, Y):
            member._learn(X, Y, False)
        probabilities = np.array([member._probability_scores for member in self.members_])
        weights = np.full(len(self.members_), 1.0 / len(self.members_))
        self.combiner_ = Combiner(weights, 0.0 * weights, np.zeros(Y.shape[1]), probabilities)

    def _make(self, Y: csr_array) -> list[LabelsEstimator]:
        """Return the members, unfitted."""
        wanted: Sequence[Any] = DEFAULT if isinstance(self.members, str) else self.members
        cells = Y.shape[0] * Y.shape[1]
        if isinstance(self.members, str) and cells > MOST_OF_FOREST:
            wanted = DEFAULT[:-1]
            warn(
                "LabelEnsemble leaves out the forest, which takes long to grow from "
                f"{Y.shape[1]:,} labels of {Y.shape[0]:,} rows; name it in members to have it."
            )
        generator, made = as_generator(self.random_state), []
        for member in wanted:
            fresh = make_member(member)
            if isinstance(member, str):
                given, seed = fresh.get_params(deep=False), int(generator.integers(2**31))
                own = {"random_state": seed, "n_jobs": self.n_jobs}
                fresh.set_params(**{key: own[key] for key in own if key in given})
            made.append(fresh)
        return made

    def _make_inside(self, X: Any, Y: csr_array) -> Iterator[LabelsEstimator]:
        """Yield the members one by one, each told what it learns and where it keeps that."""
        self.members_ = self._make(Y)
        for number, member in enumerate(self.members_):
            self._prepare_inside(member, X, Y)
            member._checkpoint = self._checkpoint.scope(f"member {number + 1}")
            yield member
            del member._checkpoint

    def _fit_members(self, X: Any, Y: csr_array) -> tuple[IntArray, list[FloatArray]]:
        """Fit the members; return rows in an order of their own, and each one's scores of them."""
        order = canonical_order(X, Y).rows
        step = -(-len(order) * Y.shape[1] // MOST_SCORES)
        position = np.full(len(order), -1)
        position[order[::step]] = np.arange(len(order[::step]))
        known, scores = np.ones(len(order[::step]), bool), []
        for member in self._make_inside(X, Y):
            own = np.zeros((len(known), Y.shape[1]), np.float32)
            there = np.zeros(len(known), bool)
            for rows, found in member._cross_fit(X, Y):
                wanted = position[rows] >= 0
                own[position[rows[wanted]]] = as_predictors(
                    found[wanted], member._probability_scores
                )
                there[position[rows[wanted]]] = True
            member._set_rule(None, Y)
            known &= there
            scores.append(own)
        if not known.all():
            scores = [own[known] for own in scores]
        return order[::step][known], scores

    def _scores(self, X: Any) -> FloatArray:
        return self.combiner_([member._label_scores(X) for member in self.members_])


def make_member(member: Any) -> LabelsEstimator:
    """Return a member, unfitted, given its name or an estimator."""
    if not isinstance(member, str):
        return clone(member)
    name, settings = MEMBERS.get(member, (member, {}))
    made: LabelsEstimator = METHODS[name](**settings)
    return made


@saved
@dataclass(frozen=True, eq=False)
class Combiner:
    """A logit of every label from the scores of several members.

    ``sum over members of weight * score + gap_weight * (score - the row's highest) + intercept``

    Parameters
    ----------
    weights, gap_weights : array of shape (n_members,)
        The weights of scores, and of their distances from the row's highest.
    intercepts : array of shape (n_labels,)
        What is added for each label.
    probabilities : array of shape (n_members,)
        Whether a member's scores are probabilities minus one half, of which logits are taken.
    """

    weights: Float64Array
    gap_weights: Float64Array
    intercepts: Float64Array
    probabilities: BoolArray

    _saved: ClassVar[dict[str, Any]] = {
        "weights": floats("members"),
        "gap_weights": floats("members"),
        "intercepts": floats("labels"),
        "probabilities": flags("members"),
    }

    def __call__(self, scores: Sequence[FloatArray]) -> Float64Array:
        """Return the logits, given each member's scores."""
        logits = np.tile(self.intercepts, (len(scores[0]), 1))
        for k, own in enumerate(scores):
            own = as_predictors(own, bool(self.probabilities[k]))
            logits += (self.weights[k] + self.gap_weights[k]) * own
            logits -= self.gap_weights[k] * own.max(axis=1, keepdims=True, initial=-np.inf)
        return logits

    def of_members(self, probabilities: Sequence[bool]) -> Self:
        """Return the same for members some of whose scores are probabilities minus one half."""
        return type(self)(
            self.weights, self.gap_weights, self.intercepts, np.array(probabilities, bool)
        )

    @classmethod
    def fit(
        cls,
        scores: Sequence[FloatArray],
        present: BoolArray,
        having: IntArray,
        n_rows: int,
        *,
        gaps: bool = True,
        labels: bool = True,
    ) -> Self:
        """Learn from scores of rows held out, and which labels they have.

        Parameters
        ----------
        scores : list of array of shape (n_scored, n_labels)
            Each member's, as what the combination is linear in.
        present : array of shape (n_scored, n_labels)
            Which labels the rows have.
        having, n_rows
            How many of how many training rows have each label.
        gaps, labels : bool
            Whether distances from the row's highest score, and what is known of single labels (how
            frequent they are, and an intercept of each) have a part in it.
        """
        n_members, n_labels = len(scores), present.shape[1]
        frequency = logit((having + 0.5) / (n_rows + 1.0))
        rows, columns, weights = sample_cells(present)
        inputs = [own[rows, columns].astype(np.float64) for own in scores]
        inputs += [own[rows, columns] - own.max(axis=1)[rows] for own in scores] if gaps else []
        inputs += [frequency[columns]] if labels else []
        table = np.column_stack([*inputs, np.ones(len(rows))])
        found = fit_logistic(table, present[rows, columns].astype(np.float64), weights)
        own = found[:n_members]
        of_gaps = found[n_members : 2 * n_members] if gaps else np.zeros(n_members)
        intercepts = np.full(n_labels, found[-1])
        if labels:
            intercepts += found[-2] * frequency
        combiner = cls(own, of_gaps, intercepts, np.zeros(n_members, bool))
        if not labels:
            return combiner
        offsets = label_offsets(combiner(scores), present)
        return cls(own, of_gaps, intercepts + offsets, combiner.probabilities)


def sample_cells(present: BoolArray) -> tuple[IntArray, IntArray, Float64Array]:
    """Return the cells that are there, some of the others at equal distances, and their weights."""
    flat = present.ravel()
    absent = np.flatnonzero(~flat)
    step = max(1, -(-len(absent) // MOST_ABSENT))
    cells = np.concatenate([np.flatnonzero(flat), absent[::step]])
    weights = np.ones(len(cells))
    weights[len(flat) - len(absent) :] = len(absent) / max(1, len(absent[::step]))
    rows, columns = np.divmod(cells, present.shape[1])
    return rows, columns, weights


def fit_logistic(table: Float64Array, targets: Float64Array, weights: Float64Array) -> Float64Array:
    """Return the coefficients of a logistic regression; the last column of the table is constant.

    The penalty is on coefficients of columns of unit variance.
    """
    total = max(weights.sum(), 1.0)
    means = (weights @ table) / total
    spreads = np.sqrt(np.maximum((weights @ np.square(table - means)) / total, 0.0))
    # Nothing can be learned from a column that does not vary.
    inverse = np.divide(1.0, spreads, out=np.zeros_like(spreads), where=spreads > 1e-12)
    inputs = (table - means) * inverse
    inputs[:, -1] = 1.0
    penalty = np.full(table.shape[1], WEIGHT_PRECISION)
    penalty[-1] = 1e-6

    def value(point: Float64Array) -> float:
        logits = inputs @ point
        loss = weights @ (np.logaddexp(0.0, logits) - targets * logits)
        return float(loss + 0.5 * penalty @ np.square(point))

    def newton_step(point: Float64Array) -> Float64Array:
        likely = expit(inputs @ point)
        gradient = inputs.T @ (weights * (likely - targets)) + penalty * point
        curvature = weights * likely * (1.0 - likely)
        hessian = (inputs * curvature[:, None]).T @ inputs + np.diag(penalty)
        return np.linalg.solve(hessian, gradient)

    point = np.zeros(table.shape[1])
    point[-1] = logit(np.clip((weights @ targets) / total, 1e-6, 1.0 - 1e-6))
    point = damped_newton(value, newton_step, point)
    found = point * inverse
    found[-1] = point[-1] - found[:-1] @ means[:-1]
    return found


def label_offsets(logits: Float64Array, present: BoolArray) -> Float64Array:
    """Return what to add to the logits of each label, given a normal prior around 0."""
    offsets = np.zeros(logits.shape[1])
    for _ in range(MAX_STEPS):
        likely = expit(logits + offsets)
        gradient = (likely - present).sum(axis=0) + LABEL_PRECISION * offsets
        curvature = (likely * (1.0 - likely)).sum(axis=0) + LABEL_PRECISION
        # Full steps from far away would overshoot.
        step = np.clip(gradient / curvature, -1.0, 1.0)
        offsets -= step
        if np.abs(step).max(initial=0.0) < 1e-3:
            break
    return offsets
