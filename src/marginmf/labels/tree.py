"""The tree of embeddings that MLC-HMF learns, and how its nodes vote."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from marginmf._utils.saved import ListOf, counts, floats, indices, saved, within
from marginmf._utils.types import FloatArray, IntArray
from marginmf.labels.algebra.features import embed
from marginmf.labels.order import Seen


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
        embedded = embed(X, self.features, self.U[:-1])
        embedded += self.U[-1]
        return embedded @ self.V

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


#: How embeddings vote; see `vote`.
VOTES = ("hard", "soft")


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
