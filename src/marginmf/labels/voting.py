"""What several embeddings say about an instance together."""

from typing import Any

import numpy as np

from marginmf._typing import FloatArray, IntArray
from marginmf.labels.tree import EmbeddingTree

#: How embeddings vote; see `vote`.
VOTES = ("hard", "soft")


def vote(X: Any, voters: IntArray, tree: EmbeddingTree, kind: str) -> FloatArray:
    """Return a score for every instance and label, between -1 and 1.

    Parameters
    ----------
    X : array or csr_array of shape (n_samples, n_features)
        The instances.
    voters : array of shape (n_samples, n_voters)
        The indices of the nodes that each instance asks; one may occur several times.
    tree : EmbeddingTree
        Whose nodes.
    kind : {"hard", "soft"}
        Soft: the mean of the voters' scores, each clipped to [-1, 1].  Hard: the sign is that of
        the majority (of an even vote, the sign of the mean clipped score), and among instances
        and labels with as many votes the mean clipped score decides.

    Returns
    -------
    array of shape (n_samples, n_labels)
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
