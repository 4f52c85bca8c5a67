"""MLC-HMF's tree of embeddings: nodes, votes, growth (Kumar's thesis, algorithm 5.1, corrected)."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from threadpoolctl import ThreadpoolController

from marginmf._utils.saved import ListOf, counts, floats, indices, saved, within
from marginmf._utils.types import FloatArray, IntArray
from marginmf.backends.threads import one_openmp_thread
from marginmf.checkpoints import OpenCheckpoint
from marginmf.labels.algebra.matrices import embed, take_rows, used_features
from marginmf.labels.objective import LabelObjective
from marginmf.labels.order import Seen, row_keys
from marginmf.losses import RealLoss, TwoLevelLoss
from marginmf.solvers import Callback, Solver, Stopping

#: How embeddings vote; see `vote`.
VOTES = ("hard", "soft")
#: The standard deviation of the random start: zero is a saddle point of the objective, and far
#: from it the losses are flat.
START_SCALE = 0.1
#: What clusterers and mixtures call the number of clusters.
COUNTS = ("n_clusters", "n_components")
#: Up to this many numbers, to divide them is a matter of overhead alone.
FEW = 2**16
#: Random starts of k-means, of which the best is taken.
N_STARTS = 5


@saved
@dataclass(frozen=True, eq=False, repr=False)
class Node:
    """One embedding, and the training instances that it is trusted with."""

    #: Its index in the tree's list of nodes.
    index: int
    #: How many times the training instances were divided to get here.
    depth: int
    #: The index of the node whose residue was divided; -1 if it was the whole training set.
    parent: int
    #: From how many instances it was learned.
    size: int
    #: The rows of the training instances that it gets right up to the tolerance, in an order that
    #: their content decides.
    kept: IntArray
    #: Where the minimisation ended, and how many iterations it took.
    objective: float
    n_iter: int
    #: The features that are not zero for all of its instances; the others have no weight.
    features: IntArray
    #: From those features to the factors (the last row is the intercept), and on to the labels.
    U: FloatArray
    V: FloatArray

    _saved: ClassVar[dict[str, Any]] = {
        **dict.fromkeys(("index", "depth", "parent", "size", "n_iter"), int),
        "kept": counts("kept"),
        "objective": float,
        "features": indices("used", along="features"),
        "U": floats("used + 1", "factors"),
        "V": floats("factors", "labels"),
    }

    @property
    def residue(self) -> int:
        """How many of its instances it does not keep: they are divided further, if they may."""
        return self.size - len(self.kept)

    def scores(self, X: Any) -> FloatArray:
        """Return ``x U V`` for every instance and label: positive means that it has the label."""
        return (embed(X, self.features, self.U[:-1]) + self.U[-1]) @ self.V

    def __repr__(self) -> str:
        return f"Node({self})"

    def __str__(self) -> str:
        return (
            f"node {self.index}: {self.size} instances, {len(self.kept)} kept, "
            f"{self.residue} residue, objective {self.objective:.1f}"
        )


@saved
@dataclass(frozen=True, eq=False, repr=False)
class EmbeddingTree:
    """All nodes, parents before their children; ``print(tree)`` draws it.

    Parameters
    ----------
    nodes : list of Node
        The nodes, by their index.
    n_samples : int
        How many instances the tree was grown from.
    """

    nodes: list[Node]
    n_samples: int

    _saved: ClassVar[dict[str, Any]] = {"nodes": ListOf("Node"), "n_samples": int}

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        for index, node in enumerate(self.nodes):
            if node.index != index or not -1 <= node.parent < index:
                yield f".nodes.{index} is not at its position in the tree"
            elif not within(node.kept, self.n_samples):
                yield f".nodes.{index} keeps rows that do not exist"

    def restore(self, seen: Seen) -> Self:
        """Return the same tree for rows and labels in the order in which they were given."""
        rows, back = seen.order.rows, np.argsort(seen.labels)
        nodes = [replace(node, kept=rows[node.kept], V=node.V[:, back]) for node in self.nodes]
        return replace(self, nodes=nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, index: int) -> Node:
        return self.nodes[index]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    @property
    def depth(self) -> int:
        """How deep the deepest node is."""
        return max(node.depth for node in self.nodes)

    @property
    def kept(self) -> IntArray:
        """The training instances that some node keeps, node by node."""
        return np.concatenate([node.kept for node in self.nodes])

    @property
    def residue(self) -> IntArray:
        """The training instances that no node keeps, ascending."""
        return np.setdiff1d(np.arange(self.n_samples), self.kept)

    def children(self, parent: int = -1) -> list[Node]:
        """Return the nodes that a node's residue was divided into; by default the topmost ones."""
        return [node for node in self.nodes if node.parent == parent]

    def __repr__(self) -> str:
        return f"EmbeddingTree({self._summary()})"

    def __str__(self) -> str:
        return "\n".join([self._summary(), *self._lines(-1, "")])

    def _summary(self) -> str:
        plural = "" if len(self) == 1 else "s"
        return (
            f"{self.n_samples} instances: {len(self.kept)} kept by {len(self)} node{plural}, "
            f"{self.n_samples - len(self.kept)} residue"
        )

    def _lines(self, parent: int, margin: str) -> Iterator[str]:
        children = self.children(parent)
        for node in children:
            last = node is children[-1]
            yield f"{margin}{'└─' if last else '├─'} {node}"
            yield from self._lines(node.index, margin + ("   " if last else "│  "))


def vote(X: Any, voters: IntArray, tree: EmbeddingTree, kind: str) -> FloatArray:
    """Return a score for every instance and label, between -1 and 1.

    ``voters`` has a row for each instance: the nodes that it asks, of which one may occur several
    times.  A soft vote is the mean of the voters' scores, each clipped to [-1, 1].  A hard vote has
    the sign of the majority (of an even vote, the sign of the mean clipped score), and among
    instances and labels with as many votes the mean clipped score decides.
    """
    n_samples, n_voters = voters.shape
    totals = np.zeros((n_samples, tree[0].V.shape[1]))
    for index in np.unique(voters):
        votes = (voters == index).sum(axis=1)
        rows = np.flatnonzero(votes)
        scores = tree[index].scores(X[rows]).astype(np.float64)
        weights = votes[rows, None] / n_voters
        clipped = np.clip(scores, -1.0, 1.0)
        if kind == "hard":
            # The votes of a majority differ from the others' by 1 / n_voters at least.
            clipped = np.where(scores > 0, 1.0, -1.0) + clipped / (n_voters + 1)
            clipped *= (n_voters + 1) / (n_voters + 2)
        totals[rows] += weights * clipped
    return totals


@dataclass(frozen=True)
class Growth:
    """What decides how a tree grows; see `MLCHMF`.  The tolerance is a share of all labels."""

    n_factors: int
    reg: float
    tolerance: float
    max_depth: int
    min_samples: int
    splitter: Any
    loss: TwoLevelLoss | RealLoss
    solver: Solver
    stopping: Stopping


class Branch(NamedTuple):
    """Instances that belong together.

    ``position`` in a binary tree, from 1 on and level by level, seeds what is random here, so that
    it does not depend on the rest of the tree.  ``learned`` says that an embedding was learned from
    these very instances, and keeps none of them.
    """

    position: int
    depth: int
    parent: int
    rows: IntArray
    learned: bool = False


def grow(
    X: Any,
    Y: Any,
    kinds: IntArray,
    growth: Growth,
    seed: int,
    n_threads: int = 1,
    callbacks: Callable[[str], Sequence[Callback]] = lambda name: (),
    checkpoint: OpenCheckpoint | None = None,
) -> EmbeddingTree:
    """Return the tree of embeddings of these instances.

    Instances and labels come in the order of their content (`content_order`); labels of the same
    kind, which belong to the same instances, start alike.  Nodes are learned side by side, and
    threads left over help inside the nodes; the number of threads makes no difference.
    """
    grower = _Grower(
        X, Y, kinds, growth, seed, n_threads, callbacks, checkpoint or OpenCheckpoint()
    )
    whole = Branch(1, 0, -1, np.arange(X.shape[0]))
    nodes = grower.grow_levels(whole) if growth.max_depth > 0 else []
    if not any(len(node.kept) for node in nodes):
        # Nothing to predict with: one embedding of everything, which keeps all it was learned from.
        root = grower.learn_node(whole, 0, n_threads, "root")
        nodes = [replace(root, kept=whole.rows)]
    return EmbeddingTree(nodes, X.shape[0])


@dataclass
class _Grower:
    """Grows the levels of a tree."""

    X: Any
    Y: Any
    kinds: IntArray
    growth: Growth
    seed: int
    n_threads: int
    callbacks: Callable[[str], Sequence[Callback]]
    checkpoint: OpenCheckpoint

    def grow_levels(self, whole: Branch) -> list[Node]:
        """Return the nodes, one level after the other."""
        growth = self.growth
        nodes: list[Node] = []
        undivided = [whole]
        while undivided:
            halves = self._side_by_side(self._divide_branch, undivided)
            branches = [branch for both in halves for branch in both]
            level = self._learn_nodes(branches, len(nodes))
            nodes += level
            undivided = [
                branch._replace(
                    parent=node.index,
                    rows=np.setdiff1d(branch.rows, node.kept, assume_unique=True),
                    learned=node.residue == node.size,
                )
                for branch, node in zip(branches, level, strict=True)
                if branch.depth < growth.max_depth and node.residue >= growth.min_samples
            ]
        return nodes

    def _learn_nodes(self, branches: Sequence[Branch], first: int) -> list[Node]:
        """Return a node for each branch, numbered from the first index on."""
        n_threads = max(1, self.n_threads // max(1, len(branches)))

        def learn(k: int) -> Node:
            return self.learn_node(branches[k], first + k, n_threads, f"node {first + k}")

        return self._side_by_side(learn, range(len(branches)))

    def _divide_branch(self, branch: Branch) -> list[Branch]:
        """Divide a branch in two; return the halves that are large enough to learn from."""
        seed = int(np.random.default_rng([self.seed, branch.position, 0]).integers(2**31))
        clusters = divide(take_rows(self.X, branch.rows), self.growth.splitter, seed)
        if len(clusters) == 1 and branch.learned:
            return []  # once more would not help
        children = [
            Branch(
                2 * branch.position + side, branch.depth + 1, branch.parent, branch.rows[cluster]
            )
            for side, cluster in enumerate(clusters)
        ]
        return [child for child in children if len(child.rows) >= self.growth.min_samples]

    def learn_node(self, branch: Branch, index: int, n_threads: int, name: str) -> Node:
        """Learn an embedding of some instances, and find those that it gets right."""
        growth, rng = self.growth, np.random.default_rng([self.seed, branch.position, 1])
        features, X = used_features(take_rows(self.X, branch.rows))
        objective = LabelObjective(
            X, take_rows(self.Y, branch.rows), growth.reg, growth.n_factors, growth.loss, n_threads
        )
        first_U = START_SCALE * rng.standard_normal((len(features) + 1, growth.n_factors))
        first_V = START_SCALE * rng.standard_normal((growth.n_factors, int(self.kinds.max()) + 1))
        result = self.checkpoint.minimise(
            name,
            growth.solver,
            objective,
            objective.join(first_U, first_V[:, self.kinds]),
            growth.stopping,
            self.callbacks(name),
            objective.vectors,
        )
        # Rounding aside: a tolerance of 0.02 and 50 labels are one wrong label.
        most_errors = np.floor(growth.tolerance * self.Y.shape[1] + 1e-9)
        U, V = objective.split(result.point)
        return Node(
            index=index,
            depth=branch.depth,
            parent=branch.parent,
            size=len(branch.rows),
            kept=branch.rows[objective.n_errors(result.point) <= most_errors],
            objective=result.objective,
            n_iter=result.n_iter,
            features=features,
            U=U.copy(),
            V=V.copy(),
        )

    def _side_by_side(self, work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        if self.n_threads == 1:
            return [work(part) for part in parts]
        return self.checkpoint.side_by_side(work, parts, self.n_threads)


def check_splitter(splitter: Any) -> None:
    """Raise ValueError unless this can divide instances in two."""
    if splitter is None:
        return
    if isinstance(splitter, type) or not hasattr(splitter, "fit_predict"):
        raise ValueError(
            f"splitter={splitter!r} cannot divide instances: give a clusterer with fit_predict, "
            "such as KMeans(2), or None."
        )
    if not hasattr(splitter, "get_params"):
        raise ValueError(
            f"splitter={splitter!r} cannot be copied for every node: it needs scikit-learn's "
            "get_params and set_params, as a BaseEstimator has them."
        )
    params, defaults = splitter.get_params(deep=False), inspect.signature(type(splitter)).parameters
    for name in [name for name in COUNTS if name in params]:
        # A clusterer's own default counts as not set.
        if params[name] not in (2, None, defaults[name].default):
            raise ValueError(
                f"splitter={splitter!r} has {name}={params[name]!r}, but instances are divided in "
                f"two: give {name}=2."
            )


def divide(X: Any, splitter: Any, seed: int) -> list[IntArray]:
    """Return the indices of the instances of each of two clusters, or of one if all are alike.

    The cluster of the first instance comes first.  The splitter stays as it is; the seed is for
    one whose ``random_state`` is None.
    """
    keys = row_keys(X)
    if (keys == keys[0]).all():
        return [np.arange(len(keys))]
    clusterer = _make_clusterer(splitter, seed)
    # Sums that several threads share come out otherwise rounded.  A splitter of the caller's may
    # run on libraries that were not there before.
    with one_openmp_thread() if splitter is None else _one_thread_anywhere():
        found = np.asarray(clusterer.fit_predict(_fastest_form(X) if splitter is None else X))
    if (n_found := len(np.unique(found))) > 2:
        raise ValueError(
            f"splitter={splitter!r} has divided {len(keys)} instances into {n_found} clusters, but "
            "it should find two: set it up for two, or choose another one."
        )
    first = found == found[0]
    return [part for part in (np.flatnonzero(first), np.flatnonzero(~first)) if len(part)]


def _one_thread_anywhere() -> Any:
    return ThreadpoolController().limit(limits=1, user_api="openmp")


def _fastest_form(X: Any) -> Any:
    """Return the same instances in the form that k-means divides soonest."""
    # It adds up in float64, and converts a part of float32 features again for every start; and of
    # few instances, SciPy's handling of sparse ones takes longer than the arithmetic.
    if not issparse(X):
        return X.astype(np.float64, copy=False) if X.size <= FEW else X
    if X.shape[0] * X.shape[1] <= FEW:
        X = X.toarray()
    return X.astype(np.float64, copy=False)


def _make_clusterer(splitter: Any, seed: int) -> Any:
    """Return a clusterer of two clusters that is not shared, with a seed of its own."""
    if splitter is None:
        return KMeans(2, n_init=N_STARTS, random_state=seed)
    clusterer = clone(splitter)
    params = clusterer.get_params(deep=False)
    wanted: dict[str, Any] = {name: 2 for name in COUNTS if name in params}
    if params.get("random_state", 0) is None:
        wanted["random_state"] = seed
    return clusterer.set_params(**wanted)
