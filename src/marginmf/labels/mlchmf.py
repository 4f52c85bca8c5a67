"""MLC-HMF: a tree of embeddings, each trusted with the instances that it gets right."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from marginmf._utils.parameters import (
    check_callbacks,
    check_choice,
    check_n_jobs,
    check_number,
    n_threads,
)
from marginmf._utils.random import as_generator
from marginmf._utils.saved import Optional, counts, within
from marginmf._utils.types import BoolArray, Float64Array, FloatArray, IntArray
from marginmf.labels.algebra.matrices import take_rows
from marginmf.labels.base import LabelsEstimator, method
from marginmf.labels.calibration import Tuner, Tuning
from marginmf.labels.decisions import DecisionRule, row_overlaps
from marginmf.labels.neighbours import Neighbours
from marginmf.labels.objective import label_loss
from marginmf.labels.order import content_order
from marginmf.labels.tree import VOTES, Growth, check_splitter, grow, vote
from marginmf.losses import RealLoss, TwoLevelLoss
from marginmf.progress import progress_bar
from marginmf.solvers import Callback, Solver, Stopping, get_solver

#: What the tolerance is a share of.
UNITS = ("labels", "density")
#: The most nodes that a progress bar counts on.
MOST_NODES = 1000
#: The depth of the tree that is compared with a single node.
TREE_DEPTH = 5
#: They are compared on the rows that come first, as many as have this many scores.
MOST_COMPARED = 2**23
#: Scores of some rows, and which labels they have.
Batch = tuple[FloatArray, BoolArray]


@method("mlchmf")
@dataclass(eq=False, repr=False)
class MLCHMF(LabelsEstimator):
    """Multi-label classification by hierarchical matrix factorisation (Kumar's thesis, chapter 5).

    The training instances are divided in two.  Each half learns an embedding: features times
    ``U`` are a few factors, and those times ``V`` a score for every label, with a large margin.
    The half keeps the instances that its embedding gets right up to a tolerance; the others are
    divided again, and so on.  A new instance asks the embeddings that keep its nearest
    neighbours.  The thesis has ``decision="sign"``.

    Parameters
    ----------
    n_factors : int or None
        The rank of every embedding; None is half the number of labels, rounded up.
    reg : float
        The regularisation strength of the embeddings, the same for large and small nodes.  The best
        one differs: of 1, 3, 10 and 30, a single node is best at 3 on medical, 10 on education and
        30 on enron and bibtex, and 10 is never behind the best by more than 0.05 in accuracy.
    tolerance : float
        The largest share of wrong labels with which a node keeps an instance.
    tolerance_unit : {"labels", "density"}
        What ``tolerance`` is a share of.  Labels: all labels, as in the thesis; 0.02 allows one
        wrong label of 50, and none of 49.  Density: the labels that an instance has on the
        average; 0.5 allows one wrong label where instances have two.
    max_depth : int or "auto"
        How many times instances are divided; 0 is one embedding of all, without a tree.  Auto: 5 or
        0, whichever has the higher accuracy on the folds of the decision rule (``cv``), under that
        rule.  A tree that falls behind by more than a standard error is given up after a fold.
    min_samples : int
        With fewer instances than this no embedding is learned.
    n_neighbors : int
        How many neighbours of an instance say which embeddings it asks.
    vote : {"auto", "hard", "soft"}
        Hard: a label goes to the side with more votes, and where the decision rule or a ranking
        has to compare labels with equal votes, the mean score decides.  Soft: the mean score
        alone, each clipped to [-1, 1].  Auto: hard under ``decision="sign"``, as in the thesis,
        and soft under the other rules, whose thresholds need finer scores.
    splitter : clusterer, optional
        Divides instances in two: any clusterer of scikit-learn with ``fit_predict``; by
        default k-means.  Its number of clusters, if it has one, is set to two, and a
        ``random_state`` of None is set for every node.
    loss : str, TwoLevelLoss or RealLoss
        ``"smooth_hinge"``, ``"hinge"``, ``"modified_square"``, ``"logistic"``, ``"squared"`` (of
        targets -1 and 1), or a loss of your own.
    solver : str or solver
        ``"lbfgs"``, ``"cg"`` or ``"gd"``, or a solver object.
    max_iter, tol
        When to stop at a node: when an iteration (on the average of the last three) lowers the
        objective by less than the share ``tol`` of it, or after ``max_iter`` of them, which is
        meant as a safeguard: a `ConvergenceWarning` says how many nodes of the model ended there.
    random_state : int, Generator or None
        Seeds the starts.
    n_jobs : int or None
        Threads, as in scikit-learn: None is one, -1 is all.  The nodes of one depth are learned
        side by side; the result does not depend on it.
    verbose : int
        1 shows a progress bar on standard error.
    callbacks : sequence of callable
        Called with a `marginmf.solvers.Progress` after every iteration at every node; returning
        True stops at that node.

    Attributes
    ----------
    tree_ : EmbeddingTree
        The nodes; ``print(model.tree_)`` draws it, and so does
        `marginmf.plots.embedding_tree`.
    max_depth_ : int
        The depth that was given or chosen.
    vote_ : {"hard", "soft"}
        The kind of vote that is used.
    tolerance_ : float
        The tolerance as a share of all labels.
    neighbours_ : Neighbours or None
        The instances that some node keeps; None if there is one node.
    keepers_ : array of int
        The index of the node that keeps each of them.
    n_iter_ : int
        How many iterations all nodes took together.

    Notes
    -----
    If no node keeps any instance, which happens when ``reg`` is large, there is one embedding of
    all.  Features without a unit in common should be scaled first (`MinMaxScaler` suits), as
    neighbours, clusters and the penalty all depend on their scale.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=60, n_classes=4, random_state=0)
    >>> model = MLCHMF(max_depth=1, decision="sign", random_state=0).fit(X, Y)
    >>> model.predict(X[:2]).shape
    (2, 4)
    """

    n_factors: int | None = None
    reg: float = 10.0
    tolerance: float = 0.02
    _: KW_ONLY
    tolerance_unit: str = "labels"
    max_depth: int | str = "auto"
    min_samples: int = 5
    n_neighbors: int = 5
    vote: str = "auto"
    splitter: Any = None
    loss: str | TwoLevelLoss | RealLoss = "smooth_hinge"
    solver: str | Solver = "lbfgs"
    max_iter: int = 1000
    tol: float = 3e-5
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    callbacks: Sequence[Callback] = ()

    # Its own order, by which the random starts of figures that were published are drawn; and of a
    # label that never varies an embedding learns how surely.
    _order = staticmethod(content_order)
    _varying_only: ClassVar[bool] = False
    _saved: ClassVar[dict[str, Any]] = {
        "tree_": "EmbeddingTree",
        "max_depth_": Optional(int),
        "tolerance_": float,
        "vote_": str,
        "neighbours_": Optional("Neighbours"),
        "keepers_": counts("kept"),
        "n_iter_": int,
    }

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        n_nodes = len(self.tree_.nodes)
        if self.neighbours_ is None:
            if n_nodes != 1:
                yield f" has {n_nodes} nodes, and nothing to choose by"
        elif len(self.keepers_) != self.neighbours_.stored_.shape[0]:
            yield ".keepers_ are not those of its neighbours"
        elif not within(self.keepers_, n_nodes):
            yield ".keepers_ has numbers of nodes that do not exist"

    def _check(self) -> None:
        if self.n_factors is not None:
            check_number(self, "n_factors", int, 1)
        for name in ("reg", "tolerance", "tol"):
            check_number(self, name, float, 0)
        if isinstance(self.max_depth, str):
            check_choice(self, "max_depth", ("auto",))
        else:
            check_number(self, "max_depth", int, 0)
        for name in ("min_samples", "n_neighbors", "max_iter"):
            check_number(self, name, int, 1)
        check_choice(self, "tolerance_unit", UNITS)
        check_choice(self, "vote", ("auto", *VOTES))
        check_n_jobs(self)
        check_splitter(self.splitter)
        label_loss(self.loss)
        get_solver(self.solver)
        as_generator(self.random_state)
        check_callbacks(self)

    @property
    def _chosen_alone(self) -> str:
        return "max_depth" if self.max_depth == "auto" else ""

    def _learn(self, X: Any, Y: csr_array, tuned: bool) -> None:
        if self.max_depth != "auto" or X.shape[0] < 2:
            super()._learn(X, Y, tuned)
        else:
            self.max_depth_, tuning = self._choose_depth(X, Y)
            self._set_rule(tuning, Y)
            self._fit_in_order(X, Y)
        self._warn_of_capped_nodes()

    def _warn_of_capped_nodes(self) -> None:
        """Warn once of all nodes that were not done, and not of those of folds."""
        if n_capped := sum(node.n_iter >= self.max_iter for node in self.tree_):
            warnings.warn(
                f"MLCHMF stopped {n_capped} of {len(self.tree_)} nodes after "
                f"max_iter={self.max_iter} iterations, before their objective settled: raise "
                "max_iter, or reg, or tol if you want it to stop sooner.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _choose_depth(self, X: Any, Y: csr_array) -> tuple[int, Tuning]:
        """Return the better depth, and what its scores of rows held out have taught."""
        (single, batches), (tree, batches_of_tree) = (
            self._try_depth(depth, X, Y) for depth in (0, TREE_DEPTH)
        )
        kept: list[Batch] = []
        kept_of_tree: list[Batch] = []
        gain, error, n_compared = 0.0, 0.0, 0
        for batch in batches:
            single.add(*batch)
            if gain + error < 0:
                continue
            batch_of_tree = next(batches_of_tree)
            tree.add(*batch_of_tree)
            if n_compared < MOST_COMPARED:
                kept.append(batch)
                kept_of_tree.append(batch_of_tree)
                n_compared += batch[0].size
                gains = self._row_values(kept_of_tree, Y) - self._row_values(kept, Y)
                gain, error = gains.mean(), gains.std() / np.sqrt(len(gains))
        return (TREE_DEPTH, tree.result()) if gain > 0 else (0, single.result())

    def _try_depth(self, depth: int, X: Any, Y: csr_array) -> tuple[Tuner, Iterator[Batch]]:
        """Return what learns from scores of rows held out, and these scores, fold by fold."""
        trial: MLCHMF = clone(self).set_params(max_depth=depth)
        trial._checkpoint, trial.targets_ = self._checkpoint.scope(f"depth {depth}"), self.targets_
        batches = ((scores, Y[rows].toarray() > 0) for rows, scores in trial._hold_out(X, Y))
        return trial._make_tuner(Y), batches

    def _row_values(self, batches: Sequence[Batch], Y: csr_array) -> Float64Array:
        """Return the accuracy of every row under thresholds chosen on all of them.

        Of classes, 1 where they are right.
        """
        if self.targets_.vector:
            codes = self.targets_.codes_of
            right = [codes(scores) == codes(present - 0.5) for scores, present in batches]
            return np.concatenate(right).astype(np.float64)
        search = self._make_tuner(Y).search
        for batch in batches:
            search.add(*batch)
        thresholds, _ = search.best(self.decision, self.tune_for)
        rule = DecisionRule(thresholds, self._fills_empty(Y))
        return np.concatenate(
            [row_overlaps("accuracy", rule(scores), present) for scores, present in batches]
        )

    def _fit(self, X: Any, Y: csr_array) -> None:
        if self.max_depth != "auto":
            self.max_depth_ = int(self.max_depth)
        elif not hasattr(self, "max_depth_"):  # too few rows to choose it
            self.max_depth_ = 0
        n_samples, n_labels = Y.shape
        auto = "hard" if self.decision == "sign" else "soft"
        self.vote_ = auto if self.vote == "auto" else self.vote
        self.tolerance_ = float(self.tolerance)
        if self.tolerance_unit == "density":
            self.tolerance_ *= Y.nnz / (n_samples * n_labels)
        growth = Growth(
            n_factors=self.n_factors or -(-n_labels // 2),
            reg=float(self.reg),
            tolerance=self.tolerance_,
            max_depth=self.max_depth_,
            min_samples=self.min_samples,
            splitter=self.splitter,
            loss=label_loss(self.loss),
            solver=get_solver(self.solver),
            stopping=Stopping(max_iter=self.max_iter, tol=self.tol),
        )
        seed = int(self._checkpoint.generator("seed", self.random_state).integers(2**63))
        n_nodes = min(2 ** (min(self.max_depth_, 30) + 1), MOST_NODES)
        with progress_bar(type(self).__name__, n_nodes, bool(self.verbose)) as report:
            self.tree_ = grow(
                X,
                Y,
                self._seen.order.kinds,
                growth,
                seed,
                n_threads(self.n_jobs),
                lambda name: [*self.callbacks, *report(name)],
                self._checkpoint,
            )
        self.n_iter_ = sum(node.n_iter for node in self.tree_)
        # The instances that new ones are compared with, and the node of each of them.
        self.neighbours_: Neighbours | None = None
        self.keepers_: IntArray = np.zeros(0, np.int64)
        if len(self.tree_) > 1:
            n_kept = [len(node.kept) for node in self.tree_]
            self.keepers_ = np.repeat(np.arange(len(n_kept)), n_kept)
            self.neighbours_ = Neighbours(self.n_neighbors).fit(take_rows(X, self.tree_.kept))

    def _scores(self, X: Any) -> FloatArray:
        if self.neighbours_ is None:
            (node,) = self.tree_
            return node.scores(X)
        voters = self.keepers_[self.neighbours_.kneighbors(X)]
        return vote(X, voters, self.tree_, self.vote_)
