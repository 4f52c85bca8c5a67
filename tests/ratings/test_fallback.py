"""What is said about pairs with an unknown half."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marginmf.ratings import Ratings
from marginmf.ratings.fitting.fallback import PRIOR_STRENGTH, LevelFrequencies
from marginmf.ratings.fitting.new_rows import updated

# ann: 1, 1, 1; bob: 3; x: 1; y: 1; z: 1, 3.
DATA = Ratings.of([("ann", "x"), ("ann", "y"), ("ann", "z"), ("bob", "z")], [1, 1, 1, 3])
COUNTS = ("by_user", "by_item", "overall")
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


@pytest.mark.parametrize("n", [0, 1, 2, 3, 50])
def test_one_side_alone_has_the_log_odds_of_an_unknown_other_side(n):
    # With few codes their own rows are computed, with many all rows: to the same bit.
    frequencies, rng = LevelFrequencies.of(DATA), np.random.default_rng(0)
    nobody = np.full(n, -1)
    users, items = rng.integers(2, size=n), rng.integers(3, size=n)
    np.testing.assert_array_equal(
        frequencies.side_features("user", users)[:, :-1], frequencies.log_odds(users, nobody)
    )
    np.testing.assert_array_equal(
        frequencies.side_features("item", items)[:, :-1], frequencies.log_odds(nobody, items)
    )


def test_changed_frequencies_are_those_of_the_new_ratings():
    new = Ratings.of([("cy", "x"), ("ann", "y"), ("bob", "new")], [3, 3, 1])
    after = updated(DATA, new)
    changed, expected = LevelFrequencies.of(DATA).changed(DATA, after), LevelFrequencies.of(after)
    for name in (*COUNTS, "user_biases", "item_biases"):
        np.testing.assert_array_equal(getattr(changed, name), getattr(expected, name))
        assert getattr(changed, name).dtype == getattr(expected, name).dtype


def test_ratings_that_are_not_at_hand_stay_counted():
    # As after fold_in: the users are new, the items' counts are those of training.
    new = Ratings.of([("cy", "z")], [3], levels=[1, 3], items=DATA.items)
    folded = LevelFrequencies.of(DATA).for_new_rows("user", new)
    np.testing.assert_array_equal(folded.by_user, [[0, 1]])
    np.testing.assert_array_equal(folded.by_item, [[1, 0], [1, 0], [1, 1]])
    np.testing.assert_array_equal(folded.overall, [3, 1])
    after = updated(new, Ratings.of([("cy", "x")], [3], levels=[1, 3]))
    changed = folded.changed(new, after)
    np.testing.assert_array_equal(changed.by_user, [[0, 2]])
    # New users never count among what their items got in training, before or after.
    np.testing.assert_array_equal(changed.by_item, folded.by_item)
    np.testing.assert_array_equal(changed.overall, folded.overall)
    assert changed.placed == "user"


def test_biases_solve_their_penalised_least_squares():
    rng = np.random.default_rng(0)
    pairs = [(u, i) for u in range(30) for i in range(20) if rng.random() < 0.4]
    data = Ratings.of(pairs, rng.integers(1, 6, len(pairs)))
    found = LevelFrequencies.of(data)
    design = np.zeros((len(data), data.n_users + data.n_items))
    design[np.arange(len(data)), data.rows] = 1
    design[np.arange(len(data)), data.n_users + data.indices] = 1
    gram = design.T @ design + PRIOR_STRENGTH * np.eye(design.shape[1])
    exact = np.linalg.solve(gram, design.T @ (data.values - data.values.mean()))
    biases = np.concatenate([found.user_biases, found.item_biases])
    np.testing.assert_allclose(biases, exact, atol=1e-6)


def test_biases_of_new_users_build_on_the_items_of_training():
    frequencies = LevelFrequencies.of(DATA)
    new = Ratings.of([("cy", "z")], [3], levels=[1, 3], items=DATA.items)
    folded = frequencies.for_new_rows("user", new)
    np.testing.assert_array_equal(folded.item_biases, frequencies.item_biases)
    left = 3 - frequencies.mean - frequencies.item_biases[DATA.items.encode(["z"])]
    np.testing.assert_allclose(folded.user_biases, left / (1 + PRIOR_STRENGTH))
    after = updated(new, Ratings.of([("cy", "x")], [3], levels=[1, 3]))
    changed = folded.changed(new, after)
    np.testing.assert_array_equal(changed.item_biases, frequencies.item_biases)
    assert changed.user_biases[0] > folded.user_biases[0]


def test_frequencies_saved_without_biases_stay_without():
    old = LevelFrequencies(*(getattr(LevelFrequencies.of(DATA), name) for name in COUNTS))
    new = Ratings.of([("cy", "z")], [3], levels=[1, 3], items=DATA.items)
    for later in (old.changed(DATA, DATA), old.for_new_rows("user", new)):
        assert later.user_biases is None
        assert later.item_biases is None
        assert later.side_features("item", np.array([0])).shape == (1, 1)
