"""The contract of every ratings estimator.

Subclass `RatingsEstimatorContract` in a test module, define `make`, and the whole suite runs.
"""

import dataclasses
import pickle
from copy import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV

import marginmf
from marginmf.ratings import Ratings
from new_row_contracts import NewRowsContract


def synthetic(scale, n_users=40, n_items=30, n=700, seed=0):
    """Ratings with structure: a low-rank score, cut into the levels of the scale."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=(n_users, 2)) @ rng.normal(size=(2, n_items))
    score += rng.normal(size=(n_users, 1)) + rng.normal(size=n_items)
    cells = rng.permutation(n_users * n_items)[:n]
    pairs = np.column_stack([cells // n_items, cells % n_items])
    picked = score[pairs[:, 0], pairs[:, 1]]
    cuts = np.quantile(picked, np.linspace(0, 1, len(scale) + 1)[1:-1])
    return pairs, np.asarray(scale, float)[np.searchsorted(cuts, picked)]


def assert_same_fit(model, other):
    """All that was learned is the same to the last bit, but for how long it took."""
    learned = [name for name in vars(model) if name.endswith("_")]
    assert learned == [name for name in vars(other) if name.endswith("_")]
    for name in learned:
        a, b = getattr(model, name), getattr(other, name)
        if name == "history_":
            # By their digits: a chain has no gradient, and NaN is not equal to itself.
            assert repr(without_seconds(a)) == repr(without_seconds(b))
        elif name not in ("users_", "items_", "ratings_"):
            assert_same(a, b, name)


def assert_same(a, b, name):
    """Two values, or all the values in them, are the same to the last bit."""
    assert type(a) is type(b), name
    if isinstance(a, np.ndarray):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), name
    elif isinstance(a, list):
        for one, other in zip(a, b, strict=True):
            assert_same(one, other, name)
    elif hasattr(a, "fit"):
        assert_same_fit(a, b)
    elif dataclasses.is_dataclass(a):
        assert_same(list(vars(a).values()), list(vars(b).values()), name)
    else:
        assert a == b, name


def without_seconds(history):
    if isinstance(history[0], list):
        return [without_seconds(part) for part in history]
    return [record._replace(seconds=None) for record in history]


class RatingsEstimatorContract(NewRowsContract):
    """What a user may rely on, whichever estimator it is."""

    scale = (1, 2, 3, 4, 5)
    half_scale = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
    #: A parameter that is a number, one that it may be, and what is refused with a sentence.
    parameter, usual, refused = "reg", 5.0, (-1.0, "strong", None)

    def make(self, **params):
        """Return an unfitted estimator that is quick to fit and has a fixed seed."""
        raise NotImplementedError

    def fit_margins(self, *data):
        """Return a fitted estimator without probabilities, which take ten more fits."""
        model = self.make()
        if "calibrate" in model.get_params():
            model.set_params(calibrate=False)
        return model.fit(*data)

    @pytest.fixture(scope="class")
    @classmethod
    def data(cls):
        return synthetic(cls.scale)

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, data):
        return cls().make().fit(*data)

    @pytest.fixture
    def model(self, fitted):
        """Return a fitted estimator that a test may change: fits are what takes time here."""
        return copy(fitted)

    # --- predictions ---------------------------------------------------------------------------

    def test_predictions_are_levels_and_better_than_the_median(self, model, data):
        pairs, ratings = data
        predicted = model.predict(pairs)
        assert set(predicted) <= set(np.asarray(self.scale, float))
        error = np.abs(predicted - ratings).mean()
        assert error < 0.8 * np.abs(np.median(ratings) - ratings).mean()

    def test_margins_agree_with_predictions(self, model, data):
        pairs, _ = data
        margins = model.decision_function(pairs)
        columns = len(self.scale) - 1
        assert margins.shape == ((len(pairs),) if columns == 1 else (len(pairs), columns))
        margins, predicted = margins.reshape(len(pairs), -1), model.predict(pairs, output="rule")
        np.testing.assert_array_equal(predicted[(margins < 0).all(axis=1)], min(self.scale))
        np.testing.assert_array_equal(predicted[(margins > 0).all(axis=1)], max(self.scale))

    def test_empty_predict_is_empty(self, model):
        assert model.predict([]).shape == (0,)
        assert model.predict(np.empty((0, 2), int)).shape == (0,)

    def test_score_is_minus_the_mean_absolute_error(self, model, data):
        pairs, ratings = data
        assert model.score(pairs, ratings) == -np.abs(model.predict(pairs) - ratings).mean()

    def test_half_star_scale(self):
        scale = self.half_scale[: max(2, len(self.scale))]
        pairs, ratings = synthetic(scale)
        assert set(self.make().fit(pairs, ratings).predict(pairs)) <= set(scale)

    def test_predict_before_fit_is_an_error(self):
        with pytest.raises(NotFittedError):
            self.make().predict([(0, 0)])

    # --- probabilities -------------------------------------------------------------------------

    def test_probabilities_are_a_distribution_over_the_levels(self, model, data):
        pairs, _ = data
        distribution = model.predict_proba(pairs)
        assert distribution.shape == (len(pairs), len(self.scale))
        assert (distribution > 0).all()
        np.testing.assert_allclose(distribution.sum(axis=1), 1.0)

    def test_outputs_are_the_median_the_mode_and_the_mean_of_the_distribution(self, model, data):
        pairs, _ = data
        distribution, levels = model.predict_proba(pairs), np.asarray(self.scale, float)
        mode = model.predict(pairs, output="mode")
        np.testing.assert_array_equal(mode, levels[distribution.argmax(axis=1)])
        np.testing.assert_allclose(model.predict(pairs, output="mean"), distribution @ levels)
        median = model.predict(pairs, output="median")
        below = (distribution * (levels < median[:, None])).sum(axis=1)
        above = (distribution * (levels > median[:, None])).sum(axis=1)
        assert (below <= 0.5 + 1e-9).all()
        assert (above <= 0.5 + 1e-9).all()
        with pytest.raises(ValueError, match="output='best' is not known"):
            model.predict(pairs, output="best")

    def test_probabilities_say_more_than_the_frequencies_of_levels(self, data):
        pairs, ratings = data
        order = np.random.default_rng(2).permutation(len(pairs))
        train, test = order[:560], order[560:]
        model = self.make().fit(Ratings.of(pairs[train], ratings[train], levels=self.scale))
        codes = np.searchsorted(self.scale, ratings[test])
        frequencies = np.bincount(np.searchsorted(self.scale, ratings[train])) / len(train)
        own = np.log(model.predict_proba(pairs[test])[np.arange(len(test)), codes]).mean()
        assert own > np.log(frequencies[codes]).mean()

    def test_probabilities_of_unknown_ids(self, model, data):
        mixed = np.vstack([data[0][:5], self.UNKNOWN])
        np.testing.assert_allclose(model.predict_proba(mixed).sum(axis=1), 1.0)
        np.testing.assert_array_equal(
            model.predict_proba(mixed)[:5], model.predict_proba(data[0][:5])
        )
        missing = model.predict_proba(mixed, unknown="nan")
        np.testing.assert_array_equal(np.isnan(missing).all(axis=1), [False] * 5 + [True] * 3)
        for output in ("median", "mode", "mean"):
            assert np.isnan(model.predict(mixed, "nan", output)[5:]).all()

    def test_probabilities_of_new_users(self, model, data):
        # Calibrated before or after the new users have come makes no difference.
        pairs, ratings = data
        moved = pairs + np.array([1000, 0])
        late = model.fold_in(moved, ratings).predict_proba(moved)
        soon = model.fit_calibrator().fold_in(moved, ratings).predict_proba(moved)
        np.testing.assert_array_equal(late, soon)
        np.testing.assert_allclose(late.sum(axis=1), 1.0)

    # --- unknown users and items ---------------------------------------------------------------

    UNKNOWN = ((10_000, 3), (3, 10_000), (10_000, 10_000))

    def test_unknown_ids_fall_back_to_levels(self, model):
        assert set(model.predict(self.UNKNOWN)) <= set(np.asarray(self.scale, float))
        assert np.isfinite(model.decision_function(self.UNKNOWN)).all()

    def test_unknown_ids_do_not_disturb_known_ones(self, model, data):
        pairs, _ = data
        mixed = np.vstack([pairs[:5], self.UNKNOWN])
        np.testing.assert_array_equal(model.predict(mixed)[:5], model.predict(pairs[:5]))

    def test_unknown_nan(self, model, data):
        pairs, _ = data
        predicted = model.predict(np.vstack([pairs[:2], self.UNKNOWN]), unknown="nan")
        np.testing.assert_array_equal(np.isnan(predicted), [False, False, True, True, True])

    def test_unknown_raise_names_the_first(self, model, data):
        pairs, _ = data
        with pytest.raises(ValueError, match=r"3 of 4 pairs.*user 10000 in row 1"):
            model.predict(np.vstack([pairs[:1], self.UNKNOWN]), unknown="raise")
        with pytest.raises(ValueError, match="unknown='maybe' is not known"):
            model.predict(pairs, unknown="maybe")

    def test_unknown_user_gets_the_items_median(self, data):
        pairs, ratings = data
        low, high = min(self.scale), max(self.scale)
        extra = [(user, item) for user in range(100, 130) for item in (500, 501)]
        stars = [low if item == 500 else high for _, item in extra]
        model = self.make().fit([*map(tuple, pairs), *extra], [*ratings, *stars])
        np.testing.assert_array_equal(model.predict([(999, 500), (999, 501)]), [low, high])

    # --- kinds of input ------------------------------------------------------------------------

    def test_string_ids_give_the_same_model(self, model, data):
        pairs, ratings = data
        named = [(f"u{user:03d}", f"i{item:03d}") for user, item in pairs]
        other = self.fit_margins(named, ratings)
        expected = model.decision_function(pairs)
        np.testing.assert_array_equal(other.decision_function(named), expected)

    def test_frames_give_the_same_model(self, model, data):
        pairs, ratings = data
        columns = {"user": pairs[:, 0], "item": pairs[:, 1], "rating": ratings}
        whole, parts = pd.DataFrame(columns), pl.DataFrame(columns)
        one = self.fit_margins(whole)
        other = self.fit_margins(parts[["user", "item"]], parts["rating"])
        expected = model.decision_function(pairs)
        np.testing.assert_array_equal(one.decision_function(parts[["user", "item"]]), expected)
        np.testing.assert_array_equal(other.decision_function(whole), expected)
        np.testing.assert_array_equal(model.predict(parts), model.predict(pairs))

    def test_ratings_container_gives_the_same_model(self, model, data):
        margins = self.fit_margins(Ratings.of(*data)).decision_function(data[0])
        np.testing.assert_array_equal(margins, model.decision_function(data[0]))

    def test_read_only_arrays(self, model, data):
        pairs, ratings = (array.copy() for array in data)
        pairs.setflags(write=False)
        ratings.setflags(write=False)
        other = self.fit_margins(pairs, ratings)
        np.testing.assert_array_equal(
            other.decision_function(pairs), model.decision_function(pairs)
        )
        np.testing.assert_array_equal(model.predict(pairs), model.predict(pairs.copy()))

    def test_order_of_rows_does_not_matter(self, model, data):
        pairs, ratings = data
        order = np.random.default_rng(1).permutation(len(pairs))
        other = self.make().fit(pairs[order], ratings[order])
        np.testing.assert_array_equal(other.predict(pairs), model.predict(pairs))

    def test_users_with_one_rating_and_users_with_one_level(self, data):
        pairs, ratings = data
        extra = [(200, 0), (201, 0), (201, 1), (201, 2)]
        stars = [self.scale[0]] + [self.scale[-1]] * 3
        model = self.make().fit(np.vstack([pairs, extra]), np.append(ratings, stars))
        assert set(model.predict([(200, 5), (201, 5)])) <= set(np.asarray(self.scale, float))
        assert not np.isnan(model.decision_function([(200, 5), (201, 5)])).any()

    # --- reproducibility -----------------------------------------------------------------------

    def test_same_seed_same_answer_whatever_the_threads(self, model, data):
        pairs, _ = data
        other = self.make(n_jobs=2).fit(*data)
        np.testing.assert_array_equal(
            other.decision_function(pairs), model.decision_function(pairs)
        )

    def test_refit_forgets_what_was_learned(self, model, data):
        other = synthetic(self.scale, n_users=25, n_items=20, n=300, seed=7)
        again = model.fit(*other)
        assert again is model
        fresh = self.make().fit(*other)
        np.testing.assert_array_equal(model.predict(data[0]), fresh.predict(data[0]))

    def test_fit_does_not_change_parameters(self, data):
        model = self.make()
        before = dict(model.get_params())
        model.fit(*data)
        assert model.get_params() == before

    def test_a_checkpoint_changes_nothing_and_is_gone_after_the_fit(self, model, data, tmp_path):
        path = tmp_path / "checkpoint"
        other = self.make().fit(*data, checkpoint=path)
        assert_same_fit(other, model)
        assert vars(other).keys() == vars(model).keys()
        assert list(tmp_path.iterdir()) == []
        pickle.dumps(other)

    def test_clone_is_unfitted_and_equal(self, model, data):
        cloned = clone(model)
        assert cloned.get_params() == model.get_params()
        assert not hasattr(cloned, "levels_")
        np.testing.assert_array_equal(cloned.fit(*data).predict(data[0]), model.predict(data[0]))

    def test_pickle_round_trip(self, model, data):
        again = pickle.loads(pickle.dumps(model))
        pairs = np.vstack([data[0], self.UNKNOWN])
        np.testing.assert_array_equal(again.predict(pairs), model.predict(pairs))

    def test_a_saved_and_loaded_model_is_the_same_to_the_last_bit(self, model, data, tmp_path):
        path, again = tmp_path / "model.marginmf", tmp_path / "again.marginmf"
        model.save(path)
        loaded = marginmf.load(path)
        assert type(loaded) is type(model)
        assert repr(loaded) == repr(model)
        # By their names: estimators inside are equal to nothing but themselves.
        assert repr(loaded.get_params()) == repr(model.get_params())
        assert list(vars(loaded)) == [*vars(model), "_from_file"]
        pairs = np.vstack([data[0], self.UNKNOWN])
        folded, folded_loaded = model.fold_in(*data), loaded.fold_in(*data)
        for one, other in ((model, loaded), (folded, folded_loaded)):
            np.testing.assert_array_equal(other.predict(pairs), one.predict(pairs))
            margins, expected = other.decision_function(pairs), one.decision_function(pairs)
            assert margins.dtype == expected.dtype
            assert margins.tobytes() == expected.tobytes()
        np.testing.assert_array_equal(clone(loaded).fit(*data).predict(pairs), model.predict(pairs))
        loaded.save(again)
        assert again.read_bytes() == path.read_bytes()

    # --- scikit-learn --------------------------------------------------------------------------

    def test_grid_search_and_scorers(self, data):
        pairs, ratings = data
        grid = {self.parameter: [self.usual]}
        search = GridSearchCV(self.make(), grid, cv=2).fit(pairs, ratings)
        assert search.best_score_ <= 0
        assert search.best_params_[self.parameter] == self.usual
        best = search.best_estimator_
        error = get_scorer("neg_mean_absolute_error")(best, pairs, ratings)
        assert error == pytest.approx(search.score(pairs, ratings))

    # --- lists ---------------------------------------------------------------------------------

    def ranked_by(self, model, pairs, by):
        """Return what lists are ranked by, pair by pair, and what breaks ties."""
        margins = model.decision_function(pairs).reshape(len(pairs), -1).astype(float)
        ties = np.where(np.isfinite(margins), margins, 0.0).sum(axis=1)
        if by == "expected":
            return model.predict(pairs, output="mean"), ties
        values = model.ratings_.values
        liked = model.predict_proba(pairs)[:, model.levels_ > values.mean()].sum(axis=1)
        if by == "chance":
            return liked, ties
        exposure = model.fit_exposure()._exposure
        weights, shares = exposure.weights.matrix.toarray(), exposure.shares
        taken = []
        for user, item in pairs:
            has = model.ratings_.indices[model.ratings_.rows == model.users_.encode([user])[0]]
            score = weights[item, has].astype(float).sum()
            taken.append(max(score, 0) + 0.01 * shares[item] if len(has) else shares[item])
        return np.array(taken) * liked, ties

    def all_pairs(self, user):
        return np.column_stack([np.full(30, user), np.arange(30)])

    @pytest.mark.parametrize("by", ["relevance", "expected", "chance"])
    @pytest.mark.parametrize("exclude_seen", [True, False])
    def test_recommendations_are_the_best_of_all_pairs(self, model, data, exclude_seen, by):
        pairs, _ = data
        asked = {"n": 6, "exclude_seen": exclude_seen, "by": by, "unknown": "fallback"}
        best = model.recommend([4, 33, 10_000], **asked)
        for user in (4, 33, 10_000):
            scores, ties = self.ranked_by(model, self.all_pairs(user), by)
            order = np.lexsort((np.arange(30), -ties, -scores))
            if exclude_seen:
                order = order[~np.isin(order, pairs[pairs[:, 0] == user, 1])]
            of_user = best[best["user"] == user]
            assert of_user["item"].tolist() == order[:6].tolist()
            np.testing.assert_allclose(of_user["score"], scores[order[:6]], rtol=1e-12)
            np.testing.assert_array_equal(
                of_user["rating"], model.predict(of_user[["user", "item"]])
            )
            assert of_user["rank"].tolist() == [1, 2, 3, 4, 5, 6]
            if by == "relevance":
                product = of_user["take"] * of_user["like"]
                np.testing.assert_allclose(product, of_user["score"], rtol=1e-12)

    def test_recommendations_depend_on_nobody_else_and_not_on_threads(self, model):
        whole = model.recommend(n=5)
        pd.testing.assert_frame_equal(model.set_params(n_jobs=2).recommend(n=5), whole)
        for user in (0, 17):
            alone = model.recommend(user, n=5)
            of_user = whole[whole["user"] == user].reset_index(drop=True)
            pd.testing.assert_frame_equal(alone, of_user)

    def test_recommendations_survive_a_pickle(self, model):
        again = pickle.loads(pickle.dumps(model))
        pd.testing.assert_frame_equal(again.recommend(n=3), model.recommend(n=3))

    def test_recommendations_for_new_users(self, model, data):
        pairs, ratings = data
        mine = pairs[:, 0] == 4
        folded = model.fold_in(pairs[mine] + np.array([1000, 0]), ratings[mine])
        best = folded.recommend(n=30)
        assert set(best["user"]) == {1004}
        assert set(best["item"]) == set(range(30)) - set(pairs[mine, 1])

    # --- bad input -----------------------------------------------------------------------------

    def test_bad_data_gets_a_sentence(self, data):
        pairs, ratings = data
        ratings = ratings.copy()
        ratings[4] = np.nan
        with pytest.raises(ValueError, match="rating in row 4 is nan"):
            self.make().fit(pairs, ratings)
        with pytest.raises(ValueError, match="ratings are missing"):
            self.make().fit(pairs)

    def test_score_refuses_what_is_not_one_rating_a_pair(self, model, data):
        pairs, ratings = data
        with pytest.raises(ValueError, match="one column of numbers"):
            model.score(pairs, ratings[:, None])
        with pytest.raises(ValueError, match="two columns of one length"):
            model.score(pairs, ratings[:1])

    def test_frames_with_numbers_for_names(self, model, data):
        pairs, ratings = data
        frame = pd.DataFrame(pairs)
        other, expected = self.fit_margins(frame, ratings), model.decision_function(pairs)
        np.testing.assert_array_equal(other.decision_function(frame), expected)

    def test_a_fit_that_is_refused_leaves_the_model_as_it_was(self, model, data):
        before, wrong = model.predict(data[0]), {self.parameter: self.refused[0]}
        other = synthetic(self.scale, n_users=25, n_items=20, n=300, seed=7)
        with pytest.raises(ValueError, match=f"{self.parameter}={self.refused[0]}"):
            model.set_params(**wrong).fit(*other)
        np.testing.assert_array_equal(model.predict(data[0]), before)
        for method in self.NEW_ROW_METHODS:
            with pytest.raises(ValueError, match=f"{self.parameter}={self.refused[0]}"):
                getattr(model, method)(*data)
        np.testing.assert_array_equal(model.predict(data[0]), before)

    def test_a_bad_number_gets_a_sentence(self, data):
        for value in self.refused:
            with pytest.raises(ValueError, match=f"{self.parameter}=.* must be "):
                self.make(**{self.parameter: value}).fit(*data)

    def test_calibrate_is_a_flag(self, data):
        if "calibrate" in self.make().get_params():
            for value in ("no", None, 2):
                with pytest.raises(ValueError, match=f"calibrate={value!r} must be True or False"):
                    self.make(calibrate=value).fit(*data)

    def test_no_threads_and_no_verbosity_get_a_sentence(self, data):
        with pytest.raises(ValueError, match="n_jobs=0 must be a number of threads, -1 for all"):
            self.make(n_jobs=0).fit(*data)
        if "verbose" not in self.make().get_params():
            return
        for value in ("x", np.nan, None):
            with pytest.raises(ValueError, match=f"verbose={value!r} must be a whole number >= 0"):
                self.make(verbose=value).fit(*data)


class DescentContract(RatingsEstimatorContract):
    """What methods that lower an objective have on top: how it was learned."""

    def histories(self, model):
        return model.history_ if isinstance(model.history_[0], list) else [model.history_]

    def test_objective_never_rises(self, model):
        for history in self.histories(model):
            objective = [record.objective for record in history]
            assert all(np.diff(objective) <= 0)
            assert len(objective) > 2

    def test_history_and_counts_agree(self, model):
        histories = self.histories(model)
        assert np.sum(model.n_iter_) == sum(history[-1].iteration for history in histories)
        assert model.n_evaluations_ == sum(history[-1].n_evaluations for history in histories)
        assert model.stop_reason_
