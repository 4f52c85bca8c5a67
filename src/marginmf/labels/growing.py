"""How MLC-HMF grows its tree of embeddings (algorithm 5.1 of the thesis, put right)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from marginmf._typing import FloatArray, IntArray
from marginmf.backends.threads import one_blas_thread
from marginmf.checkpoints import Journal
from marginmf.labels.features import take_rows, used_features
from marginmf.labels.objective import LabelObjective
from marginmf.labels.order import content_order
from marginmf.labels.splitting import divide
from marginmf.labels.tree import EmbeddingTree, Node
from marginmf.losses import TwoLevelLoss
from marginmf.solvers import Callback, Solver, Stopping

#: The standard deviation of the random start: zero is a saddle point of the objective, and far
#: from it the losses are flat.
START_SCALE = 0.1


@dataclass(frozen=True)
class Growth:
    """What decides how a tree grows.

    Parameters
    ----------
    n_factors : int
        The rank of every embedding.
    reg : float
        The weight of the penalty, the same at every node whatever its size.
    tolerance : float
        The share of wrong labels up to which a node keeps an instance.
    max_depth : int
        How many times instances are divided; 0 is a single node with all of them.
    min_samples : int
        With fewer instances than this no embedding is learned.
    splitter : clusterer or None
        Who divides instances; None is k-means.
    loss : TwoLevelLoss
        What a margin costs.
    solver : Solver
        Who minimises.
    stopping : Stopping
        When it ends.
    """

    n_factors: int
    reg: float
    tolerance: float
    max_depth: int
    min_samples: int
    splitter: Any
    loss: TwoLevelLoss
    solver: Solver
    stopping: Stopping


class Part(NamedTuple):
    """Instances that belong together.

    ``place`` numbers the places in a binary tree from 1, level by level: it seeds what is random
    here, so that it does not depend on what happens elsewhere in the tree.  ``learned`` says that
    an embedding was learned from these very instances, and keeps none of them.
    """

    place: int
    depth: int
    parent: int
    rows: IntArray
    learned: bool = False


def grow(
    X: Any,
    Y: Any,
    growth: Growth,
    seed: int,
    n_threads: int = 1,
    callbacks: Callable[[str], Sequence[Callback]] = lambda name: (),
) -> EmbeddingTree:
    """Return the tree of embeddings of these instances.

    The order of instances and labels makes no difference to it, nor does the number of threads.

    Parameters
    ----------
    X : array or csr_array of shape (n_samples, n_features)
        The features.
    Y : csr_array of shape (n_samples, n_labels)
        The labels that each instance has.
    growth : Growth
        What decides how the tree grows.
    seed : int
        For random starts.
    n_threads : int
        How many nodes are learned side by side; threads left over help inside the nodes.
    callbacks : callable
        From the name of a node to those who watch its minimisation.
    """
    order = content_order(X, Y)
    back = np.argsort(order.labels)
    X, Y = take_rows(X, order.rows), take_rows(Y[:, order.labels], order.rows)
    grower = _Grower(X, Y, order.kinds, growth, seed, n_threads, callbacks)
    with one_blas_thread():
        nodes = grower.nodes()
    return EmbeddingTree(
        [replace(node, kept=order.rows[node.kept], V=node.V[:, back]) for node in nodes],
        X.shape[0],
    )


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

    def __post_init__(self) -> None:
        self.journal = Journal()
        self.whole = Part(1, 0, -1, np.arange(self.X.shape[0]))

    def nodes(self) -> list[Node]:
        """Return the nodes of the whole tree."""
        nodes = self._levels() if self.growth.max_depth > 0 else []
        if any(len(node.kept) for node in nodes):
            return nodes
        # Nothing to predict with: one embedding of everything, which keeps all it was learned from.
        root = self._node(self.whole, 0, self.n_threads)
        return [replace(root, kept=self.whole.rows)]

    def _levels(self) -> list[Node]:
        """Return the nodes, one level after the other."""
        growth = self.growth
        nodes: list[Node] = []
        undivided = [self.whole]
        while undivided:
            halves = self._side_by_side(self._divided, undivided)
            parts = [part for both in halves for part in both]
            level = self._learned(parts, len(nodes))
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

    def _learned(self, parts: Sequence[Part], first: int) -> list[Node]:
        """Return a node for each part, numbered from the first index on."""
        n_threads = max(1, self.n_threads // max(1, len(parts)))

        def learn(place: int) -> Node:
            return self._node(parts[place], first + place, n_threads)

        return self._side_by_side(learn, range(len(parts)))

    def _divided(self, part: Part) -> list[Part]:
        """Return the one or two parts of a part that are large enough to learn from."""
        seed = int(self._rng(part, "division").integers(2**31))
        clusters = divide(take_rows(self.X, part.rows), self.growth.splitter, seed)
        if len(clusters) == 1 and part.learned:
            return []  # once more would not help
        children = [
            Part(2 * part.place + side, part.depth + 1, part.parent, part.rows[cluster])
            for side, cluster in enumerate(clusters)
        ]
        return [child for child in children if len(child.rows) >= self.growth.min_samples]

    def _node(self, part: Part, index: int, n_threads: int) -> Node:
        """Learn an embedding of some instances, and find those that it gets right."""
        growth, rng = self.growth, self._rng(part, "start")
        features, X = used_features(take_rows(self.X, part.rows))
        objective = LabelObjective(
            X, take_rows(self.Y, part.rows), growth.reg, growth.n_factors, growth.loss, n_threads
        )
        name = f"node {index}"
        result = self.journal.minimise(
            name,
            growth.solver,
            objective,
            objective.join(*self._start(len(features), rng)),
            growth.stopping,
            self.callbacks(name),
            objective.kernels,
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

    def _rng(self, part: Part, purpose: str) -> np.random.Generator:
        purposes = ("division", "start")
        return np.random.default_rng([self.seed, part.place, purposes.index(purpose)])

    def _side_by_side(self, work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        if self.n_threads == 1:
            return [work(part) for part in parts]
        return self.journal.side_by_side(work, parts, self.n_threads)
