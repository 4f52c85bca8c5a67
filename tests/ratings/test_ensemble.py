"""MarginEnsemble: its members, its combination, and what it refuses."""

import numpy as np
import pytest
from scipy.special import logit
from sklearn.base import clone

from contracts import RatingsEstimatorContract, synthetic
from marginmf.ratings import ALS, HMF, MMMF, PMMMF, BiasOnly, MarginEnsemble, Ratings
from marginmf.ratings.ensemble import FOLDS, LeftOut


class EnsembleContract(RatingsEstimatorContract):
    parameter, usual, refused = "n_estimators", 2, (0, 2.5, None)

    def test_a_bad_reg_of_a_member_gets_a_sentence(self, data):
        with pytest.raises(ValueError, match="reg=-1"):
            self.make().set_params(members=[MMMF(reg=-1)]).fit(*data)

    def own_margins(self, model, pairs):
        """Return the members' margins; the ensemble's depend on level frequencies too."""
        members = [member for kind in model.members_ for member in kind]
        return np.stack([member.decision_function(pairs) for member in members], axis=1)

    def test_rule_is_the_median(self, model, data):
        pairs, _ = data
        np.testing.assert_array_equal(model.predict(pairs), model.predict(pairs, output="median"))

    def test_margins_are_the_log_odds_of_the_distribution(self, model, data):
        distribution = model.predict_proba(data[0])
        above = distribution[:, ::-1].cumsum(axis=1)[:, -2::-1]
        np.testing.assert_allclose(model.decision_function(data[0]), logit(above), atol=1e-6)


class TestBags(EnsembleContract):
    built_from_raters = True

    def make(self, **params):
        return MarginEnsemble(**{"n_estimators": 4, "random_state": 0, **params})


class TestSeeds(EnsembleContract):
    def make(self, **params):
        defaults = {"ensemble": "seeds", "n_estimators": 2, "random_state": 0, "implicit": None}
        return MarginEnsemble(**{**defaults, **params})


class TestEveryKindOfMember(EnsembleContract):
    built_from_raters = True

    def make(self, **params):
        members = ["pmmmf", "bias", "als", MMMF(3, 1.0), BiasOnly(reg=2.0)]
        return MarginEnsemble(members, **{"n_estimators": 2, "random_state": 0, **params})

    def test_clone_is_unfitted_and_equal(self, model, data):
        copy = clone(model)
        assert [repr(member) for member in copy.members] == [repr(m) for m in model.members]
        np.testing.assert_array_equal(copy.fit(*data).predict(data[0]), model.predict(data[0]))


@pytest.fixture(scope="module")
def data():
    return Ratings.of(*synthetic((1, 2, 3, 4, 5), n_users=60, n_items=50, n=1800))


def test_more_members_vary_less(data):
    def spread(n):
        margins = [
            MarginEnsemble(["mmmf"], n_estimators=n, random_state=seed).fit(data)
            for seed in range(4)
        ]
        pairs = np.column_stack([data.rows, data.indices])
        return np.std([model.decision_function(pairs) for model in margins], axis=0).mean()

    assert spread(12) < 0.6 * spread(1)


def test_members_keep_their_own_parameters_and_are_not_changed(data):
    mine = HMF(n_factors=3, reg=2.0, max_iter=7)
    model = MarginEnsemble([mine, "mmmf"], n_estimators=2, random_state=0).fit(data)
    assert not hasattr(mine, "levels_")
    hmfs, mmmfs = model.members_
    assert [type(member) for member in hmfs + mmmfs] == [HMF, HMF, MMMF, MMMF]
    assert {member.max_iter for member in hmfs} == {7}
    assert len({member.random_state for member in hmfs + mmmfs}) == 4


def test_members_share_the_ratings(data):
    model = MarginEnsemble(n_estimators=2, random_state=0).fit(data)
    assert all(member.ratings_ is model.ratings_ for kind in model.members_ for member in kind)


def test_bags_leave_different_parts_out(data, monkeypatch):
    sizes = []
    learned = MMMF._fit_copy

    def noted(self, train, *args):
        sizes.append(len(train))
        return learned(self, train, *args)

    monkeypatch.setattr(MMMF, "_fit_copy", noted)
    MarginEnsemble(["mmmf"], n_estimators=FOLDS + 2, random_state=0).fit(data)
    assert sizes == [len(data) - len(data) // FOLDS] * (FOLDS + 2)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"members": ["svd"]}, "The member 'svd' is not known. Choose from mmmf, hmf"),
        ({"members": []}, "at least one"),
        ({"members": "hmf"}, "must be a list of names"),
        ({"members": [3]}, "The member 3 is neither a name nor an estimator"),
        ({"members": [ALS(reg=0)]}, "give a positive reg"),
        ({"ensemble": "boosting"}, "ensemble='boosting' is not known"),
        ({"n_estimators": 0}, "n_estimators=0 must be a whole number >= 1"),
        ({"n_factors": "many"}, "n_factors='many' must be a whole number >= 1"),
        ({"random_state": "x"}, "random_state='x' cannot seed"),
    ],
)
def test_what_cannot_be_used_gets_a_sentence(data, params, sentence):
    with pytest.raises(ValueError, match=sentence):
        MarginEnsemble(**params).fit(data)


def test_infinite_margins_of_opposite_signs_have_a_mean():
    # One user who used the lowest and the highest level once each: a bag may see either alone.
    pairs = [(u, i) for u in range(8) for i in range(8)] + [(99, 0), (99, 1)]
    ratings = [1 + (u * i) % 5 for u in range(8) for i in range(8)] + [1, 5]
    model = MarginEnsemble([PMMMF(2, 1.0)], n_estimators=10, random_state=0).fit(pairs, ratings)
    assert np.isfinite(model.decision_function(pairs)).all()


def test_noise_of_means_over_few_bags_is_estimated():
    rng = np.random.default_rng(0)
    n, n_bags, root = 20_000, 30, np.array([[1.0, 0.0], [0.5, 0.8]])
    signal = rng.normal(size=(n, 4))
    left_out = LeftOut(n)
    for _ in range(3):
        draws = signal.copy()
        draws[:, :2] += rng.normal(size=(n, 2)) @ root.T
        draws[:, 2] += rng.normal(size=n)
        left_out.add(np.arange(n), draws)
    expected = np.zeros((4, 4))
    expected[:2, :2], expected[2, 2] = root @ root.T, 1.0
    noise = left_out.noise([2, 1], n_bags)
    np.testing.assert_allclose(noise, (1 / 3 - 1 / n_bags) * expected, atol=0.01)
    entries, means = left_out.means()
    assert len(entries) == n
    assert np.abs(means[:, 3] - signal[:, 3]).max() < 1e-12


def test_a_single_draw_says_nothing_about_noise():
    left_out = LeftOut(5)
    left_out.add(np.array([1, 3]), np.ones((2, 4)))
    assert left_out.noise([2], 10) is None
    assert left_out.means()[0].tolist() == [1, 3]
