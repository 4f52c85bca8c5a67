"""Ratings models whose checksum is right and whose contents are malicious: nothing is let in."""

from pathlib import Path

import numpy as np
import pandas
import pytest

import marginmf
from marginmf.persistence import ModelFileError
from tampering import (
    ModelParts,
    attribute,
    both,
    columns_less,
    document,
    find,
    find_csr,
    inside,
    param,
    put,
    rename_class,
    rows_less,
    tensor,
    without,
)

FOLDER = Path(__file__).resolve().parents[1] / "fixtures"


def ids(text):
    return tensor("users_", lambda _: np.frombuffer(text, np.uint8))


def second_use(parts):
    parts.fitted["item_factors_"] = parts.fitted["user_factors_"]


def numbers_for_ids(numbers):
    return tensor("users_", lambda _: np.array(numbers, np.int64))


CASES = {
    # the document
    "other format": (document("format", "other"), "it holds no model"),
    "newer version": (document("version", 2), "version 2 of the format.*update marginmf"),
    "version in words": (document("version", "one"), "does not say which version"),
    "version zero": (document("version", 0), "does not say which version"),
    "one part too many": (document("more", 1), "too few parts, or too many"),
    "one part too few": (lambda parts: parts.document.pop("counts"), "too few parts"),
    "no counts": (document("counts", None), "its counts cannot be understood"),
    "negative counts": (
        document("counts", {"users": -1, "items": 1, "ratings": 1, "levels": 1}),
        "its counts cannot be understood",
    ),
    "false counts": (
        document("counts", {"users": 1, "items": 1, "ratings": 1, "levels": 1}),
        "its counts are not those of its model",
    ),
    # classes and names
    "foreign class": (rename_class("Popen"), "'Popen' is not an estimator"),
    "foreign place": (rename_class("subprocess.Popen"), "'subprocess.Popen' is not an estimator"),
    "class that is no estimator": (rename_class("Ratings"), "'Ratings' is not an estimator"),
    "other estimator": (rename_class("PMMMF"), "PMMMF has no parameter 'threshold'"),
    "no model": (document("model", 7), "it holds no model"),
    "foreign class inside": (
        param("solver", {"object": ["Popen", {"args": "ls"}]}),
        "'Popen' is not a class that a model can have parts of",
    ),
    "object without a class": (param("solver", {"object": []}), "None is not a class"),
    "object with too many parts": (
        param("solver", {"object": ["LBFGS", {}, {}]}),
        "the parts of LBFGS cannot be understood",
    ),
    "object with a strange field": (
        param("solver", {"object": ["LBFGS", {"__class__": 1}]}),
        "LBFGS has no parameter '__class__'",
    ),
    "object that lacks a field": (
        attribute("history_", [{"object": ["Record", {"iteration": 1}]}]),
        "Record lacks its objective",
    ),
    "solver with a wrong field": (
        param("solver", {"object": ["LBFGS", {"memory": "much"}]}),
        r"MMMF\.solver\.memory is of the type str, which it cannot be",
    ),
    "unknown parameter": (param("extra", 1), "MMMF has no parameter 'extra'"),
    "unknown attribute": (attribute("extra_", 1), "MMMF has no attribute 'extra_'"),
    "attribute that hides a method": (attribute("predict", 1), "no attribute 'predict'"),
    "missing attribute": (
        lambda parts: parts.fitted.pop("stop_reason_"),
        r"MMMF\.stop_reason_ is missing",
    ),
    "missing users": (attribute("users_", None), "no object 2 to refer to"),
    "missing item factors": (
        lambda parts: (parts.fitted.pop("item_factors_"), parts.tensors.pop("item_factors_")),
        r"MMMF\.item_factors_ is missing",
    ),
    # values
    "unknown kind of value": (
        param("reg", {"code": "print()"}),
        "is not a value that is known here",
    ),
    "value of two kinds": (param("reg", {"int": "1", "float": "2"}), "not a value that is known"),
    "tuple of nothing": (param("reg", {"tuple": 1}), "1 stands where a list should be"),
    "foreign loss": (param("loss", {"loss": "eval"}), "the loss 'eval' is not known"),
    "bad float": (param("reg", {"float": "zz"}), "'zz' is not of the type 'float'"),
    "bad number": (param("reg", {"numpy": ["O", "00" * 8]}), "not of the type 'numpy'"),
    "bad dtype": (param("dtype", {"dtype": "O"}), "'O' is not the type of an array"),
    "structured dtype": (param("dtype", {"dtype": "f8,f8"}), "is not the type of an array"),
    "reference forwards": (param("reg", {"same": 0}), "no object 0 to refer to"),
    "reference to nowhere": (attribute("levels_", {"same": -1}), "no object -1 to refer to"),
    "missing array": (
        param("reg", {"array": {"tensor": "nothing"}}),
        "the array 'nothing' is missing",
    ),
    "array used twice": (second_use, "the array 'user_factors_' is missing"),
    "array that nobody wants": (
        lambda parts: parts.tensors.update(more=np.zeros(3)),
        "the array 'more' belongs to nothing",
    ),
    "note of an unknown kind": (
        lambda parts: find(parts.document, "user_factors_").update(order="C"),
        "the note on an array cannot be understood",
    ),
    "array of objects": (
        lambda parts: find(parts.document, "user_factors_").update(dtype="|O"),
        "is not the type of an array",
    ),
    "array of another type": (
        lambda parts: find(parts.document, "user_factors_").update(dtype="<U3"),
        "does not fit its tensor",
    ),
    "negative numbers as unsigned": (
        lambda parts: (
            find(parts.document, "ratings_.codes").update(dtype="<u8"),
            tensor("ratings_.codes", lambda codes: codes.astype(np.int8))(parts),
        ),
        "does not fit its tensor",
    ),
    # parameters that would fail later
    "threads in words": (param("n_jobs", "many"), "parameters of MMMF cannot be used .n_jobs="),
    "seed below zero": (attribute("_calibration_seed", -1), "_calibration_seed is no seed"),
    "no seed": (attribute("_calibration_seed", None), "_calibration_seed is no seed"),
    "frequencies of no side": (
        inside("_frequencies", "object", 1, "placed")("items"),
        "placed is 'items', which is no side",
    ),
    "frequencies below zero": (put("_frequencies.by_user", (0, 0), -1), "has counts below zero"),
    "biases of one side": (
        both(
            inside("_frequencies", "object", 1, "user_biases")(None),
            lambda parts: parts.tensors.pop("_frequencies.user_biases"),
        ),
        "has biases of one side alone|no object",
    ),
    "threshold of nothing": (param("threshold", None), "cannot be used .threshold=None"),
    "rank of nothing": (param("n_factors", {"dict": {}}), "cannot be used .n_factors="),
    "ragged penalty": (param("reg", [[1], [1, 2]]), "cannot be used"),
    # shapes: the kernels would read beyond the arrays
    "user factors with a row too few": (
        rows_less("user_factors_"),
        r"MMMF\.user_factors_ has the shape \(29, 3\), which does not fit \(users, factors\)",
    ),
    "item factors with a row too few": (rows_less("item_factors_"), r"MMMF\.item_factors_ has"),
    "factors of another rank": (
        tensor("item_factors_", lambda array: array[:, :-1]),
        r"item_factors_ has the shape \(20, 2\)",
    ),
    "factors with an axis more": (
        tensor("item_factors_", lambda array: array[None]),
        r"item_factors_ has the shape \(1, 20, 3\)",
    ),
    "factors of half precision": (
        tensor("item_factors_", lambda array: array.astype(np.float16)),
        "item_factors_ is not an array of float32 or float64",
    ),
    "factors in a list": (attribute("thresholds_", [1]), "thresholds_.*(not an array|belongs)"),
    "thresholds with a row too few": (rows_less("thresholds_"), r"thresholds_ has the shape"),
    "one level less": (
        tensor("levels_", lambda array: array[:-1]),
        "do not fit|does not fit|do not exist|other users, items or levels",
    ),
    "levels that fall": (tensor("levels_", lambda array: array[::-1]), "not levels in rising"),
    "levels without end": (put("levels_", 4, np.inf), "levels_ has a number that is not finite"),
    "frequencies with a row too few": (
        rows_less("_frequencies.by_item"),
        r"_frequencies\.by_item has the shape",
    ),
    # ratings
    "item that does not exist": (put("ratings_.indices", 5, 20), "items that do not exist"),
    "item far away": (put("ratings_.indices", 5, 2**31 - 1), "items that do not exist"),
    "item before the first": (put("ratings_.indices", 5, -1), "items that do not exist"),
    "level that does not exist": (put("ratings_.codes", 5, 5), "levels that do not exist"),
    "level before the first": (put("ratings_.codes", 5, -7), "levels that do not exist"),
    "ratings that begin late": (put("ratings_.indptr", 0, 1), "not divided among the users"),
    "ratings that go back": (put("ratings_.indptr", 3, 10**12), "not divided among the users"),
    "ratings that end late": (put("ratings_.indptr", 30, 10**6), "not divided among the users"),
    "ratings of too few users": (
        tensor("ratings_.indptr", lambda array: array[:-1]),
        r"ratings_\.indptr has the shape",
    ),
    "ratings out of order": (
        lambda parts: put("ratings_.indices", 0, int(parts.tensors["ratings_.indices"][1]))(parts),
        "not in the order of the items",
    ),
    "fewer codes than ratings": (
        tensor("ratings_.codes", lambda array: array[:-1]),
        r"ratings_\.codes has the shape",
    ),
    # ids
    "ids that are not JSON": (ids(b"['a']"), "the list of user ids is not valid JSON"),
    "ids that are not text": (ids(b'["\xff"]'), "the list of user ids is not text"),
    "ids nested deeply": (ids(b"[" * 100_000), "list of user ids is nested too deeply"),
    "ids that are no list": (ids(b'{"a": 1}'), "the user ids are not a list"),
    "ids that occur twice": (ids(b'["a", "a"]'), "ids are not distinct"),
    "ids that are equal": (ids(b"[1, true, 1.0]"), "ids are not distinct"),
    "ids of an unknown type": (ids(b'[{"code": "1"}]'), "not a value that is known here"),
    "ids that are lists": (ids(b"[[1, 2]]"), "not a value that is known here"),
    "ids that are no longer kept": (ids(b'[{"decimal": "1"}]'), "of the type 'decimal', which mod"),
    "ids with a null character": (ids(b'["a\\u0000b"]'), "user id in row 0 has a null character"),
    "ids too long": (ids(b'["' + b"a" * 1001 + b'"]'), "user id in row 0 has 1,001 characters"),
    "too few ids": (ids(b'["a"]'), "other users|does not fit"),
    "numbers out of order": (numbers_for_ids([3, 2, 1]), "ids are not distinct, or not in order"),
    "floats for ids": (tensor("users_", lambda _: np.zeros(30)), "the user ids are not a list"),
    "ids without a name": (
        lambda parts: parts.fitted["users_"]["ids"].pop("what"),
        "a list of ids cannot be understood",
    ),
}


PAIR_CASES = {
    "false counts": (
        "ease",
        document("counts", {"users": 30, "items": 20, "pairs": 1}),
        "its counts are not those of its model",
    ),
    "counts of another kind": (
        "ease",
        document("counts", {"users": 1, "items": 1, "ratings": 1, "levels": 1}),
        "its counts cannot be understood",
    ),
    "other method": ("ease", rename_class("ItemKNN"), "ItemKNN has no parameter"),
    "method of ratings": ("popular", rename_class("BiasOnly"), "its counts cannot be understood"),
    "unknown attribute": ("ease", attribute("taken_", 1), "EASE has no attribute 'taken_'"),
    "no items": ("popular", attribute("items_", None), "'items_' belongs to nothing"),
    "popularity of an item too few": (
        "popular",
        rows_less("popularity_"),
        r"popularity_ has the shape \(19,\), which does not fit \(items\)",
    ),
    "weights that are missing": (
        "ease",
        without("weights_"),
        r"'weights_.matrix' belongs to nothing",
    ),
    "weights of a target too few": (
        "ease",
        rows_less("weights_.matrix"),
        r"weights_\.matrix has the shape \(19, 20\), which does not fit \(items, items\)",
    ),
    "weights of a source too few": (
        "ease",
        columns_less("weights_.matrix"),
        r"weights_\.matrix has the shape \(20, 19\)",
    ),
    "weight that is not a number": (
        "ease",
        put("weights_.matrix", (0, 1), np.nan),
        r"weights_\.matrix has numbers that are not finite",
    ),
    "source that does not exist": (
        "itemknn",
        put("weights_.matrix.indices", 0, 20),
        "entries in columns that do not exist",
    ),
    "sparse weights of a source too many": (
        "itemknn",
        lambda parts: find_csr(parts.document, "weights_.matrix.data").update(shape=[20, 21]),
        r"weights_\.matrix has the shape \(20, 21\)",
    ),
    "sparse weights of a target too few": (
        "itemknn",
        both(
            tensor("weights_.matrix.indptr", lambda array: array[:-1]),
            lambda parts: find_csr(parts.document, "weights_.matrix.data").update(shape=[19, 20]),
        ),
        "not divided among its rows",
    ),
    "weights that are no matrix": (
        "ease",
        both(
            inside("weights_", "object", 1, "matrix")(7),
            lambda parts: parts.tensors.pop("weights_.matrix"),
        ),
        r"weights_\.matrix is not a matrix|no object",
    ),
    "item that does not exist": (
        "popular",
        put("ratings_.indices", 0, 20),
        r"ratings_\.indices has numbers of items that do not exist",
    ),
    "ratings of a user too few": (
        "popular",
        rows_less("ratings_.indptr"),
        "which does not fit|are not divided among the users",
    ),
    "factors of a user too few": (
        "oneclass",
        rows_less("user_factors_"),
        r"user_factors_ has the shape \(29, 3\)",
    ),
    "factors of another rank": (
        "oneclass",
        columns_less("item_factors_"),
        r"item_factors_ has the shape \(20, 2\)",
    ),
    "level in words": ("popular", param("level", "high"), "level='high' must be a number"),
    "rank below one": ("oneclass", param("n_factors", 0), "n_factors=0 must be a whole number"),
    "threads in words": ("ease", param("n_jobs", "all"), "n_jobs='all' must be a whole number"),
    "strength in words": (
        "ease",
        attribute("reg_", "auto"),
        "reg_ is of the type str, which it cannot be",
    ),
    "shrinkage below zero": ("itemknn", param("shrinkage", -1), "shrinkage=-1 must be a number"),
}


@pytest.mark.parametrize(("tamper", "sentence"), CASES.values(), ids=CASES)
def test_hostile_ratings_models_get_a_sentence(tamper, sentence, refused):
    refused("mmmf", tamper, sentence)


@pytest.mark.parametrize(("name", "tamper", "sentence"), PAIR_CASES.values(), ids=PAIR_CASES)
def test_hostile_models_of_who_has_what_get_a_sentence(name, tamper, sentence, refused):
    refused(name, tamper, sentence)


def test_an_estimator_inside_must_be_whole_and_have_the_same_users(parts, path):
    made = parts("als")
    made.tensors["offsets_.user_biases_"] = made.tensors["offsets_.user_biases_"][:-1]
    made.write(path)
    with pytest.raises(ModelFileError, match=r"ALS\.offsets_\.user_biases_ has the shape \(29,\)"):
        marginmf.load(path)
    made = parts("als")
    made.fitted["offsets_"]["object"][2] = {}
    made.tensors = {
        name: array for name, array in made.tensors.items() if not name.startswith("offsets_")
    }
    made.write(path)
    with pytest.raises(ModelFileError, match=r"ALS\.offsets_\.users_ is missing"):
        marginmf.load(path)


def test_references_that_double_again_and_again_get_a_sentence(parts, path):
    made = parts()
    # Each of them holds the one before it twice.
    doubling = [{"object": ["HMF", {}, {}]}]
    doubling += [{"object": ["HMF", {"reg": [{"same": k}] * 2}, {}]} for k in range(40)]
    made.params["reg"] = doubling
    made.write(path)
    with pytest.raises(ModelFileError, match="it holds more values than"):
        marginmf.load(path)


def test_a_parameter_that_the_file_does_not_know_yet_has_its_default(parts, path, models, data):
    made = parts()
    del made.params["threshold"]
    made.write(path)
    loaded = marginmf.load(path)
    assert loaded.threshold == "all"
    np.testing.assert_array_equal(loaded.predict(data[0]), models["mmmf"].predict(data[0]))


def test_features_of_more_columns_than_memory_are_refused(path):
    made = ModelParts(FOLDER / "hmf-features-v1.marginmf")
    features = made.fitted["ratings_"]["object"][1]["item_features"]["object"][1]
    column = {"name": "", "kind": "weights", "values": {"tuple": [10**12]}}
    columns = features["encoder"]["object"][1]["columns"]
    columns["tuple"] = [{"object": ["FeatureColumn", column]}]
    features["matrix"]["csr"]["shape"][1] = 10**12 + 1
    made.write(path)
    with pytest.raises(ModelFileError, match="has no number of weights"):
        marginmf.load(path)


@pytest.mark.parametrize("library", ["antigravity", "this.that", "", "x" * 5_000])
def test_no_library_is_imported_because_a_file_names_it(library, parts, path, monkeypatch):
    monkeypatch.setattr("marginmf.ratings.tables.import_module", {"pandas": pandas}.__getitem__)
    for name in ("mmmf", "ease"):
        made = parts(name)
        made.fitted["ratings_"]["object"][1]["source"]["object"][1]["library"] = library
        made.write(path)
        model = marginmf.load(path)
        assert isinstance(model.similar_items(["item 01"], n=2), pandas.DataFrame)
