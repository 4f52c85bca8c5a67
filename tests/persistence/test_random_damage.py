"""Label models that were changed anywhere at random: they load whole or not at all."""

import random
from contextlib import suppress

import numpy as np
import pytest
from label_models import FITTED, labelled
from scipy.sparse import csr_array
from tampering import COMMON_JUNK, ModelParts, every_node

import marginmf
from marginmf.persistence import ModelFileError, describe

X, _ = labelled()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.marginmf"


def test_the_tools_of_these_tests_write_good_files(label_files, path):
    for file in label_files.values():
        ModelParts(file).write(path)
        original, copy = marginmf.load(file), marginmf.load(path)
        np.testing.assert_array_equal(copy.decision_function(X), original.decision_function(X))


JUNK = [
    *COMMON_JUNK,
    {"csr": {}},
    {"csr": {"shape": [1, 1], "data": 0, "indices": 0, "indptr": 0}},
    {"text": {"tensor": "thresholds_"}},
    {"array": {"tensor": "thresholds_"}},
    {"pairs": [[1, 2], [1, 3]]},
    {"pairs": [[{"decimal": "sNaN"}, 2]]},
    {"dtype": "|O"},
    {"object": ["LinearSVC", {"C": {"dict": {}}}, {}]},
    {"object": ["OneVsRestClassifier", {"estimator": 1}, {"estimators_": []}]},
    {"object": ["MLkNN", {}, {}]},
]


def loads_whole_or_not_at_all(path):
    """Load and predict; a description may tell of a file that does not load, but never fails."""
    with suppress(ModelFileError):
        describe(path)
    try:
        model = marginmf.load(path)
    except ModelFileError:
        return "refused"
    if model.n_features_in_ == X.shape[1]:
        with np.errstate(all="ignore"):
            model.predict(X[:3])
            model.decision_function(csr_array(X[:2]))
    return "loaded"


@pytest.mark.parametrize("name", FITTED)
def test_whatever_stands_in_the_document_loads_whole_or_not_at_all(name, label_files, path):
    rng = random.Random(name)
    good = ModelParts(label_files[name])
    outcomes = set()
    for _ in range(50):
        made = good.copy()
        container, key = rng.choice(every_node(made.document, []))
        container[key] = rng.choice(JUNK)
        made.write(path)
        outcomes.add(loads_whole_or_not_at_all(path))
    assert "refused" in outcomes


@pytest.mark.parametrize("name", FITTED)
def test_whatever_stands_in_the_arrays_loads_whole_or_not_at_all(name, label_files, path):
    rng = np.random.default_rng(0)
    good = ModelParts(label_files[name])
    outcomes = set()
    for _ in range(25):
        made = good.copy()
        chosen = str(rng.choice([key for key in made.tensors if made.tensors[key].size]))
        flat = made.tensors[chosen].reshape(-1).view(np.uint8)
        for _ in range(3):
            flat[rng.integers(len(flat))] = rng.integers(256)
        made.write(path)
        outcomes.add(loads_whole_or_not_at_all(path))
    assert "refused" in outcomes


def test_a_label_model_cut_short_or_changed_is_noticed(label_files, path):
    rng = np.random.default_rng(0)
    good = label_files["mlchmf"].read_bytes()
    for length in np.linspace(0, len(good) - 1, 40).astype(int).tolist():
        path.write_bytes(good[:length])
        with pytest.raises(ModelFileError, match=r"cut short|empty|no model file"):
            marginmf.load(path)
    for spot in rng.integers(len(good), size=100).tolist():
        raw = bytearray(good)
        raw[spot] ^= 1 << int(rng.integers(8))
        path.write_bytes(raw)
        with pytest.raises(ModelFileError, match="cannot be loaded"):
            marginmf.load(path)
