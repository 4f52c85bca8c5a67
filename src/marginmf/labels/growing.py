"""How MLC-HMF grows its tree of embeddings (Kumar's thesis, algorithm 5.1, corrected)."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from threadpoolctl import ThreadpoolController

from marginmf._utils.types import BoolArray, FloatArray, IntArray
from marginmf.checkpoints import OpenCheckpoint
from marginmf.labels.algebra.features import take_rows, used_features
from marginmf.labels.objective import LabelObjective
from marginmf.labels.order import row_keys
from marginmf.labels.tree import EmbeddingTree, Node
from marginmf.losses import RealLoss, TwoLevelLoss
from marginmf.solvers import Callback, Solver, Stopping

#: The standard deviation of the random start: zero is a saddle point of the objective, and far
#: from it the losses are flat.
START_SCALE = 0.1


@dataclass(frozen=True)
class Growth:
    """What decides how a tree grows; see the parameters of `MLCHMF`.

    The tolerance is the share of all labels that may be wrong where a node keeps an instance.
    """

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

    ``position`` numbers the positions in a binary tree from 1, level by level: it seeds what is
    random here, so that it does not depend on what happens elsewhere in the tree.  ``learned``
    says that an embedding was learned from these very instances, and keeps none of them.
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
    return EmbeddingTree(grower.nodes(), X.shape[0])


@dataclass
class _Grower:
    """Grows a tree of instances and labels in the order of their content."""

    X: Any
    Y: Any
    kinds: IntArray
    growth: Growth
    seed: int
    n_threads: int
    callbacks: Callable[[str], Sequence[Callback]]
    checkpoint: OpenCheckpoint

    def __post_init__(self) -> None:
        self.whole = Branch(1, 0, -1, np.arange(self.X.shape[0]))

    def nodes(self) -> list[Node]:
        """Return the nodes of the whole tree."""
        nodes = self._grow_levels() if self.growth.max_depth > 0 else []
        if any(len(node.kept) for node in nodes):
            return nodes
        # Nothing to predict with: one embedding of everything, which keeps all it was learned from.
        root = self._node(self.whole, 0, self.n_threads, "root")
        return [replace(root, kept=self.whole.rows)]

    def _grow_levels(self) -> list[Node]:
        """Return the nodes, one level after the other."""
        growth = self.growth
        nodes: list[Node] = []
        undivided = [self.whole]
        while undivided:
            halves = self._side_by_side(self._divide_branch, undivided)
            parts = [part for both in halves for part in both]
            level = self._learn_nodes(parts, len(nodes))
            nodes += level
            undivided = [
                part._replace(
                    parent=node.index,
                    rows=np.setdiff1d(part.rows, node.kept, assume_unique=True),
                    learned=node.residue == node.size,
                )
                for part, node in zip(parts, level, strict=True)
                if part.depth < growth.max_depth and node.residue >= growth.min_samples
            ]
        return nodes

    def _learn_nodes(self, parts: Sequence[Branch], first: int) -> list[Node]:
        """Return a node for each part, numbered from the first index on."""
        n_threads = max(1, self.n_threads // max(1, len(parts)))

        def learn(k: int) -> Node:
            index = first + k
            return self._node(parts[k], index, n_threads, f"node {index}")

        return self._side_by_side(learn, range(len(parts)))

    def _divide_branch(self, part: Branch) -> list[Branch]:
        """Return the one or two parts of a part that are large enough to learn from."""
        seed = int(self._rng(part, "division").integers(2**31))
        clusters = divide(take_rows(self.X, part.rows), self.growth.splitter, seed)
        if len(clusters) == 1 and part.learned:
            return []  # once more would not help
        children = [
            Branch(2 * part.position + side, part.depth + 1, part.parent, part.rows[cluster])
            for side, cluster in enumerate(clusters)
        ]
        return [child for child in children if len(child.rows) >= self.growth.min_samples]

    def _node(self, part: Branch, index: int, n_threads: int, name: str) -> Node:
        """Learn an embedding of some instances, and find those that it gets right."""
        growth, rng = self.growth, self._rng(part, "start")
        features, X = used_features(take_rows(self.X, part.rows))
        objective = LabelObjective(
            X, take_rows(self.Y, part.rows), growth.reg, growth.n_factors, growth.loss, n_threads
        )
        result = self.checkpoint.minimise(
            name,
            growth.solver,
            objective,
            objective.join(*self._start(len(features), rng)),
            growth.stopping,
            self.callbacks(name),
            objective.vectors,
        )
        # Rounding aside: a tolerance of 0.02 and 50 labels are one wrong label.
        most_errors = np.floor(growth.tolerance * self.Y.shape[1] + 1e-9)
        U, V = objective.split(result.point)
        return Node(
            index=index,
            depth=part.depth,
            parent=part.parent,
            size=len(part.rows),
            kept=part.rows[objective.n_errors(result.point) <= most_errors],
            objective=result.objective,
            n_iter=result.n_iter,
            features=features,
            U=U.copy(),
            V=V.copy(),
        )

    def _start(self, n_features: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return a random start, the same for labels that belong to the same instances."""
        n_factors = self.growth.n_factors
        U = START_SCALE * rng.standard_normal((n_features + 1, n_factors))
        V = START_SCALE * rng.standard_normal((n_factors, int(self.kinds.max()) + 1))
        return U, V[:, self.kinds]

    def _rng(self, part: Branch, purpose: str) -> np.random.Generator:
        purposes = ("division", "start")
        return np.random.default_rng([self.seed, part.position, purposes.index(purpose)])

    def _side_by_side(self, work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        if self.n_threads == 1:
            return [work(part) for part in parts]
        return self.checkpoint.side_by_side(work, parts, self.n_threads)


#: What clusterers and mixtures call the number of clusters.
COUNTS = ("n_clusters", "n_components")
#: Up to this many numbers, to divide them is a matter of overhead alone.
FEW = 2**16
#: Random starts of k-means, of which the best is taken.
N_STARTS = 5


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
    for name, value in _wrong_counts(splitter).items():
        raise ValueError(
            f"splitter={splitter!r} has {name}={value!r}, but instances are divided in two: "
            f"give {name}=2."
        )


def divide(X: Any, splitter: Any, seed: int) -> list[IntArray]:
    """Return the indices of the instances of each of two clusters, or of one if all are alike.

    The cluster of the first instance comes first.  The splitter stays as it is; the seed is for
    one whose ``random_state`` is None.

    >>> divide(np.array([[9.0], [0.0], [8.0]]), None, 0)
    [array([0, 2]), array([1])]
    >>> divide(np.ones((3, 1)), None, 0)
    [array([0, 1, 2])]
    """
    keys = row_keys(X)
    if (keys == keys[0]).all():
        return [np.arange(len(keys))]
    clusterer = _make_clusterer(splitter, seed)
    # Sums that several threads share come out otherwise rounded.  For OpenMP this limits the
    # calling thread alone, so that trees that grow side by side do not disturb one another.
    libraries = _libraries() if splitter is None else ThreadpoolController()
    with libraries.limit(limits=1, user_api="openmp"):
        found = np.asarray(clusterer.fit_predict(_fastest_form(X) if splitter is None else X))
    if len(np.unique(found)) > 2:
        raise ValueError(
            f"splitter={splitter!r} has divided {len(keys)} instances into "
            f"{len(np.unique(found))} clusters, but it should find two: set it up for two, or "
            "choose another one."
        )
    first: BoolArray = found == found[0]
    return [part for part in (np.flatnonzero(first), np.flatnonzero(~first)) if len(part)]


def _fastest_form(X: Any) -> Any:
    """Return the same instances in the form that k-means divides soonest.

    It adds up in float64, and converts a part of float32 features again for every start; and of
    few instances, SciPy's handling of sparse ones takes longer than the arithmetic.
    """
    if not issparse(X):
        return X.astype(np.float64, copy=False) if X.size <= FEW else X
    if X.shape[0] * X.shape[1] <= FEW:
        X = X.toarray()
    return X.astype(np.float64, copy=False)


@cache
def _libraries() -> ThreadpoolController:
    """Return the libraries that k-means runs on: to find them takes as long as to divide."""
    return ThreadpoolController()


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


def _wrong_counts(splitter: Any) -> dict[str, Any]:
    """Return the parameters that ask for another number of clusters than two.

    A clusterer's own default counts as not set.
    """
    params = splitter.get_params(deep=False)
    defaults = inspect.signature(type(splitter)).parameters
    return {
        name: params[name]
        for name in COUNTS
        if name in params and params[name] not in (2, None, defaults[name].default)
    }
