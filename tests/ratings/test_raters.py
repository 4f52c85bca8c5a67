"""Who rated what is never known of ratings that are held out, and says something of the others."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from contracts import synthetic
from marginmf.protocols import evaluate
from marginmf.ratings import HMF, MMMF, PMF, MarginEnsemble, Ratings
from marginmf.ratings.factoriser import Factoriser
from marginmf.ratings.fitting import priors
from marginmf.ratings.fitting.priors import Penalties, Priors, raters
from marginmf.ratings.fitting.validation import ValidationSplit

sample = settings(max_examples=30, deadline=None)


def make_data(seed=0):
    return Ratings.of(*synthetic((1, 2, 3, 4, 5), n_users=30, n_items=24, n=300, seed=seed))


def pairs_of(data):
    return set(zip(data.rows.tolist(), data.indices.tolist(), strict=True))


def pairs_in(matrix, side):
    """Return the (user, item) pairs that a matrix of raters holds."""
    rows, columns = matrix.nonzero()
    users, items = (rows, columns) if side == "user" else (columns, rows)
    return set(zip(users.tolist(), items.tolist(), strict=True))


@given(seed=st.integers(0, 999), implicit=st.sampled_from(["items", "users", "both"]))
@sample
def test_priors_of_a_split_hold_no_held_out_pair(seed, implicit):
    data, rng = make_data(seed), np.random.default_rng(seed)
    for split in (ValidationSplit.at_random(data, rng), *ValidationSplit.to_calibrate(data, rng)):
        held = set(zip(split.users.tolist(), split.items.tolist(), strict=True))
        assert held
        for side, prior in zip(
            ("user", "item"), Priors.of(split.train, Penalties(implicit)), strict=True
        ):
            assert not pairs_in(prior.matrix, side) & held


@contextmanager
def watched_raters():
    """Collect the data and the pairs of all matrices of raters that are made."""
    seen = []

    def watched(data, side):
        matrix = raters(data, side)
        seen.append((data, pairs_in(matrix, side)))
        return matrix

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(priors, "raters", watched)
        yield seen


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("make", [MMMF, HMF, PMF])
def test_no_trial_of_a_fit_sees_who_rated_what_it_holds_out(make, early_stopping, monkeypatch):
    plain, data, trials = Factoriser.trial, make_data(9), []

    def trial(self, split, whole):
        n_before = len(seen)
        made = plain(self, split, whole)
        trials.append((split, seen[n_before:], made))
        return made

    monkeypatch.setattr(Factoriser, "trial", trial)
    params = {"max_iter": 5, "early_stopping": early_stopping, "random_state": 0}
    with watched_raters() as seen:
        make(2, "auto", implicit="both", **params).fit(data)
    assert len(trials) == (2 if early_stopping else 11)
    everything = pairs_of(data)
    for split, own, made in trials:
        held = set(zip(split.users.tolist(), split.items.tolist(), strict=True))
        assert held
        assert len(own) == 2  # of users, and of items
        for _, pairs in own:
            assert pairs < everything
            assert not pairs & held
        assert not any(
            pairs_in(prior.matrix, side) & held
            for side, prior in zip(("user", "item"), made.training.priors, strict=True)
        )
    # Besides the trials there is the last part alone, which learns from all ratings.
    assert len(seen) == 2 * len(trials) + 2


@pytest.mark.parametrize("ensemble", ["bagging", "seeds"])
def test_no_member_of_an_ensemble_sees_who_rated_what_it_is_judged_by(ensemble, monkeypatch):
    plain, data, judged = MarginEnsemble._mean_margins, make_data(10), []

    def mean_margins(self, members, users, items):
        asked = set(zip(users.tolist(), items.tolist(), strict=True))
        judged.append(asked)
        for member in (member for kind in members for member in kind):
            own = [pairs for other, pairs in seen if other is member.ratings_]
            if ensemble == "bagging":
                assert len(own) == 4  # two members of a bag, two sides
            assert not any(pairs & asked for pairs in own)
            assert all(pairs < pairs_of(data) for pairs in own)
        return plain(self, members, users, items)

    with watched_raters() as seen, monkeypatch.context() as patch:
        patch.setattr(MarginEnsemble, "_mean_margins", mean_margins)
        MarginEnsemble(n_estimators=10, n_factors=2, ensemble=ensemble, random_state=0).fit(data)
    assert len(judged) == (10 if ensemble == "bagging" else 1)
    # Bags see nothing but parts of the data; seeds are fitted again to everything.
    whole = [pairs == pairs_of(data) for _, pairs in seen]
    assert any(whole) == (ensemble == "seeds")
    if ensemble == "seeds":
        held = judged[0]
        assert not any(pairs & held for _, pairs in seen[: len(seen) // 2])


def test_what_is_tested_does_not_change_what_is_fitted(monkeypatch):
    pairs, ratings = synthetic((1, 2, 3, 4, 5))
    train, test = np.arange(500), np.arange(500, 700)
    fitted, plain = [], MMMF.fit

    class Given:
        def split(self, pairs, ratings=None):
            yield train, test

    def fit(self, *args, **kwargs):
        fitted.append(plain(self, *args, **kwargs))
        return fitted[-1]

    monkeypatch.setattr(MMMF, "fit", fit)
    model = MMMF(3, "auto", implicit="both", random_state=0, max_iter=20)
    cells = set(map(tuple, pairs[train].tolist()))
    free = np.array([cell for cell in np.ndindex(40, 30) if cell not in cells])
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(3):
        pairs[test] = free[rng.permutation(len(free))[: len(test)]]
        ratings[test] = rng.permutation(ratings[test])
        errors.append(evaluate(model, pairs, ratings, Given()))
    assert errors[0] != errors[1]
    for other in fitted[1:]:
        np.testing.assert_array_equal(other.item_factors_, fitted[0].item_factors_)
        np.testing.assert_array_equal(other.user_factors_, fitted[0].user_factors_)


# What it is good for


def random_raters(data, side):
    """Return as many raters as there are, of others than those who rated."""
    matrix, rng = raters(data, side), np.random.default_rng(5)
    drawn = [rng.permutation(matrix.shape[1])[:n] for n in np.diff(matrix.indptr)]
    indices = np.concatenate([np.sort(own) for own in drawn]).astype(np.int32)
    return csr_array((matrix.data, indices, matrix.indptr), shape=matrix.shape)


def test_true_raters_help_on_movielens_and_random_ones_do_not(movielens_80_20, monkeypatch):
    pairs, ratings, test_pairs, test_ratings = movielens_80_20

    def error(implicit):
        """Return the error with the best of a few penalties."""
        errors = []
        for reg in (8, 12, 18):
            model = MMMF(8, reg, implicit=implicit, random_state=0, calibrate=False, tol=1e-3)
            predicted = model.fit(pairs, ratings).predict(test_pairs, output="rule")
            errors.append(np.abs(predicted - test_ratings).mean())
        return min(errors)

    without = error(None)
    assert error("items") < without - 0.01
    monkeypatch.setattr(priors, "raters", random_raters)
    assert error("items") > without - 0.001
