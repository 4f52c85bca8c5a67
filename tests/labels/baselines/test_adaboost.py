"""AdaBoost.MH and AdaBoost.MR against all stumps and all pairs, one by one."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from label_contracts import labelled
from marginmf.datasets import load_labels
from marginmf.labels import AdaBoostMH, AdaBoostMR
from marginmf.labels.baselines.boosting import Stumps, find_cuts
from marginmf.metrics import jaccard_accuracy

MANY = 1000  # bins: a cut between any two values
SEEDS = st.integers(0, 10_000)


def small(seed, n=12, n_features=3, n_labels=3):
    """Rows with negative features, zeros and ties, and labels that all vary."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 4, (n, n_features)) * rng.choice([0.5, 1.0], (n, n_features))
    Y = (rng.random((n, n_labels)) < 0.4).astype(int)
    Y[0], Y[1] = 1, 0
    return X, Y


def all_stumps(X):
    """Return the sides of every stump, by feature and ascending cut."""
    for feature in range(X.shape[1]):
        values = np.unique(X[:, feature])
        for low, high in pairwise(values):
            yield feature, 0.0 if low <= 0 < high else (low + high) / 2


def first_best(criteria):
    return int(np.argmax(np.array(criteria) >= max(criteria) - 1e-12))


def boost_mh(X, Y, n_rounds):
    """Return scores of the training rows and the product of normalisers, by loops."""
    n_labels = Y.shape[1]
    signs, least = 2 * Y - 1, 1 / Y.size
    weights, scores, bound = np.full(Y.shape, least), np.zeros(Y.shape), 1.0
    chosen = []
    for _ in range(n_rounds):
        candidates = []
        for feature, cut in all_stumps(X):
            above, total, values = X[:, feature] > cut, 0.0, np.zeros((2, n_labels))
            for side, label in product((0, 1), range(n_labels)):
                here = above == side
                plus = weights[here & (Y[:, label] == 1), label].sum()
                minus = weights[here & (Y[:, label] == 0), label].sum()
                total += 2 * np.sqrt(plus * minus)
                values[side, label] = 0.5 * np.log((plus + least) / (minus + least))
            candidates.append((total, feature, cut, values[above.astype(int)]))
        best = candidates[first_best([-total for total, *_ in candidates])]
        if best[0] >= 1 - 1e-12:
            break
        chosen.append(best[1:3])
        scores += best[3]
        weights = weights * np.exp(-signs * best[3])
        bound *= weights.sum()
        weights /= weights.sum()
    return chosen, scores, bound


def boost_mr(X, Y, n_rounds):
    """The same with a weight for each pair of a label that a row has and one that it has not."""
    n, n_labels = Y.shape
    least = 1 / Y.size
    pairs = [
        (i, k, other)
        for i in range(n)
        for k, other in product(np.flatnonzero(Y[i]), np.flatnonzero(Y[i] == 0))
    ]
    n_rows = len({i for i, *_ in pairs})
    per_row = Y.sum(axis=1) * (n_labels - Y.sum(axis=1))
    weights = np.array([1 / (n_rows * per_row[i]) for i, *_ in pairs])
    scores, bound, chosen = np.zeros(Y.shape), 1.0, []
    for _ in range(n_rounds):
        candidates = []
        for feature, cut in all_stumps(X):
            side = (X[:, feature] > cut).astype(int)
            balance = np.zeros((2, n_labels))
            for weight, (i, k, other) in zip(weights, pairs, strict=True):
                balance[side[i], k] += weight
                balance[side[i], other] -= weight
            said = np.where(np.abs(balance) < 1e-13, 0, np.sign(balance))[side]
            right = sum(
                0.5 * weight * (said[i, k] - said[i, other])
                for weight, (i, k, other) in zip(weights, pairs, strict=True)
            )
            candidates.append((right, feature, cut, said))
        right, feature, cut, said = candidates[first_best([each[0] for each in candidates])]
        if right <= 1e-12:
            break
        chosen.append((feature, cut))
        added = 0.5 * np.log((1 + right + least) / (1 - right + least)) * said
        scores += added
        gaps = np.array([added[i, k] - added[i, other] for i, k, other in pairs])
        weights = weights * np.exp(-gaps / 2)
        bound *= weights.sum()
        weights /= weights.sum()
    return chosen, scores - scores.mean(axis=1, keepdims=True), bound


def chosen_stumps(model):
    return list(zip(model.stump_features_.tolist(), model.stump_cuts_.tolist(), strict=True))


@given(SEEDS, st.sampled_from([(AdaBoostMH, boost_mh), (AdaBoostMR, boost_mr)]), st.booleans())
@settings(max_examples=25, deadline=None)
def test_stumps_scores_and_bounds_are_those_of_all_stumps_one_by_one(seed, both, sparse) -> None:
    method, oracle = both
    X, Y = small(seed)
    stumps, scores, bound = oracle(X, Y, 5)
    model = method(5, MANY, decision="sign").fit(csr_array(X) if sparse else X, Y)
    assert chosen_stumps(model) == stumps
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-9)
    if stumps:
        assert model.bounds_[-1] == pytest.approx(bound, rel=1e-9)


@given(SEEDS, st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_factors_of_pair_weights_are_the_weights_of_all_pairs(seed, n_rounds) -> None:
    _, Y = small(seed)
    rng, present, model = np.random.default_rng(seed), Y > 0, AdaBoostMR()
    weights = model._first_weights(present)
    rows, having, lacking = np.nonzero(present[:, :, None] & ~present[:, None, :])
    n_pairs = np.bincount(rows, minlength=len(Y))
    explicit = 1 / (n_pairs[rows] * (n_pairs > 0).sum())
    for _ in range(n_rounds):
        np.testing.assert_allclose(weights[rows, having] * weights[rows, lacking], explicit)
        (balance,) = model._evidence(weights, present)
        expected = np.zeros(Y.shape)
        np.add.at(expected, (rows, having), explicit)
        np.add.at(expected, (rows, lacking), -explicit)
        np.testing.assert_allclose(balance, expected, atol=1e-15)
        added = rng.normal(size=Y.shape)
        total = model._reweight(weights, present, np.exp(added))
        explicit = explicit * np.exp((added[rows, lacking] - added[rows, having]) / 2)
        assert total == pytest.approx(explicit.sum())
        explicit /= explicit.sum()


@given(SEEDS)
@settings(max_examples=15, deadline=None)
def test_the_losses_on_training_rows_stay_below_the_bounds(seed) -> None:
    X, Y = labelled(40, 6, 4, seed)
    X, Y = np.vstack([X, X[:2]]), np.vstack([Y, np.zeros((1, 4), int), np.ones((1, 4), int)])
    for n_rounds in (1, 4, 16):
        model = AdaBoostMH(n_rounds, decision="sign").fit(X, Y)
        assert (np.diff(model.bounds_) <= 1e-12).all()
        assert (model.predict(X) != Y).mean() <= model.bounds_[-1] + 1e-12
        model = AdaBoostMR(n_rounds, decision="sign").fit(X, Y)
        scores, present = model.decision_function(X), Y > 0
        wrong = (scores[:, :, None] <= scores[:, None, :]) & present[:, :, None]
        wrong &= ~present[:, None, :]
        n = Y.sum(axis=1)
        pairs = n * (4 - n)
        losses = wrong.sum(axis=(1, 2))[pairs > 0] / pairs[pairs > 0]
        assert losses.mean() <= model.bounds_[-1] + 1e-12


@given(SEEDS, st.integers(2, 6))
@settings(max_examples=30, deadline=None)
def test_sides_and_sums_do_not_depend_on_how_features_are_stored(seed, n_bins) -> None:
    X, _ = small(seed, 20, 4)
    weights = np.random.default_rng(seed).random((20, 2))
    with_zeros = csr_array(np.where(X == 0, np.nan, X))
    with_zeros.data[np.isnan(with_zeros.data)] = 0.0
    for form in (X, csr_array(X), with_zeros, X.astype(np.float32)):
        stumps = Stumps.of(form, n_bins)
        sums = stumps.sums(weights)
        for k, (feature, cut) in enumerate(zip(stumps.features, stumps.cuts, strict=True)):
            above = X[:, feature] > cut
            assert 0 < above.sum() < len(X)
            np.testing.assert_array_equal(stumps.is_above(k), above)
            np.testing.assert_allclose(sums[k], weights[above if cut >= 0 else ~above].sum(axis=0))
        for feature in range(X.shape[1]):
            expected = find_cuts(X[:, feature], 0, n_bins)
            np.testing.assert_array_equal(stumps.cuts[stumps.features == feature], expected)


def test_cuts_are_at_quantiles_and_around_zero() -> None:
    assert find_cuts(np.arange(1.0, 17.0), 0, 4).tolist() == [4.5, 8.5, 12.5]
    assert find_cuts(np.arange(1.0, 3.0), 1000, 16).tolist() == [0.0]
    # Zero is at three quartiles as long as it is three quarters of the rows.
    for n_zeros, expected in ((5, [0.0, 1.5]), (6, [0.0])):
        values = np.array([1.0, 2.0])
        assert find_cuts(values, n_zeros, 4).tolist() == expected
        assert find_cuts(np.append(values, np.zeros(n_zeros)), 0, 4).tolist() == expected
    assert find_cuts(np.array([-4.0]), 1000, 16).tolist() == [-2.0]
    assert find_cuts(np.array([-4.0, 2.0]), 1000, 16).tolist() == [-2.0, 0.0]
    assert find_cuts(np.array([-4.0, 2.0]), 0, 2).tolist() == [0.0]
    assert find_cuts(np.full(3, 7.0), 0, 16).tolist() == []
    assert find_cuts(np.zeros(0), 5, 16).tolist() == []
    # No number lies between these two, and the larger is above the cut.
    low, high = 1.0, np.nextafter(1.0, 2.0)
    assert find_cuts(np.array([low, high]), 0, 2).tolist() == [low]


def test_a_single_label_is_ranked_against_its_absence() -> None:
    X, Y = small(3)
    model = AdaBoostMR(5, MANY, decision="sign").fit(X, Y[:, :1])
    stumps, scores, bound = boost_mr(X, np.hstack([Y[:, :1], 1 - Y[:, :1]]), 5)
    assert chosen_stumps(model) == stumps
    np.testing.assert_allclose(model.decision_function(X)[:, 0], scores[:, 0], atol=1e-9)
    assert model.bounds_[-1] == pytest.approx(bound)


@pytest.mark.parametrize("method", [AdaBoostMH, AdaBoostMR])
def test_labels_are_worked_on_in_blocks(method, monkeypatch) -> None:
    X, Y = labelled()
    whole = method(10, decision="sign").fit(X, Y)
    monkeypatch.setattr("marginmf.labels.baselines.boosting.BLOCK", 1)
    blocks = method(10, decision="sign").fit(X, Y)
    assert chosen_stumps(blocks) == chosen_stumps(whole)
    np.testing.assert_allclose(blocks.decision_function(X), whole.decision_function(X))


@pytest.mark.parametrize("method", [AdaBoostMH, AdaBoostMR])
def test_what_no_stump_can_tell_apart_ends_the_rounds(method) -> None:
    Y = np.array([[1, 0, 1], [0, 1, 0]] * 3)
    constant = method(decision="sign").fit(np.ones((6, 2)), Y)
    assert len(constant.stump_cuts_) == 0
    assert not constant.decision_function(np.ones((2, 2))).any()
    # Either value goes with either row of labels, equally often.
    useless = method(decision="sign").fit([[0.0], [0.0], [1.0], [1.0]], Y[:4])
    assert len(useless.stump_cuts_) == 0


@pytest.mark.parametrize("method", [AdaBoostMH, AdaBoostMR])
def test_what_a_stump_tells_apart_is_learned_at_once_and_scores_stay_finite(method) -> None:
    Y = np.array([[1, 0, 1], [0, 1, 0]] * 3)
    model = method(50, decision="sign").fit(Y[:, :1] * 2.0, Y)
    assert np.isfinite(model.stump_values_).all()
    np.testing.assert_array_equal(model.predict(Y[:, :1] * 2.0), Y)


@pytest.mark.parametrize("method", [AdaBoostMH, AdaBoostMR])
@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"n_rounds": 0}, "n_rounds=0 must be a whole number >= 1"),
        ({"n_rounds": 2.5}, "n_rounds=2.5 must be a whole number"),
        ({"n_bins": 1}, "n_bins=1 must be a whole number >= 2"),
    ],
)
def test_bad_parameters_are_refused(method, params, said) -> None:
    with pytest.raises(ValueError, match=said):
        method(**params).fit(*labelled())


@pytest.mark.parametrize(
    ("method", "decision", "least"),
    [(AdaBoostMH, "sign", 0.67), (AdaBoostMR, "global", 0.65)],
)
def test_accuracy_on_medical(method, decision, least, data_root, monkeypatch) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    data = load_labels("medical")
    rows = np.random.default_rng(0).permutation(data.X.shape[0])
    train, test = rows[:780], rows[780:]
    model = method(150, decision=decision, cv=2).fit(data.X[train], data.Y[train])
    reached = jaccard_accuracy(data.Y[test], model.predict(data.X[test]))
    assert least < reached < 0.8
