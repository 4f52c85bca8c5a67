"""Figures of fitted label models: GroPLE's factors by group, and the tree of MLC-HMF."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from marginmf._utils.types import Float64Array
from marginmf.plots.style import (
    COLOURS,
    FAINT,
    INK,
    axes_or_new,
    label_axes,
    legend_below,
    shades,
    write_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from marginmf.labels import EmbeddingTree
    from marginmf.labels.tree import Node

#: The faintest shade of a factor that is not zero, so that it can be told from one that is.
FAINTEST = 0.25
#: A group narrower than this share of the picture has no room for its number.
NARROWEST = 0.02
#: Nodes with at least this share of the instances are wide enough for their number.
NUMBERED = 0.06


def group_sparsity(model: Any, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
    """Draw the factors of all labels, group by group: white where a group does not use a factor.

    Parameters
    ----------
    model : fitted GroPLE
        The model whose ``label_factors_`` are drawn.
    ax, title
        The Axes to draw into, by default a new figure; and a title.

    Returns
    -------
    Axes
        Columns are labels, with lines between their groups; rows are factors, shaded by their
        size, the factor's largest being the darkest.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from marginmf.labels import GroPLE
    >>> X, Y = make_multilabel_classification(n_classes=8, random_state=0)
    >>> ax = group_sparsity(GroPLE(n_groups=3, reg_group=5.0, random_state=0).fit(X, Y))
    >>> ax.get_xlabel(), len(ax.lines)  # a line between any two groups
    ('labels, by group', 2)
    """
    factors = getattr(model, "label_factors_", None)
    if factors is None:
        raise ValueError(
            f"{type(model).__name__} has no factors of labels to draw: fit a GroPLE first."
        )
    groups = np.asarray(model.label_groups_)
    order = np.argsort(groups, kind="stable")
    names, starts = np.unique(groups[order], return_index=True)
    bounds = np.append(starts, len(groups))
    ax = axes_or_new(ax)
    ax.imshow(
        _shading(np.asarray(factors)[:, order]),
        cmap=shades(),
        vmin=0,
        vmax=1,
        aspect="auto",
        interpolation="nearest",
    )
    for bound in bounds[1:-1]:
        ax.axvline(bound - 0.5, color=INK, linewidth=0.8)
    wide = np.diff(bounds) >= NARROWEST * len(groups)
    centres = (bounds[:-1] + bounds[1:] - 1) / 2
    ax.set_xticks(centres[wide], [str(name) for name in names[wide]])
    label_axes(ax, title, "labels, by group", "factors", spines=False)
    return ax


def _shading(factors: Float64Array) -> Float64Array:
    """Return 0 for zeros, and for others a shade from faint to 1, the largest of its row."""
    sizes = np.abs(factors)
    largest = sizes.max(axis=1, keepdims=True, initial=0.0)
    shares = np.divide(sizes, largest, out=np.zeros_like(sizes), where=largest > 0)
    shades_: Float64Array = np.where(sizes > 0, FAINTEST + (1.0 - FAINTEST) * shares, 0.0)
    return shades_


def embedding_tree(model: Any, ax: "Axes | None" = None, *, title: str | None = None) -> "Axes":
    """Draw the tree of a fitted MLCHMF: a bar for each node, as wide as it has instances.

    The dark part of a bar is kept there, and the pale part is divided among the bars below it;
    where there is nothing below, it is residue.

    Parameters
    ----------
    model : MLCHMF
        A fitted model.
    ax, title
        The Axes to draw into, by default a new figure; and a title.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from marginmf.labels import MLCHMF
    >>> X, Y = make_multilabel_classification(n_samples=60, n_classes=4, random_state=0)
    >>> model = MLCHMF(max_depth=2, decision="sign", random_state=0).fit(X, Y)
    >>> ax = embedding_tree(model)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('training instances', 'depth')
    """
    tree: EmbeddingTree | None = getattr(model, "tree_", None)
    if tree is None:
        raise ValueError(
            f"{type(model).__name__} has no tree of embeddings to draw: fit an MLCHMF first."
        )
    ax = axes_or_new(ax)
    placed = list(_placed(tree, -1, 0))
    depths = [node.depth for node, _ in placed]
    kept = [len(node.kept) for node, _ in placed]
    lefts = [left for _, left in placed]
    look: Any = {"height": 0.8, "edgecolor": "white"}
    ax.barh(depths, kept, left=lefts, color=COLOURS[0], label="kept", **look)
    ends, residues = np.add(lefts, kept), [node.residue for node, _ in placed]
    ax.barh(depths, residues, left=ends, color=FAINT, label="not kept", **look)
    for node, left in placed:
        if node.size >= NUMBERED * tree.n_samples:
            n_kept = len(node.kept)
            on_kept = 2 * n_kept >= node.size
            x = left + (n_kept / 2 if on_kept else n_kept + node.residue / 2)
            write_text(ax, x, node.depth, str(node.index), colour="white" if on_kept else INK)
    ax.set_xlim(0, tree.n_samples)
    ax.set_yticks(sorted({node.depth for node in tree}))
    ax.invert_yaxis()  # from the top
    label_axes(ax, title, "training instances", "depth")
    ax.spines["left"].set_visible(False)
    legend_below(ax)
    return ax


def _placed(tree: "EmbeddingTree", parent: int, left: int) -> Iterator[tuple["Node", int]]:
    """Yield nodes and where their bars begin: under what their parent does not keep."""
    for node in tree.children(parent):
        yield node, left
        yield from _placed(tree, node.index, left + len(node.kept))
        left += node.size
