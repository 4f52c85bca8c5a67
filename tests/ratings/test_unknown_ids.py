"""Ids that a model does not know: what messages advise, and lists for unknown users."""

import warnings

import numpy as np
import pytest

from marginmf._utils.ids import as_objects
from marginmf.ratings import EASE, MMMF, BiasOnly, MostPopular, ids
from marginmf.ratings.ids import IdIndex

NAMES = ["anna", "annie", "bob", "carol"]
PAIRS = [(user, item) for user in NAMES for item in ("alien", "brazil", "casablanca")][:-1]
STARS = [1 + (3 * k) % 5 for k in range(len(PAIRS))]


@pytest.fixture(scope="module")
def model():
    return MMMF(2, 1.0, random_state=0).fit(PAIRS, STARS)


# --- advice --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "asked", "advice"),
    [
        (NAMES, "ann", "Did you mean 'anna' or 'annie'?"),
        (NAMES, "zebra", "The model's users are such as 'anna'."),
        (["7", "8"], 7, "Did you mean the text '7'?"),
        (["7", "8"], 9, "The model's users are such as '7'."),
        ([7, 42], "42", "Did you mean the number 42?"),
        ([7, 42], "007", "Did you mean the number 7?"),
        ([7, 42], 43, "The model's users are numbers from 7 to 42."),
        ([7, 42], "9" * 30, "The model's users are numbers from 7 to 42."),
        ([7, 42], "nan", "The model's users are numbers from 7 to 42."),
        (as_objects([("a", 1), "b"]), ("a", 2), "Did you mean ('a', 1)?"),
        ([], "ann", "The model knows no users at all."),
    ],
)
def test_advice_on_an_unknown_id(known, asked, advice):
    assert IdIndex(known, "user").hint(asked) == advice


def test_close_ids_among_many_share_the_first_letter(monkeypatch):
    monkeypatch.setattr(ids, "MANY", 2)
    index = IdIndex(["zanna", "bob", "anna", "cy"], "user")
    assert index.hint("ana") == "Did you mean 'anna'?"


def test_only_the_first_unknown_ids_are_named():
    index = IdIndex(NAMES, "user")
    listed = index.name_unknown(as_objects(["dan", "eve", "bobb", "fay", "gus"]))
    assert listed == "'dan', 'eve', 'bobb' (did you mean 'bob'?) and 2 more"


def test_errors_for_unknown_ids_come_with_advice(model):
    with pytest.raises(ValueError, match=r"The item 'alein' was not seen .* mean 'alien'\?"):
        model.similar_items("alein")
    with pytest.raises(ValueError, match=r"The user 'bobo' was not seen .* mean 'bob'\?"):
        model.explain("bobo", "alien")
    with pytest.raises(ValueError, match=r"1 of 2 candidates .* 'brasil'\. Did you mean 'brazil'"):
        model.recommend("bob", candidates=["alien", "brasil"])
    with pytest.raises(ValueError, match=r"item 'alein' in row 1\. Did you mean 'alien'\?"):
        model.predict([("bob", "alien"), ("bob", "alein")], unknown="raise")
    with pytest.raises(ValueError, match=r"1 of 2 users .* 'ann'\. Did you mean 'anna' or 'annie"):
        model.recommend(["bob", "ann"], unknown="raise")


def test_an_id_of_another_type_is_one_message(model):
    numbers = BiasOnly().fit([(1, 7), (1, 8), (2, 7)], [1, 2, 2])
    with pytest.raises(ValueError, match=r"user '1' in row 0\. Did you mean the number 1\?"):
        numbers.predict([("1", 7)], unknown="raise")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        numbers.recommend("1")
    assert len(caught) == 1
    assert "'1' (did you mean the number 1?)" in str(caught[0].message)


# --- lists for unknown users ---------------------------------------------------------------------


@pytest.mark.parametrize("make", [MMMF, BiasOnly, EASE, MostPopular])
def test_one_warning_tells_of_all_unknown_users(make):
    settings = {"n_factors": 2, "reg": 1.0} if make is MMMF else {}
    model = make(**settings).fit(PAIRS, STARS)
    with pytest.warns(UserWarning, match="were not seen in training") as caught:
        best = model.recommend(["bob", "ann", "x1", "x2", "x3"], n=1, exclude_seen=False)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    told = str(caught[0].message)
    assert told.startswith("4 of 5 users were not seen in training: 'ann' (did you mean 'anna'")
    assert "'x1', 'x2' and 1 more. Their lists are not personal" in told
    assert best["known"].tolist() == [True, False, False, False, False]


def test_whoever_chooses_the_fallback_is_not_warned(model):
    best = model.recommend(["bob", "dan"], unknown="fallback", exclude_seen=False)
    assert best.groupby("user")["known"].all().to_dict() == {"bob": True, "dan": False}
    assert model.recommend(["bob", "dan"], unknown="skip", exclude_seen=False)["known"].all()
    assert best["known"].dtype == np.bool_
