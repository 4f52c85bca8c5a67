from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_hex

from marginmf.labels.tree import EmbeddingTree, Node
from marginmf.plots import embedding_tree
from marginmf.plots.style import COLOURS, new_figure


def node(index: int, depth: int, parent: int, size: int, n_kept: int) -> Node:
    kept, features = np.arange(n_kept), np.arange(2)
    return Node(
        index, depth, parent, size, kept, 1.0, 3, features, np.zeros((3, 1)), np.zeros((1, 2))
    )


@pytest.fixture
def model() -> SimpleNamespace:
    """Two halves; the residue of the first is divided, with four instances left over."""
    nodes = [
        node(0, 1, -1, 60, 40),
        node(1, 1, -1, 40, 40),
        node(2, 2, 0, 10, 7),
        node(3, 2, 0, 6, 1),
    ]
    return SimpleNamespace(tree_=EmbeddingTree(nodes, 100))


def test_children_lie_under_what_their_parent_does_not_keep(model: SimpleNamespace) -> None:
    kept, others = embedding_tree(model).containers
    spans = [(bar.get_x(), bar.get_width(), round(bar.get_y() + 0.4)) for bar in kept]
    assert spans == [(0, 40, 1), (40, 7, 2), (50, 1, 2), (60, 40, 1)]
    spans = [(bar.get_x(), bar.get_width()) for bar in others]
    assert spans == [(40, 20), (47, 3), (51, 5), (100, 0)]
    assert to_hex(kept[0].get_facecolor()).upper() == COLOURS[0]


def test_wide_nodes_have_their_number_and_depths_count_from_the_top(
    model: SimpleNamespace,
) -> None:
    ax = embedding_tree(model, title="Tree")
    assert sorted(text.get_text() for text in ax.texts) == ["0", "1", "2", "3"]
    assert list(ax.get_yticks()) == [1, 2]
    assert ax.yaxis_inverted()
    assert ax.get_title(loc="left") == "Tree"
    model.tree_.nodes[3] = node(3, 2, 0, 5, 1)
    assert sorted(text.get_text() for text in embedding_tree(model).texts) == ["0", "1", "2"]


def test_a_single_embedding_can_be_drawn_into_given_axes() -> None:
    model = SimpleNamespace(tree_=EmbeddingTree([node(0, 0, -1, 9, 9)], 9))
    ax = new_figure(4, 3).subplots()
    assert embedding_tree(model, ax) is ax
    assert list(ax.get_yticks()) == [0]


def test_a_model_without_a_tree_is_an_error() -> None:
    with pytest.raises(ValueError, match="SimpleNamespace has no tree of embeddings to draw"):
        embedding_tree(SimpleNamespace())
