import pytest

from marginmf.cli.models import known_models, make_model, make_models
from marginmf.cli.options import METHODS, ModelOptions
from marginmf.ratings import ALS, BiasOnly


def test_every_method_of_the_library_has_a_name() -> None:
    assert set(known_models()) == set(METHODS)  # those that --help lists


def test_options_that_were_not_given_leave_the_defaults() -> None:
    model = make_model("als", ModelOptions())
    assert (model.n_factors, model.reg, model.max_iter) == (ALS.n_factors, ALS.reg, ALS.max_iter)
    assert (model.random_state, model.n_jobs) == (0, -1)


def test_options_reach_their_parameters() -> None:
    given = ModelOptions(7, "6,10", 9, ["loss=logistic", "tol=0.1"], seed=3, threads=2)
    model = make_model("hmf", given, progress=True)
    assert (model.n_factors, model.reg, model.max_iter) == (7, [6, 10], 9)
    assert (model.loss, model.tol, model.random_state, model.n_jobs) == ("logistic", 0.1, 3, 2)
    assert model.verbose == 1


def test_a_method_gets_those_of_the_options_that_it_has() -> None:
    models = make_models(["bias", "mmmf"], ModelOptions(factors=7, reg="2"))
    assert models["mmmf"].n_factors == 7
    assert models["bias"].reg == models["mmmf"].reg == 2


def test_a_setting_may_be_for_one_method_only() -> None:
    models = make_models(["als", "pmf"], ModelOptions(settings=["als.bias=true", "reg=4"]))
    assert (models["als"].bias, models["pmf"].bias) == (True, False)
    assert models["als"].reg == models["pmf"].reg == 4


def test_a_setting_wins_over_the_option() -> None:
    given = ModelOptions(factors=7, settings=["n_factors=8", "random_state=5"], seed=1)
    model = make_model("hmf", given)
    assert (model.n_factors, model.random_state) == (8, 5)


def test_the_short_name_of_a_long_class() -> None:
    assert isinstance(make_model("bias", ModelOptions()), BiasOnly)


@pytest.mark.parametrize(
    ("names", "options", "said"),
    [
        (["hfm"], {}, "There is no model 'hfm'; .* Did you mean hmf?"),
        (["als", "als"], {}, "named twice"),
        (["bias"], {"factors": 3}, "--factors: bias has no parameter 'n_factors'; there are"),
        (["hmf"], {"reg": "much"}, "'much' is not a number >= 0"),
        (["hmf"], {"reg": "1,,2"}, "'' is not a number >= 0"),
        (["hmf"], {"reg": "nan"}, "'nan' is not a number >= 0"),
        (["hmf"], {"settings": ["loss"]}, "write it as name=value"),
        (["hmf"], {"settings": ["=3"]}, "write it as name=value"),
        (["hmf"], {"settings": [".loss=3"]}, "write it as name=value"),
        (["hmf"], {"settings": ["lost=3"]}, "--set lost: hmf has no parameter 'lost'; there are"),
        (["hmf", "als"], {"settings": ["pmf.reg=3"]}, "pmf is not one of the models here"),
    ],
)
def test_what_cannot_be_made_is_a_sentence(names, options, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make_models(names, ModelOptions(**options))
