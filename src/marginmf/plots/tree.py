"""Which instances the embeddings of MLC-HMF keep, depth by depth."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from marginmf.plots.style import COLOURS, FAINT, INK, TICK_SIZE, axes_or_new, calm, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from marginmf.labels import EmbeddingTree
    from marginmf.labels.tree import Node

#: Nodes with at least this share of the instances are wide enough for their number.
NUMBERED = 0.06


def embedding_tree(model: Any, ax: "Axes | None" = None, *, title: str | None = None) -> "Axes":
    """Draw the tree of a fitted MLCHMF: a bar for each node, as wide as it has instances.

    The dark part of a bar is kept there, and the pale part is divided among the bars below it;
    where there is nothing below, it is residue.

    Parameters
    ----------
    model : MLCHMF
        A fitted model.
    ax : Axes, optional
        Where to draw; by default a new figure.
    title : str, optional
        A title.

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
    parts: tuple[tuple[str, str], ...] = (("kept", COLOURS[0]), ("not kept", FAINT))
    placed = list(_placed(tree, -1, 0))
    for (label, colour), which in zip(parts, (0, 1), strict=True):
        widths = [(len(node.kept), node.residue)[which] for node, _ in placed]
        lefts = [left + which * len(node.kept) for node, left in placed]
        depths = [node.depth for node, _ in placed]
        ax.barh(
            depths, widths, left=lefts, height=0.8, color=colour, edgecolor="white", label=label
        )
    for node, left in placed:
        if node.size >= NUMBERED * tree.n_samples:
            _write_number(ax, node, left)
    ax.set_xlim(0, tree.n_samples)
    ax.set_yticks(sorted({node.depth for node in tree}))
    ax.invert_yaxis()  # from the top
    calm(ax, title, "training instances", "depth")
    ax.spines["left"].set_visible(False)
    legend_below(ax)
    return ax


def _placed(tree: "EmbeddingTree", parent: int, left: int) -> Iterator[tuple["Node", int]]:
    """Yield nodes and where their bars begin: under what their parent does not keep."""
    for node in tree.children(parent):
        yield node, left
        yield from _placed(tree, node.index, left + len(node.kept))
        left += node.size


def _write_number(ax: "Axes", node: "Node", left: int) -> None:
    kept_is_wide = 2 * len(node.kept) >= node.size
    ax.text(
        left + (len(node.kept) / 2 if kept_is_wide else len(node.kept) + node.residue / 2),
        node.depth,
        str(node.index),
        ha="center",
        va="center",
        fontsize=TICK_SIZE,
        color="white" if kept_is_wide else INK,
    )
