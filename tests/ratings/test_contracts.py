"""Every ratings estimator keeps the contract."""

import re
from inspect import signature

import numpy as np
import pytest

from contracts import DescentContract, RatingsEstimatorContract, assert_same_fit, synthetic
from marginmf.losses import TWO_LEVEL
from marginmf.ratings import ALS, BMMMF, HMF, METHODS, MMMF, PMF, PMMMF, POSITIVE, BiasOnly
from marginmf.ratings.lists.explain import contributions
from new_row_contracts import NewRowsContract


class FactoriserContract(DescentContract):
    """What all estimators with factors and a history have on top."""

    def test_float32_is_close_to_float64(self, data):
        pairs, _ = data
        single, double = (
            self.make(dtype=dtype, max_iter=5, tol=0.0, calibrate=False).fit(*data)
            for dtype in ("float32", "float64")
        )
        assert single.user_factors_.dtype == np.float32
        assert double.user_factors_.dtype == np.float64
        np.testing.assert_allclose(
            single.decision_function(pairs), double.decision_function(pairs), rtol=0.02, atol=0.02
        )

    def test_factors_have_a_row_for_each_id(self, model, data):
        pairs, _ = data
        assert model.user_factors_.shape[-2:] == (len(np.unique(pairs[:, 0])), model.n_factors)
        assert model.item_factors_.shape[-2:] == (len(np.unique(pairs[:, 1])), model.n_factors)

    @pytest.mark.parametrize("side", ["item", "user"])
    def test_similarity_is_the_cosine_of_the_factors(self, model, side):
        factors = np.asarray(getattr(model, f"{side}_factors_"), float)
        factors = np.moveaxis(factors.reshape(-1, *factors.shape[-2:]), 0, 1)
        factors = factors.reshape(len(factors), -1)
        factors /= np.linalg.norm(factors, axis=1, keepdims=True)
        similar = getattr(model, f"similar_{side}s")([3, 8], n=6)
        for code in (3, 8):
            cosines = factors @ factors[code]
            cosines[code] = -2.0
            order = np.argsort(-cosines)[:6]
            rows = similar[similar[side] == code]
            assert rows["similar"].tolist() == order.tolist()
            np.testing.assert_allclose(rows["similarity"], cosines[order], atol=1e-6)

    def test_contributions_and_their_remainder_are_the_score(self, model):
        U, V = (np.asarray(f, float) for f in (model.user_factors_, model.item_factors_))
        U, V = (f.reshape(-1, *f.shape[-2:]) for f in (U, V))
        parts = contributions(model, 4, 9)
        score = (U[:, 4] * V[:, 9]).sum() / len(U)
        assert parts.contributions.sum() + parts.remainder == pytest.approx(score)
        # What stopping early has left over is small beside what the ratings say.
        assert abs(parts.remainder) < 0.1 * np.abs(parts.contributions).sum()
        shown = model.explain(4, 9, n=1000)["contribution"]
        assert shown.sum() == pytest.approx(parts.contributions.sum())

    def test_callbacks_can_stop(self, data):
        model = self.make(callbacks=[lambda progress: progress.record.iteration == 1]).fit(*data)
        assert np.max(model.n_iter_) == 1
        assert "callback" in str(model.stop_reason_)

    def test_a_fit_that_is_interrupted_leaves_the_model_as_it_was(self, model, data):
        def interrupt(progress):
            raise KeyboardInterrupt

        before = model.predict(data[0])
        other = synthetic(self.scale, n_users=25, n_items=20, n=300, seed=7)
        with pytest.raises(KeyboardInterrupt):
            model.set_params(callbacks=[interrupt]).fit(*other)
        np.testing.assert_array_equal(model.predict(data[0]), before)
        # Callbacks watch fits, not new users who are folded in.
        model.fold_in(*data)

    @pytest.mark.parametrize("iterations", [1, 11])
    def test_a_fit_that_is_interrupted_resumes_to_the_same_answer(
        self, model, data, iterations, tmp_path
    ):
        def interrupt(progress):
            if progress.record.iteration == iterations:
                raise KeyboardInterrupt

        path = tmp_path / "checkpoint"
        with pytest.raises(KeyboardInterrupt):
            self.make(callbacks=[interrupt]).fit(*data, checkpoint=path)
        assert len(list(path.iterdir())) > 1
        assert_same_fit(self.make().fit(*data, checkpoint=path), model)
        assert list(tmp_path.iterdir()) == []

    def test_fold_in_keeps_to_the_rank_that_was_learned(self, model, data):
        expected = model.fold_in(*data).predict(data[0])
        changed = model.set_params(n_factors=50).fold_in(*data)
        np.testing.assert_array_equal(changed.predict(data[0]), expected)

    def test_verbose_shows_one_bar_on_standard_error(self, data, capsys):
        self.make(verbose=1).fit(*data)
        out, err = capsys.readouterr()
        assert out == ""
        assert type(self.make()).__name__ in err
        assert "objective" in err

    @pytest.mark.parametrize(
        ("params", "sentence"),
        [
            ({"n_factors": 0}, "n_factors=0 must be a whole number >= 1"),
            ({"n_factors": 2.5}, r"n_factors=2\.5 must be a whole number"),
            ({"max_iter": 0}, "max_iter=0 must be a whole number >= 1"),
            ({"tol": -1.0}, r"tol=-1\.0 must be a number >= 0"),
            ({"dtype": "int8"}, "dtype='int8' is not known"),
            ({"random_state": "dice"}, "random_state='dice' cannot seed"),
            ({"n_jobs": "2"}, "n_jobs='2' must be a whole number"),
            ({"callbacks": None}, "callbacks=None must be a list of functions"),
            ({"reg": float("inf")}, "reg=inf must be"),
        ],
    )
    def test_bad_parameters_get_a_sentence(self, data, params, sentence):
        with pytest.raises(ValueError, match=sentence):
            self.make(**params).fit(*data)


class MarginContract(FactoriserContract):
    """What all max-margin factorisers have on top."""

    @pytest.mark.parametrize(
        ("loss", "solver"),
        [
            *((name, "lbfgs") for name, loss in TWO_LEVEL.items() if loss.convex),
            ("smooth_hinge", "cg"),
            ("hinge", "gd"),
        ],
    )
    def test_every_loss_and_every_solver(self, data, loss, solver):
        pairs, ratings = data
        params = {"loss": loss, "solver": solver, "max_iter": 30, "calibrate": False}
        predicted = self.make(**params).fit(pairs, ratings).predict(pairs, output="rule")
        chance = np.abs(np.median(ratings) - ratings).mean()
        assert np.abs(predicted - ratings).mean() < 0.8 * chance

    def test_unknown_loss_or_solver_gets_a_sentence(self, data):
        with pytest.raises(ValueError, match="loss='zero_one' cannot be minimised"):
            self.make(loss="zero_one").fit(*data)
        with pytest.raises(ValueError, match="solver='magic' is not known"):
            self.make(solver="magic").fit(*data)


def defaults(params):
    return {"n_factors": 4, "reg": 0.5, "random_state": 0, **params}


class TestBMMMF(MarginContract):
    scale = (0, 1)

    def make(self, **params):
        return BMMMF(**defaults(params))

    def test_more_than_two_levels_is_an_error(self):
        with pytest.raises(ValueError, match=r"BMMMF tells two levels apart.*have 5"):
            self.make().fit(*synthetic((1, 2, 3, 4, 5)))

    def test_threshold_moves_the_decision(self, data):
        pairs, _ = data
        shares = [
            self.make(threshold=t, calibrate=False).fit(*data).predict(pairs, output="rule").mean()
            for t in (-1, 0, 1)
        ]
        assert shares[0] > shares[1] > shares[2]


class TestMMMF(MarginContract):
    def make(self, **params):
        return MMMF(**defaults(params))

    def test_unknown_threshold_gets_a_sentence(self, data):
        with pytest.raises(ValueError, match="threshold='some' is not known"):
            self.make(threshold="some").fit(*data)

    def test_two_levels_are_a_scale_too(self):
        pairs, ratings = synthetic((0, 1))
        assert self.make().fit(pairs, ratings).score(pairs, ratings) > -0.2


class Variant(NewRowsContract):
    """Another setting of an estimator: what depends on it, beside what new rows are like."""

    scale, UNKNOWN = (1, 2, 3, 4, 5), RatingsEstimatorContract.UNKNOWN
    histories = DescentContract.histories
    test_objective_never_rises = DescentContract.test_objective_never_rises
    test_same_seed = RatingsEstimatorContract.test_same_seed_same_answer_whatever_the_threads
    test_saved = RatingsEstimatorContract.test_a_saved_and_loaded_model_is_the_same_to_the_last_bit

    data = RatingsEstimatorContract.data
    fitted = RatingsEstimatorContract.fitted
    model = RatingsEstimatorContract.model


class TestMMMFImmediate(Variant):
    test_every_loss = MarginContract.test_every_loss_and_every_solver

    def make(self, **params):
        return MMMF(threshold="immediate", **defaults(params))


class TestPMMMF(MarginContract):
    def make(self, **params):
        return PMMMF(**defaults(params))


class HMFContract(MarginContract):
    def test_one_reg_for_each_stage(self, data):
        model = self.make(reg=[0.5, 1.0, 1.0, 0.5]).fit(*data)
        assert model.user_factors_.shape[0] == 4

    @pytest.mark.parametrize(
        ("reg", "sentence"),
        [
            ([1.0, 2.0], "has 2 values, but the 5 levels of these ratings make 4 stages"),
            ([1, 1, 1, -1], "must hold numbers >= 0"),
        ],
    )
    def test_wrong_regs_get_a_sentence(self, data, reg, sentence):
        with pytest.raises(ValueError, match=sentence):
            self.make(reg=reg).fit(*data)

    def test_unknown_schedule_gets_a_sentence(self, data):
        with pytest.raises(ValueError, match="schedule='lazy' is not known"):
            self.make().set_params(schedule="lazy").fit(*data)


class TestHMFWarm(HMFContract):
    def make(self, **params):
        return HMF(**defaults(params))


class TestHMFIndependent(HMFContract):
    def make(self, **params):
        return HMF(schedule="independent", **defaults(params))


class TestPMF(FactoriserContract):
    def make(self, **params):
        return PMF(**defaults(params))


class TestALS(FactoriserContract):
    def make(self, **params):
        return ALS(**defaults(params))

    def test_zero_reg_gets_a_sentence(self, data):
        with pytest.raises(ValueError, match="give a positive reg"):
            self.make(reg=0).fit(*data)


class TestALSWithBiases(Variant):
    def make(self, **params):
        return ALS(bias=True, **defaults(params))


class TestMMMFFromRaters(Variant):
    built_from_raters = True

    def make(self, **params):
        return MMMF(implicit="both", **defaults(params))


class TestHMFFromRaters(Variant):
    built_from_raters = True

    def make(self, **params):
        return HMF(implicit="items", reg_implicit=2.0, **defaults(params))


class TestALSFromRaters(Variant):
    built_from_raters = True

    def make(self, **params):
        return ALS(implicit="both", bias=True, **defaults(params))


class TestBiasOnly(DescentContract):
    def make(self, **params):
        return BiasOnly(**params)


@pytest.mark.parametrize("method", [*METHODS.values(), *POSITIVE.values()])
def test_every_parameter_is_described_in_the_order_of_the_constructor(method):
    section = re.search(r"^Parameters\n-+\n(.*?)\n\n\w", method.__doc__, re.S | re.M)[1]
    described = [names.split(" :")[0].split(", ") for names in re.findall(r"^\w.*$", section, re.M)]
    assert [name for names in described for name in names] == list(signature(method).parameters)
