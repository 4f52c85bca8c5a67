"""The picture of the factors that groups of labels use."""

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification

from marginmf.labels import GroPLE
from marginmf.plots import group_sparsity


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
