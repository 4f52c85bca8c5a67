"""Models of who has what whose files are damaged or malicious: a sentence, and no model."""

import random
from contextlib import suppress

import numpy as np
import pytest
from tampering import (
    COMMON_JUNK,
    ModelParts,
    attribute,
    both,
    columns_less,
    document,
    every_node,
    find_csr,
    inside,
    param,
    place,
    rename_class,
    rows_less,
    tensor,
    without,
)

import marginmf
from marginmf.persistence import ModelFileError, PairCounts, describe
from marginmf.ratings import EASE, ItemKNN, MostPopular, OneClassMMMF

MODELS = {
    "popular": MostPopular(),
    "itemknn": ItemKNN(5, level=3),
    "ease": EASE(reg=5.0, level=3),
    "oneclass": OneClassMMMF(3),
}


@pytest.fixture(scope="module")
def positive_files(data, tmp_path_factory):
    """Return the files of fitted models, by name."""
    folder = tmp_path_factory.mktemp("positive")
    for name, model in MODELS.items():
        model.fit(*data).save(folder / f"{name}.marginmf")
    return {name: folder / f"{name}.marginmf" for name in MODELS}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.marginmf"


def test_the_tools_of_these_tests_write_good_files(positive_files, path):
    for name, file in positive_files.items():
        ModelParts(file).write(path)
        original, copy = marginmf.load(file), marginmf.load(path)
        assert type(copy) is type(MODELS[name])
        assert copy.recommend(n=3).equals(original.recommend(n=3))
        assert describe(path).counts == PairCounts(30, 20, len(original.taken_))


CASES = {
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
        place("weights_.matrix", (0, 1), np.nan),
        r"weights_\.matrix has numbers that are not finite",
    ),
    "source that does not exist": (
        "itemknn",
        place("weights_.matrix.indices", 0, 20),
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
        place("ratings_.indices", 0, 20),
        "ratings_ are of items that do not exist",
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
    "strength in words": ("ease", attribute("reg_", "auto"), "reg_ is a str, which it cannot be"),
    "shrinkage below zero": ("itemknn", param("shrinkage", -1), "shrinkage=-1 must be a number"),
}


@pytest.mark.parametrize(("name", "tamper", "sentence"), CASES.values(), ids=CASES)
def test_hostile_models_get_a_sentence(name, tamper, sentence, positive_files, path):
    made = ModelParts(positive_files[name])
    tamper(made)
    made.write(path)
    with pytest.raises(ModelFileError, match=sentence) as caught:
        marginmf.load(path)
    assert str(caught.value).startswith(f"{path} cannot be loaded: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", MODELS)
def test_whatever_stands_in_the_document_loads_whole_or_not_at_all(name, positive_files, path):
    rng = random.Random(name)
    good, outcomes = ModelParts(positive_files[name]), set()
    for _ in range(80):
        made = good.copy()
        container, key = rng.choice(every_node(made.document, []))
        container[key] = rng.choice([*COMMON_JUNK, {"object": ["EASE", {}, {}]}])
        made.write(path)
        with suppress(ModelFileError):
            describe(path)
        try:
            model = marginmf.load(path)
        except ModelFileError:
            outcomes.add("refused")
            continue
        outcomes.add("loaded")
        model.recommend(n=2)
        model.decision_function([("user 01", "item 01"), ("nobody", "nothing")])
        model.fold_in([("new", "item 02"), ("new", "item 03")], [4, 5]).recommend("new")
    assert "refused" in outcomes
