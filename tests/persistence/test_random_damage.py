"""Models that were changed anywhere at random: they load whole or not at all."""

import random
from contextlib import suppress

import numpy as np
import pytest
from scipy.sparse import csr_array

import marginmf
from label_models import FITTED, labelled
from marginmf.persistence import ModelFileError, describe
from tampering import COMMON_JUNK, every_node

X, _ = labelled()
RATINGS = ("als", "hmf", "mmmf")
POSITIVE = ("popular", "itemknn", "ease", "oneclass")
#: How many changes of the document, and how many of the arrays.
TRIALS = {
    **dict.fromkeys(RATINGS, (100, 60)),
    **dict.fromkeys(POSITIVE, (40, 20)),
    **dict.fromkeys(FITTED, (30, 15)),
}
JUNK = [
    *COMMON_JUNK,
    {"array": {"tensor": "levels_"}},
    {"array": {"tensor": "user_factors_", "order": "F"}},
    {"csr": {}},
    {"csr": {"shape": [1, 1], "data": 0, "indices": 0, "indptr": 0}},
    {"text": {"tensor": "thresholds_"}},
    {"array": {"tensor": "thresholds_"}},
    {"pairs": [[1, 2], [1, 3]]},
    {"decimal": "sNaN"},
    {"generator": 7},
    {"ids": {"what": "user", "array": {"tensor": "users_"}}},
    {"dtype": "|O"},
    {"object": ["ids", {"values": [1]}]},
    {"object": ["LinearSVC", {"C": {"dict": {}}}, {}]},
    {"object": ["OneVsRestClassifier", {"estimator": 1}, {"estimators_": []}]},
    {"object": ["EASE", {}, {}]},
    {"object": ["MLkNN", {}, {}]},
]


def answers(model, name, data):
    """Ask a model what a user would."""
    if name in RATINGS:
        return [model.predict([*data[0][:20], ("nobody", "nothing"), data[0][0]])]
    if name in POSITIVE:
        folded = model.fold_in([("new", "item 02"), ("new", "item 03")], [4, 5])
        pairs = [("user 01", "item 01"), ("nobody", "nothing")]
        lists = (model.recommend(n=2)["item"], folded.recommend("new")["item"])
        return [*lists, model.decision_function(pairs)]
    if model.n_features_in_ != X.shape[1]:
        return []
    return [model.predict(X[:3]), model.decision_function(csr_array(X[:2]))]


@pytest.mark.parametrize("name", TRIALS)
def test_the_tools_of_these_tests_write_good_files(name, parts, file_of, path, data):
    parts(name).write(path)
    copy, original = (answers(marginmf.load(file), name, data) for file in (path, file_of(name)))
    for one, other in zip(copy, original, strict=True):
        np.testing.assert_array_equal(
            *(each.toarray() if hasattr(each, "toarray") else each for each in (one, other))
        )


def loads_whole_or_not_at_all(path, name, data):
    """Load and ask; a description may tell of a file that does not load, but never fails."""
    with suppress(ModelFileError):
        describe(path)
    try:
        model = marginmf.load(path)
    except ModelFileError:
        return "refused"
    with np.errstate(all="ignore"):
        answers(model, name, data)
    return "loaded"


@pytest.mark.parametrize("name", TRIALS)
def test_whatever_stands_in_the_document_loads_whole_or_not_at_all(name, parts, path, data):
    rng, outcomes = random.Random(name), set()
    for _ in range(TRIALS[name][0]):
        made = parts(name)
        container, key = rng.choice(every_node(made.document, []))
        container[key] = rng.choice(JUNK)
        made.write(path)
        outcomes.add(loads_whole_or_not_at_all(path, name, data))
    assert "refused" in outcomes
    assert "loaded" in outcomes or name not in RATINGS


@pytest.mark.parametrize("name", TRIALS)
def test_whatever_stands_in_the_arrays_loads_whole_or_not_at_all(name, parts, path, data):
    rng, outcomes = np.random.default_rng(0), set()
    for _ in range(TRIALS[name][1]):
        made = parts(name)
        chosen = str(rng.choice([key for key in made.tensors if made.tensors[key].size]))
        flat = made.tensors[chosen].reshape(-1).view(np.uint8)
        for _ in range(3):
            flat[rng.integers(len(flat))] = rng.integers(256)
        made.write(path)
        outcomes.add(loads_whole_or_not_at_all(path, name, data))
    assert "refused" in outcomes
    assert "loaded" in outcomes or name not in RATINGS
