"""The part of the contract that is about users, items and ratings that come after training."""

from copy import deepcopy

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from marginmf.ratings import Ratings


class NewRowsContract:
    """What a user may rely on when new users and items are taken in; see `contracts`."""

    scale: tuple[float, ...]
    #: Whether rows are expected to be like those of others with the same raters.
    built_from_raters = False
    NEW_ROW_METHODS = ("fold_in", "fold_in_items", "update_users", "update_items")

    # --- new users -----------------------------------------------------------------------------

    def test_fold_in_learns_new_users_and_leaves_the_model_alone(self, model, data):
        pairs, ratings = data
        before = model.predict(pairs)
        moved = pairs + np.array([1000, 0])
        folded = model.fold_in(moved, ratings)
        np.testing.assert_array_equal(model.predict(pairs), before)
        # The same ratings under new names lead to nearly the same predictions.
        assert np.abs(folded.predict(moved) - before).mean() < 0.15 * np.ptp(self.scale)
        assert folded.items_ is model.items_

    def test_fold_in_leaves_unknown_items_out_and_refuses_unknown_levels(self, model, data):
        pairs, ratings = data
        alone = model.fold_in(pairs[:20], ratings[:20])
        more = np.vstack([pairs[:20], [[pairs[0, 0], 77_777]]]), np.append(ratings[:20], ratings[0])
        with pytest.warns(UserWarning, match=r"1 of 21 ratings are of unknown items .*: 77777\.$"):
            with_new = model.fold_in(*more)
        np.testing.assert_array_equal(alone.predict(pairs[:20]), with_new.predict(pairs[:20]))
        with pytest.raises(ValueError, match="not on the scale"):
            model.fold_in([(0, 0)], [99.0])

    def test_new_user_with_unknown_items_only_stays_unknown(self, model, data):
        pairs, ratings = data
        items, unknown_item = np.unique(pairs[:5, 1]), 77_777
        of = lambda user: [(user, item) for item in items]  # noqa: E731
        expected = model.predict(of(99_999))
        with pytest.warns(UserWarning, match="1 of 2 users have no others, and stay unknown"):
            mixed = model.fold_in([(500, unknown_item), *of(501)], ratings[: len(items) + 1])
        np.testing.assert_array_equal(mixed.predict(of(500)), expected)

    def test_ratings_of_unknown_items_alone_are_refused(self, model, data):
        before = dict(vars(model))
        for learn in (model.fold_in, model.update_users):
            with pytest.raises(ValueError, match=r"all of unknown items.*: 77777\. Take them in"):
                learn([(500, 77_777)], data[1][:1])
        for learn in (model.fold_in_items, model.update_items):
            with pytest.raises(ValueError, match=r"all by unknown users.*: 77777\. Take them in"):
                learn([(77_777, 500)], data[1][:1])
        assert vars(model) == before

    def test_a_new_user_does_not_depend_on_the_other_new_users(self, model, data):
        pairs, ratings = data
        together = model.fold_in(pairs, ratings)
        for user in np.unique(pairs[:, 0])[:4]:
            mine = pairs[:, 0] == user
            alone = model.fold_in(pairs[mine], ratings[mine])
            np.testing.assert_allclose(
                alone.decision_function(pairs[mine]),
                together.decision_function(pairs[mine]),
                atol=1e-5,
            )

    def test_new_rows_do_not_depend_on_the_threads(self, model, data):
        pairs, ratings = data
        for fold in ("fold_in", "fold_in_items"):
            margins = [
                getattr(model.set_params(n_jobs=n), fold)(pairs, ratings).decision_function(pairs)
                for n in (1, 2)
            ]
            np.testing.assert_array_equal(*margins)

    # --- new items -----------------------------------------------------------------------------

    def test_fold_in_items_learns_new_items_and_leaves_the_model_alone(self, model, data):
        pairs, ratings = data
        before = model.predict(pairs)
        moved = pairs + np.array([0, 1000])
        folded = model.fold_in_items(moved, ratings)
        np.testing.assert_array_equal(model.predict(pairs), before)
        assert np.abs(folded.predict(moved) - before).mean() < 0.2 * np.ptp(self.scale)
        assert folded.users_ is model.users_
        # The new items are items like any others: users are folded in by them.
        moved += np.array([1000, 0])
        error = np.abs(folded.fold_in(moved, ratings).predict(moved) - ratings).mean()
        assert error < 0.3 * np.ptp(self.scale)

    def test_a_new_item_does_not_depend_on_the_other_new_items(self, model, data):
        pairs, ratings = data
        together = model.fold_in_items(pairs, ratings)
        for item in np.unique(pairs[:, 1])[:4]:
            mine = pairs[:, 1] == item
            alone = model.fold_in_items(pairs[mine], ratings[mine])
            np.testing.assert_allclose(
                alone.decision_function(pairs[mine]),
                together.decision_function(pairs[mine]),
                atol=1e-5,
            )

    def test_new_item_with_unknown_users_only_stays_unknown(self, model, data):
        pairs, ratings = data
        users = np.unique(pairs[:5, 0])
        of = lambda item: [(user, item) for user in users]  # noqa: E731
        expected = model.predict(of(99_999))
        with pytest.warns(UserWarning, match=r"by unknown users and left out: 77777\. 1 of 2"):
            folded = model.fold_in_items([(77_777, 500), *of(501)], ratings[: len(users) + 1])
        np.testing.assert_array_equal(folded.predict(of(500)), expected)
        assert folded.items_.ids.tolist() == [501]
        assert len(folded.ratings_) == len(users)

    def own_margins(self, model, pairs):
        """Return what depends on nothing but the rows of a pair's own user and item."""
        return model.decision_function(pairs)

    # --- new ratings ---------------------------------------------------------------------------

    @pytest.mark.parametrize("side", ["user", "item"])
    def test_update_learns_the_rows_of_new_ratings_and_leaves_the_others(self, model, data, side):
        pairs, ratings = data
        low, high = min(self.scale), max(self.scale)
        axis = 0 if side == "user" else 1
        known, new = pairs[0, axis], 1000
        others = np.unique(pairs[:, 1 - axis])[:6]
        old_partner = pairs[0, 1 - axis]
        rated = {(known, old_partner): low, (known, others[-1]): high, (new, others[0]): high}
        rated |= {(new, other): low for other in others[1:]}
        if side == "item":
            rated = {(partner, owner): stars for (owner, partner), stars in rated.items()}
        before, earlier = self.own_margins(model, pairs), deepcopy(model)
        update = model.update_users if side == "user" else model.update_items
        assert update(list(rated), list(rated.values())) is model

        # Everyone else is as before, to the last bit.
        rest = pairs[:, axis] != known
        np.testing.assert_array_equal(self.own_margins(model, pairs[rest]), before[rest])
        # The ratings are the old ones with the new ones in them.
        whole = {**dict(zip(map(tuple, pairs), ratings, strict=True)), **rated}
        expected = Ratings.of(list(whole), list(whole.values()))
        np.testing.assert_array_equal(model.ratings_.values, expected.values)
        np.testing.assert_array_equal(model.users_.ids, expected.users.ids)
        np.testing.assert_array_equal(model.items_.ids, expected.items.ids)
        # The rows are those that all of their ratings lead to.
        mine = [pair for pair in whole if pair[axis] in (known, new)]
        fold, stars = "fold_in" if side == "user" else "fold_in_items", [whole[p] for p in mine]
        expected = self.own_margins(getattr(earlier, fold)(mine, stars), mine)
        np.testing.assert_allclose(self.own_margins(model, mine), expected, atol=1e-5)
        if not self.built_from_raters:  # else the new rows say what to expect of such rows, too
            again = getattr(model, fold)(mine, stars)
            # What was new is known by now, and may be taken for less unusual than at first.
            old = [pair for pair in mine if pair[axis] == known]
            np.testing.assert_allclose(
                again.decision_function(old), model.decision_function(old), atol=1e-5
            )

    def test_update_leaves_out_what_it_cannot_use(self, model, data):
        pairs, ratings = data
        given = [tuple(pairs[0]), (88_888, 77_777)]
        for update in (model.update_users, model.update_items):
            with pytest.warns(UserWarning, match="1 of 2 ratings are .* unknown .* and left out"):
                update(given, ratings[:2])
        assert len(model.ratings_) == len(ratings)
        assert model.users_.encode([88_888])[0] == model.items_.encode([77_777])[0] == -1

    @pytest.mark.parametrize(
        ("pairs", "ratings", "sentence"),
        [
            ([(0, 0)], [99.0], "rating 99 in row 0 is not on the scale"),
            ([(0, 0)], [np.nan], "rating in row 0 is nan"),
            ([(0, 0), (0, 0)], [1, 1], "occur more than once"),
            ([], [], "no ratings at all"),
            ([(0, 0)], None, "ratings are missing"),
            ([(0, 0)], [1, 1], "1 pairs but 2 ratings"),
            ([(None, 0)], [1], "user id in row 0 is missing"),
            ([(0, 0, 0)], [1], "not a .user, item. pair"),
        ],
    )
    def test_faulty_new_ratings_get_a_sentence_and_change_nothing(
        self, model, data, pairs, ratings, sentence
    ):
        before = model.decision_function(data[0])
        for method in self.NEW_ROW_METHODS:
            with pytest.raises(ValueError, match=sentence):
                getattr(model, method)(pairs, ratings)
        np.testing.assert_array_equal(model.decision_function(data[0]), before)
        assert len(model.ratings_) == len(data[1])

    def test_new_users_before_fit_are_an_error(self):
        for method in self.NEW_ROW_METHODS:
            with pytest.raises(NotFittedError):
                getattr(self.make(), method)([(0, 0)], [1])
