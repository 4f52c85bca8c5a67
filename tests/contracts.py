"""The contract of every ratings estimator.

Subclass `RatingsEstimatorContract` in a test module, define `make`, and the whole suite runs.
"""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from marginmf.ratings import Ratings
from newcomer_contracts import NewcomersContract


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


class RatingsEstimatorContract(NewcomersContract):
    """What a user may rely on, whichever estimator it is."""

    scale = (1, 2, 3, 4, 5)
    half_scale = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)

    def make(self, **params):
        """Return an unfitted estimator that is quick to fit and has a fixed seed."""
        raise NotImplementedError

    @pytest.fixture
    def data(self):
        return synthetic(self.scale)

    @pytest.fixture
    def model(self, data):
        return self.make().fit(*data)

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
        margins, predicted = margins.reshape(len(pairs), -1), model.predict(pairs)
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
        other = self.make().fit(named, ratings)
        np.testing.assert_array_equal(other.predict(named), model.predict(pairs))

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    def test_frames_give_the_same_model(self, model, data, frame):
        pairs, ratings = data
        table = frame({"user": pairs[:, 0], "item": pairs[:, 1], "rating": ratings})
        whole = self.make().fit(table)
        parts = self.make().fit(table[["user", "item"]], table["rating"])
        expected = model.predict(pairs)
        np.testing.assert_array_equal(whole.predict(table[["user", "item"]]), expected)
        np.testing.assert_array_equal(parts.predict(table), expected)

    def test_ratings_container_gives_the_same_model(self, model, data):
        other = self.make().fit(Ratings.of(*data))
        np.testing.assert_array_equal(other.predict(data[0]), model.predict(data[0]))

    def test_read_only_arrays(self, model, data):
        pairs, ratings = (array.copy() for array in data)
        pairs.setflags(write=False)
        ratings.setflags(write=False)
        np.testing.assert_array_equal(
            self.make().fit(pairs, ratings).predict(pairs), model.predict(pairs)
        )

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

    def test_same_seed_same_answer_whatever_the_threads(self, data):
        pairs, _ = data
        margins = [self.make(n_jobs=n).fit(*data).decision_function(pairs) for n in (1, 2, 1)]
        np.testing.assert_array_equal(margins[0], margins[1])
        np.testing.assert_array_equal(margins[0], margins[2])

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

    def test_clone_is_unfitted_and_equal(self, model, data):
        copy = clone(model)
        assert copy.get_params() == model.get_params()
        assert not hasattr(copy, "levels_")
        np.testing.assert_array_equal(copy.fit(*data).predict(data[0]), model.predict(data[0]))

    def test_pickle_round_trip(self, model, data):
        copy = pickle.loads(pickle.dumps(model))
        pairs = np.vstack([data[0], self.UNKNOWN])
        np.testing.assert_array_equal(copy.predict(pairs), model.predict(pairs))

    # --- how it was learned --------------------------------------------------------------------

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

    # --- scikit-learn --------------------------------------------------------------------------

    def test_cross_val_score_and_grid_search(self, data):
        pairs, ratings = data
        scores = cross_val_score(self.make(), pairs, ratings, cv=3)
        assert scores.shape == (3,)
        assert (scores <= 0).all()
        search = GridSearchCV(
            self.make(), {"reg": [0.5, 5.0]}, scoring="neg_mean_absolute_error", cv=2
        ).fit(pairs, ratings)
        assert search.best_params_["reg"] in (0.5, 5.0)
        assert search.predict(pairs).shape == ratings.shape

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
        other = self.make().fit(frame, ratings)
        np.testing.assert_array_equal(other.predict(frame), model.predict(pairs))

    def test_a_fit_that_is_refused_leaves_the_model_as_it_was(self, model, data):
        before = model.predict(data[0])
        other = synthetic(self.scale, n_users=25, n_items=20, n=300, seed=7)
        with pytest.raises(ValueError, match="reg=-1"):
            model.set_params(reg=-1).fit(*other)
        np.testing.assert_array_equal(model.predict(data[0]), before)
        for method in self.NEWCOMER_METHODS:
            with pytest.raises(ValueError, match="reg=-1"):
                getattr(model, method)(*data)
        np.testing.assert_array_equal(model.predict(data[0]), before)

    @pytest.mark.parametrize("reg", [-1.0, "strong", None])
    def test_bad_reg_gets_a_sentence(self, data, reg):
        with pytest.raises(ValueError, match=r"reg=.* must be a number"):
            self.make(reg=reg).fit(*data)
