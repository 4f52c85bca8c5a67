"""The contract of methods that predict from samples, on top of that of every ratings estimator."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import marginmf
from contracts import RatingsEstimatorContract, assert_same_fit, synthetic

KILLED = """
import os, signal, sys
sys.path[:0] = sys.argv[1].split(os.pathsep)
from contracts import synthetic
from marginmf.checkpoints import Checkpoint
from {module} import {contract}

def kill(progress):
    if progress.record.iteration == 9:
        os.kill(os.getpid(), signal.SIGKILL)

model = {contract}().make(callbacks=[kill])
model.fit(*synthetic({contract}.scale), checkpoint=Checkpoint(sys.argv[2], seconds=0))
"""


class SampledContract(RatingsEstimatorContract):
    """What a user may rely on, whichever sampler it is."""

    def test_there_are_as_many_samples_as_were_asked_for(self, model):
        assert model.user_factors_.shape[0] == model.item_factors_.shape[0] == model.n_samples
        assert model.n_iter_ == model.n_burn + model.n_samples * model.thin == model.n_evaluations_
        assert len(model.history_) == model.n_iter_ + 1

    @pytest.mark.parametrize("sweep", [1, 9])
    def test_an_interrupted_chain_resumes_to_the_same_samples(self, model, data, sweep, tmp_path):
        def interrupt(progress):
            if progress.record.iteration == sweep:
                raise KeyboardInterrupt

        path, seen = tmp_path / "checkpoint", []
        with pytest.raises(KeyboardInterrupt):
            self.make(callbacks=[interrupt]).fit(*data, checkpoint=path)
        resumed = self.make(callbacks=[seen.append]).fit(*data, checkpoint=path)
        assert_same_fit(resumed, model)
        assert seen[0].record.iteration == sweep
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot kill -9")
    def test_a_killed_chain_resumes_to_the_same_samples(self, model, data, tmp_path):
        path, tests = tmp_path / "checkpoint", Path(sys.modules[type(self).__module__].__file__)
        script = KILLED.format(module=tests.stem, contract=type(self).__name__)
        folders = os.pathsep.join([str(Path(__file__).parent), str(tests.parent)])
        command = [sys.executable, "-c", script, folders, str(path)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        assert_same_fit(self.make().fit(*data, checkpoint=path), model)
        assert not path.exists()

    def test_a_stopped_chain_gets_a_sentence(self, data):
        with pytest.raises(ValueError, match=r"stopped after 3 of .* sweeps, so there are no"):
            self.make(callbacks=[lambda progress: progress.record.iteration == 3]).fit(*data)

    def test_a_stopped_chain_goes_on_from_its_checkpoint(self, model, data, tmp_path):
        path, seen = tmp_path / "checkpoint", []
        for _ in range(2):
            with pytest.raises(ValueError, match="stopped after 9 of"):
                self.make(callbacks=[lambda progress: progress.record.iteration == 9]).fit(
                    *data, checkpoint=path
                )
        assert_same_fit(self.make(callbacks=[seen.append]).fit(*data, checkpoint=path), model)
        assert seen[0].record.iteration == 9
        assert not path.exists()

    def test_a_chain_may_be_stopped_after_its_last_sweep(self, model, data):
        def stop(progress):
            return progress.record.iteration == progress.max_iter

        stopped = self.make(callbacks=[stop]).fit(*data)
        np.testing.assert_array_equal(stopped.user_factors_, model.user_factors_)
        assert stopped.stop_reason_ == "a callback asked to stop"

    def test_another_seed_gives_other_samples_and_nearly_the_same_answers(self, model, data):
        other = self.make(random_state=1).fit(*data)
        assert not np.array_equal(other.user_factors_, model.user_factors_)
        means = (one.predict(data[0], output="mean") for one in (model, other))
        assert np.abs(np.subtract(*means)).mean() < 0.1 * np.ptp(self.scale)

    def test_credible_intervals_hold_the_mean_and_widen_with_their_level(self, model, data):
        pairs, _ = data
        wide, narrow = (model.credible_interval(pairs, level) for level in (0.9, 0.5))
        assert wide.shape == (len(pairs), 2)
        assert (wide[:, 0] <= narrow[:, 0]).all()
        assert (narrow[:, 1] <= wide[:, 1]).all()
        assert (wide[:, 0] < wide[:, 1]).mean() > 0.9
        assert (wide >= min(self.scale)).all()
        assert (wide <= max(self.scale)).all()

    def test_credible_intervals_are_narrower_where_more_is_known(self, model, data):
        pairs, ratings = data
        few, many = (np.flatnonzero(pairs[:, 0] == 4)[:n] for n in (2, 100))
        widths = []
        for rows in (few, many):
            folded = model.fold_in(pairs[rows], ratings[rows])
            unseen = np.column_stack([np.full(30, 4), np.arange(30)])
            widths.append(np.diff(folded.credible_interval(unseen), axis=1).mean())
        assert widths[1] < widths[0]

    def test_credible_intervals_of_unknown_ids_and_bad_levels(self, model, data):
        pairs = np.vstack([data[0][:2], self.UNKNOWN])
        interval = model.credible_interval(pairs)
        np.testing.assert_array_equal(np.isnan(interval).all(axis=1), [0, 0, 1, 1, 1])
        with pytest.raises(ValueError, match="3 of 5 pairs have a user or an item"):
            model.credible_interval(pairs, unknown="raise")
        for level in (0, 1, 90, "0.9", None):
            with pytest.raises(
                ValueError, match=f"level={level!r} must be a number between 0 and 1"
            ):
                model.credible_interval(pairs, level)

    def test_one_sample_has_no_credible_interval(self, data):
        single = self.make(n_samples=1).fit(*data)
        with pytest.raises(ValueError, match="There is one sample, so no interval"):
            single.credible_interval(data[0])

    def test_credible_intervals_are_the_same_after_loading(self, model, data, tmp_path):
        model.save(tmp_path / "model.marginmf")
        again = marginmf.load(tmp_path / "model.marginmf")
        expected = model.credible_interval(data[0])
        np.testing.assert_array_equal(again.credible_interval(data[0]), expected)

    def test_degenerate_ratings_give_finite_answers(self):
        pairs, ratings = synthetic(self.scale, n_users=12, n_items=8, n=60)
        # A user with one level only, a user and an item with one rating.
        extra = [(90, 0), (90, 1), (90, 2), (91, 3), (0, 50)]
        stars = [self.scale[-1]] * 3 + [self.scale[0]] * 2
        model = self.make().fit([*map(tuple, pairs), *extra], [*ratings, *stars])
        everyone = [(user, item) for user in (0, 90, 91) for item in (0, 3, 50)]
        assert np.isfinite(model.predict_proba(everyone)).all()
        assert np.isfinite(model.credible_interval(everyone)).all()

    @pytest.mark.parametrize(
        ("params", "sentence"),
        [
            ({"n_burn": -1}, "n_burn=-1 must be a whole number >= 0"),
            ({"n_samples": 0}, "n_samples=0 must be a whole number >= 1"),
            ({"thin": 0}, "thin=0 must be a whole number >= 1"),
            ({"random_state": "dice"}, "random_state='dice' cannot seed"),
            ({"callbacks": None}, "callbacks=None must be a list of functions"),
        ],
    )
    def test_bad_settings_of_the_chain_get_a_sentence(self, data, params, sentence):
        with pytest.raises(ValueError, match=sentence):
            self.make(**params).fit(*data)

    def test_verbose_shows_one_bar_on_standard_error(self, data, capsys):
        self.make(verbose=1).fit(*data)
        out, err = capsys.readouterr()
        assert out == ""
        assert f"{type(self.make()).__name__}" in err
