"""What is said about pairs with an unknown half."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marginmf.ratings import Ratings
from marginmf.ratings.changes import updated
from marginmf.ratings.fallback import PRIOR_STRENGTH, LevelFrequencies

# ann: 1, 1, 1; bob: 3; x: 1; y: 1; z: 1, 3.
DATA = Ratings.of([("ann", "x"), ("ann", "y"), ("ann", "z"), ("bob", "z")], [1, 1, 1, 3])
PRIOR = np.array([4 / 6, 2 / 6])  # three 1s and a 3, and one more of each


def of(user, item):
    codes = DATA.users.encode([user]), DATA.items.encode([item])
    return LevelFrequencies.of(DATA).distribution(*codes)[0]


def blend(counts):
    counts = np.array(counts) + PRIOR_STRENGTH * PRIOR
    return counts / counts.sum()


@pytest.mark.parametrize(
    ("user", "item", "counts"),
    [
        ("nobody", "nothing", [0, 0]),
        ("ann", "nothing", [3, 0]),
        ("bob", "nothing", [0, 1]),
        ("nobody", "z", [1, 1]),
        ("ann", "z", [4, 1]),
    ],
)
def test_whatever_is_known_speaks_and_few_ratings_speak_softly(user, item, counts):
    np.testing.assert_allclose(of(user, item), blend(counts))


@given(
    ratings=st.dictionaries(
        st.tuples(st.integers(0, 3), st.integers(0, 3)), st.integers(1, 4), min_size=1
    ),
    codes=st.lists(st.tuples(st.integers(-1, 0), st.integers(-1, 0))),
)
def test_log_odds_follow_from_distributions(ratings, codes):
    data = Ratings.of(list(ratings), list(ratings.values()), levels=[1, 2, 3, 4])
    users, items = np.array(codes, int).reshape(-1, 2).T
    frequencies = LevelFrequencies.of(data)
    distribution = frequencies.distribution(users, items)
    assert distribution.shape == (len(codes), 4)
    assert (distribution > 0).all()
    np.testing.assert_allclose(distribution.sum(axis=1), 1)
    above = np.column_stack([distribution[:, q + 1 :].sum(axis=1) for q in range(3)])
    expected = np.log(above / (1 - above))
    np.testing.assert_allclose(frequencies.log_odds(users, items), expected, atol=1e-9)


def test_changed_frequencies_are_those_of_the_new_ratings():
    new = Ratings.of([("cy", "x"), ("ann", "y"), ("bob", "new")], [3, 3, 1])
    after = updated(DATA, new)
    changed, expected = LevelFrequencies.of(DATA).changed(DATA, after), LevelFrequencies.of(after)
    for name in ("by_user", "by_item", "overall"):
        np.testing.assert_array_equal(getattr(changed, name), getattr(expected, name))
        assert getattr(changed, name).dtype == getattr(expected, name).dtype


def test_ratings_that_are_not_at_hand_stay_counted():
    # As after fold_in: the users are new, the items' counts are those of training.
    new = Ratings.of([("cy", "z")], [3], levels=[1, 3], items=DATA.items)
    placed = LevelFrequencies.of(DATA).placing("user", new)
    np.testing.assert_array_equal(placed.by_user, [[0, 1]])
    np.testing.assert_array_equal(placed.by_item, [[1, 0], [1, 0], [1, 1]])
    np.testing.assert_array_equal(placed.overall, [3, 1])
    after = updated(new, Ratings.of([("cy", "x")], [3], levels=[1, 3]))
    changed = placed.changed(new, after)
    np.testing.assert_array_equal(changed.by_user, [[0, 2]])
    # Newcomers never count among what their items got in training, before or after.
    np.testing.assert_array_equal(changed.by_item, placed.by_item)
    np.testing.assert_array_equal(changed.overall, placed.overall)
    assert changed.placed == "user"
