"""Ratings set aside."""

import numpy as np
import pytest

from contracts import synthetic
from marginmf.ratings import HMF, MMMF, PMMMF, Ratings, validation
from marginmf.ratings.fitting.stages import Training
from marginmf.ratings.fitting.validation import ValidationSplit


@pytest.fixture(scope="module")
def data():
    return Ratings.of(*synthetic((1, 2, 3, 4, 5), n_users=60, n_items=50, n=1800))


@pytest.mark.parametrize(("enough", "n_parts"), [(100, 1), (500, 3), (1_000_000, 10)])
def test_tenths_are_set_aside_until_it_is_enough(data, monkeypatch, enough, n_parts):
    monkeypatch.setattr(validation, "ENOUGH", enough)
    parts = ValidationSplit.to_calibrate(data, np.random.default_rng(0))
    assert len(parts) == n_parts
    entries = np.concatenate([part.entries for part in parts])
    assert len(np.unique(entries)) == len(entries) >= min(enough, len(data)) - 10


def test_entries_say_where_the_ratings_are(data):
    held_out = ValidationSplit.at_random(data, np.random.default_rng(0))
    np.testing.assert_array_equal(data.rows[held_out.entries], held_out.users)
    np.testing.assert_array_equal(data.indices[held_out.entries], held_out.items)
    np.testing.assert_array_equal(data.codes[held_out.entries], held_out.codes)


def test_a_single_rating_can_be_set_aside():
    data = Ratings.of([("ann", "x")], [3], levels=[1, 3])
    (held_out,) = ValidationSplit.to_calibrate(data, np.random.default_rng(0))
    assert held_out.entries.tolist() == [0]


@pytest.mark.parametrize("model", [HMF, MMMF, PMMMF])
def test_the_model_that_is_calibrated_has_the_final_values(data, monkeypatch, model):
    seen, train = [], Training.train

    def recorded(self, regs, *args, **kwargs):
        settings = self.settings
        seen.append((list(regs), settings.n_factors, settings.stopping, len(self.data)))
        return train(self, regs, *args, **kwargs)

    monkeypatch.setattr(Training, "train", recorded)
    model(5, random_state=0).fit(data)
    *calibrated, final = seen
    assert len(calibrated) == 10
    assert final[3] == len(data) > max(n for *_, n in calibrated)
    assert all(values[:3] == final[:3] for values in calibrated)
