"""What lists are ranked by, of pairs and of blocks: two ways to one number."""

import numpy as np
import pytest
from sklearn.base import clone

from contracts import synthetic
from marginmf.ratings import HMF, MMMF, PMMMF, BiasOnly, MarginEnsemble
from marginmf.ratings.lists.relevance import item_scores, sum_of_margins

SCALE = (0.5, 1.0, 2.0, 4.0)
MODELS = [
    MMMF(3, 0.5, random_state=0),
    HMF(3, 0.5, random_state=0),
    PMMMF(3, 0.5, random_state=0),
    BiasOnly(),
    MarginEnsemble(["mmmf", "hmf", "pmmmf"], n_estimators=2, random_state=0),
]


@pytest.fixture(params=MODELS, ids=lambda model: type(model).__name__)
def model(request):
    return clone(request.param).fit(*synthetic(SCALE)).fit_calibrator()


def test_ties_leave_infinite_margins_out():
    margins = np.array([[np.inf, 1.0, -np.inf], [1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(sum_of_margins(margins), [1.0, 6.0])


@pytest.mark.parametrize("by", ["expected", "chance", "relevance"])
@pytest.mark.parametrize("items", [None, np.array([2, 8, 29])], ids=["all", "candidates"])
def test_blocks_agree_with_pairs(model, items, by):
    scores = item_scores(model, by, None, items)
    users, columns = np.array([0, -1, 17, 39]), slice(0, 3) if items is not None else slice(4, 19)
    numbers = np.arange(30)[columns]
    block, ties = scores.block(users, columns)
    rows = np.repeat(users, len(numbers)), np.tile(numbers, len(users))
    exact, exact_ties = scores.pairs(*rows)
    assert block.dtype == ties.dtype == np.float32
    np.testing.assert_allclose(block.ravel(), exact, rtol=1e-5, atol=2e-5)
    if not isinstance(model, MarginEnsemble):  # whose ties are its members' margins in blocks
        np.testing.assert_allclose(ties.ravel(), exact_ties, rtol=1e-5, atol=2e-5)


def test_pairs_have_the_mean_of_their_distribution(model):
    users, items = np.arange(30), np.arange(30)
    expected, _ = item_scores(model, "expected", None, None).pairs(users, items)
    pairs = np.column_stack([users, items])
    mean = model.predict(pairs, output="mean")
    np.testing.assert_allclose(SCALE[0] + expected, mean, rtol=1e-12)


def test_the_chance_is_that_of_the_level_and_those_above(model):
    users, items = np.arange(30), np.arange(30)
    chance, _ = item_scores(model, "chance", 2.0, None).pairs(users, items)
    wanted = model.predict_proba(np.column_stack([users, items]))[:, 2:].sum(axis=1)
    np.testing.assert_allclose(chance, wanted, rtol=1e-12)
