"""Figures of label models."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from sklearn.datasets import make_multilabel_classification

from marginmf.labels import PLST, GroPLE
from marginmf.labels.tree import EmbeddingTree, Node
from marginmf.plots import embedding_tree, group_sparsity
from marginmf.plots.style import COLOURS, new_figure


@pytest.fixture(scope="module")
def model() -> GroPLE:
    X, Y = make_multilabel_classification(300, n_classes=8, random_state=0)
    groups = [2, 0, 1, 0, 2, 1, 0, 0]
    return GroPLE(5, grouping=groups, reg_group=25.0, decision="sign").fit(X, Y)


def test_columns_stand_group_by_group_and_zeros_are_white(model: GroPLE) -> None:
    ax = group_sparsity(model, title="factors")
    (image,) = ax.images
    order = [1, 3, 6, 7, 2, 5, 0, 4]
    drawn = np.asarray(image.get_array())
    factors = model.label_factors_[:, order]
    np.testing.assert_array_equal(drawn > 0, factors != 0)
    assert (factors == 0).any()
    assert (factors != 0).any()
    for row, sizes in zip(drawn, np.abs(factors), strict=True):
        np.testing.assert_array_equal(np.argsort(row), np.argsort(sizes))
    assert [float(line.get_xdata()[0]) for line in ax.lines] == [3.5, 5.5]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "1", "2"]
    assert ax.get_title(loc="left") == "factors"


def test_it_draws_into_given_axes(model: GroPLE) -> None:
    first = group_sparsity(model)
    assert group_sparsity(model, first) is first


def test_a_model_without_factors_of_labels_is_a_sentence() -> None:
    with pytest.raises(ValueError, match="GroPLE has no factors of labels to draw"):
        group_sparsity(GroPLE())


def node(index: int, depth: int, parent: int, size: int, n_kept: int) -> Node:
    kept, features = np.arange(n_kept), np.arange(2)
    return Node(
        index, depth, parent, size, kept, 1.0, 3, features, np.zeros((3, 1)), np.zeros((1, 2))
    )


@pytest.fixture
def model_tree() -> SimpleNamespace:
    """Two halves; the residue of the first is divided, with four instances left over."""
    nodes = [
        node(0, 1, -1, 60, 40),
        node(1, 1, -1, 40, 40),
        node(2, 2, 0, 10, 7),
        node(3, 2, 0, 6, 1),
    ]
    return SimpleNamespace(tree_=EmbeddingTree(nodes, 100))


def test_children_lie_under_what_their_parent_does_not_keep(model_tree: SimpleNamespace) -> None:
    kept, others = embedding_tree(model_tree).containers
    spans = [(bar.get_x(), bar.get_width(), round(bar.get_y() + 0.4)) for bar in kept]
    assert spans == [(0, 40, 1), (40, 7, 2), (50, 1, 2), (60, 40, 1)]
    spans = [(bar.get_x(), bar.get_width()) for bar in others]
    assert spans == [(40, 20), (47, 3), (51, 5), (100, 0)]
    assert to_hex(kept[0].get_facecolor()).upper() == COLOURS[0]


def test_wide_nodes_have_their_number_and_depths_count_from_the_top(
    model_tree: SimpleNamespace,
) -> None:
    ax = embedding_tree(model_tree, title="Tree")
    assert sorted(text.get_text() for text in ax.texts) == ["0", "1", "2", "3"]
    assert list(ax.get_yticks()) == [1, 2]
    assert ax.yaxis_inverted()
    assert ax.get_title(loc="left") == "Tree"
    model_tree.tree_.nodes[3] = node(3, 2, 0, 5, 1)
    assert sorted(text.get_text() for text in embedding_tree(model_tree).texts) == ["0", "1", "2"]


def test_a_single_embedding_can_be_drawn_into_given_axes() -> None:
    model_tree = SimpleNamespace(tree_=EmbeddingTree([node(0, 0, -1, 9, 9)], 9))
    ax = new_figure(4, 3).subplots()
    assert embedding_tree(model_tree, ax) is ax
    assert list(ax.get_yticks()) == [0]


def test_a_model_without_a_tree_is_an_error() -> None:
    with pytest.raises(ValueError, match="SimpleNamespace has no tree of embeddings to draw"):
        embedding_tree(SimpleNamespace())


def test_factors_without_groups_are_not_drawn() -> None:
    X, Y = make_multilabel_classification(60, n_classes=5, random_state=0)
    with pytest.raises(ValueError, match="PLST has no factors of labels to draw, or no groups"):
        group_sparsity(PLST().fit(X, Y))
