"""Models in files: saved whole or not at all, loaded as they were, and described."""

import os
import pickle
from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import numpy as np
import pytest
from safetensors import safe_open
from sklearn.exceptions import NotFittedError

import marginmf
from marginmf import losses
from marginmf._utils.tensor_files import Allowance
from marginmf.losses import TwoLevelLoss
from marginmf.persistence import Counts, describe
from marginmf.persistence.codec import ModelDecoder, ModelEncoder
from marginmf.ratings import ALS, HMF, MMMF, PMMMF, BiasOnly, Ratings
from marginmf.solvers import LBFGS


def saved_and_loaded(model, path):
    model.save(path)
    return marginmf.load(path)


# --- ids ---------------------------------------------------------------------------------------

IDS = {
    "whole numbers": [3, 1, 2],
    "large whole numbers": [2**62, -(2**62), 0],
    "beyond int64": [2**63, 2**70, -(2**65)],
    "text": ["ann", "", "Zoë 🎬"],
    "half a surrogate pair": ["\ud83d", "\ude00", "\ud83d\ude00"],
    "text and numbers": ["7", 7, 2**64],
    "floats": [0.5, float("inf"), -1e-300],
    "booleans": [True, False, "True"],
    "tuples": [("a", 1), ("a", (2.5, True)), ()],
}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_ids_are_kept_exactly(ids, path):
    pairs = [(user, item) for user in ids for item in ids]
    model = BiasOnly().fit(pairs, [1 + k % 5 for k in range(len(pairs))])
    copy = saved_and_loaded(model, path)
    for mine, others in ((model.users_, copy.users_), (model.items_, copy.items_)):
        assert others.ids.dtype == mine.ids.dtype
        assert others.ids.tolist() == mine.ids.tolist()
        assert [type(one) for one in others.ids] == [type(one) for one in mine.ids]
        assert list(map(repr, others.ids)) == list(map(repr, mine.ids))
    np.testing.assert_array_equal(copy.predict(pairs), model.predict(pairs))


class Named(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("stranger", "sentence"),
    [
        (frozenset({1}), r"The user id frozenset\(\{1\}\) is of the type frozenset"),
        (Named("x"), r"The user id 'x' is of the type Named"),
        (("a", None), r"The user id \('a', None\) is of the type tuple"),
        (b"x", "is of the type bytes"),
        (date(2024, 2, 29), "is of the type date, which a model file cannot hold"),
        (datetime(2024, 1, 1), "Ids in a file may be whole numbers, text, floats, booleans"),
        (timedelta(1), "convert the ids, to text for example, and fit again"),
        (Decimal("1.10"), "is of the type Decimal"),
        (UUID(int=1), "is of the type UUID"),
        (np.timedelta64(5, "ns"), "is of the type timedelta64"),
    ],
)
def test_other_ids_are_refused_before_anything_is_written(stranger, sentence, path):
    path.write_text("as it was")
    model = BiasOnly().fit([(stranger, 1), (stranger, 2), ("b", 1)], [1, 2, 3])
    with pytest.raises(ValueError, match=sentence):
        model.save(path)
    assert path.read_text() == "as it was"
    assert os.listdir(path.parent) == [path.name]


# --- parameters and state ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        HMF(3, (1.0, 2, np.float32(2), 1.0), random_state=0, max_iter=5),
        HMF(3, [1.0, 2.0, 2.0, 1.0], random_state=np.int64(3), calibrate=False),
        MMMF(3, 1, loss=losses.logistic, solver=LBFGS(memory=7), threshold="immediate"),
        PMMMF(3, 1.5, dtype=np.dtype("float64"), solver="cg", max_iter=5, callbacks=[]),
        ALS(np.int32(3), 1.5, tol=0, n_jobs=2, verbose=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_parameters_are_restored_as_they_were(model, data, path):
    copy = saved_and_loaded(model.fit(*data), path)
    assert repr(copy) == repr(model)
    for name, value in model.get_params(deep=False).items():
        restored = getattr(copy, name)
        assert type(restored) is type(value), name
        assert restored == value, name
    np.testing.assert_array_equal(copy.decision_function(data[0]), model.decision_function(data[0]))


def test_the_parts_of_a_model_are_shared_as_before(models, files):
    copy = marginmf.load(files["als"])
    assert models["als"].offsets_.ratings_ is models["als"].ratings_
    assert copy.offsets_.ratings_ is copy.ratings_
    assert copy.ratings_.users is copy.users_ is copy.offsets_.users_
    assert copy.ratings_.levels is copy.levels_


def test_estimators_in_a_list_store_their_common_ratings_once(data):
    ratings = Ratings.of(*data)
    few = {"max_iter": 3, "calibrate": False}
    members = [HMF(2, random_state=seed, **few).fit(ratings) for seed in range(3)]
    encoder = ModelEncoder()
    node = encoder.encode(members, "members_")
    assert sum(name.endswith("codes") for name in encoder.tensors) == 1
    one, two, three = ModelDecoder(encoder.tensors, Allowance(0)).decode(node)
    assert one.ratings_ is two.ratings_ is three.ratings_
    assert one.users_ is three.users_
    np.testing.assert_array_equal(two.predict(data[0]), members[1].predict(data[0]))


def test_folded_models(models, data, path):
    for model in models.values():
        folded = model.fold_in(*data)
        copy = saved_and_loaded(folded, path)
        known = [(user, "item 01") for user, _ in data[0]] + [("nobody", "item 02")]
        np.testing.assert_array_equal(copy.predict(known), folded.predict(known))


def test_loaded_arrays_can_be_changed(files):
    marginmf.load(files["mmmf"]).user_factors_[0] = 1.0


def test_a_loaded_model_can_be_pickled(files, data):
    copy = marginmf.load(files["hmf"])
    again = pickle.loads(pickle.dumps(copy))
    np.testing.assert_array_equal(again.predict(data[0]), copy.predict(data[0]))


@pytest.mark.parametrize(
    "source",
    [np.random.RandomState(0), np.random.default_rng(0)],
    ids=["RandomState", "Generator"],
)
def test_a_generator_becomes_none(source, data, path):
    model = HMF(2, random_state=source, max_iter=2, calibrate=False).fit(*data)
    assert saved_and_loaded(model, path).random_state is None
    assert model.random_state is source


def test_callbacks_are_not_kept(data, path):
    seen = []
    model = HMF(2, callbacks=[seen.append], max_iter=2).fit(*data)
    assert saved_and_loaded(model, path).callbacks == ()
    assert model.callbacks == [seen.append]


def _value(margin):
    return np.exp(-margin)


def _derivative(margin):
    return -np.exp(-margin)


class MySolver(LBFGS):
    pass


class MyHMF(HMF):
    pass


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"loss": TwoLevelLoss("mine", _value, _derivative)},
            "loss is a loss of your own, 'mine', and a model file holds no code",
        ),
        (
            {"loss": TwoLevelLoss("hinge", _value, _derivative)},
            "loss is a loss of your own, 'hinge'",
        ),
        ({"solver": MySolver()}, r"solver is MySolver\(memory=5\), of the type MySolver"),
        ({"reg": -1.0}, r"cannot be saved, because it could not be loaded again.*reg=-1\.0"),
        ({"reg": np.array([1, None])}, "reg is .* array of object"),
        ({"schedule": "\ud800"}, "cannot be saved"),
    ],
)
def test_parameters_that_cannot_be_kept_get_a_sentence(models, change, sentence, path):
    model = pickle.loads(pickle.dumps(models["hmf"]))
    with pytest.raises(ValueError, match=sentence):
        model.set_params(**change).save(path)
    assert not path.exists()


def test_other_attributes_and_classes_get_a_sentence(data, path):
    model = HMF(2, max_iter=2).fit(*data)
    model.note = "good"
    with pytest.raises(ValueError, match="note is no attribute that HMF has by itself"):
        model.save(path)
    with pytest.raises(ValueError, match="of the type MyHMF, which a model file cannot hold"):
        MyHMF(2, max_iter=2).fit(*data).save(path)


def test_a_model_that_is_out_of_shape_is_not_saved(data, path):
    model = HMF(2, max_iter=2).fit(*data)
    model.item_factors_ = model.item_factors_[:, :-1]
    with pytest.raises(ValueError, match=r"could not be loaded again: HMF\.item_factors_"):
        model.save(path)


def test_text_that_is_not_unicode_gets_a_sentence(data, path):
    model = HMF(2, max_iter=2).fit(*data)
    model.stop_reason_ = ["\ud800"]
    with pytest.raises(ValueError, match=r"holds the text '\\ud800', which is not Unicode"):
        model.save(path)


def test_an_unfitted_model_is_not_saved(path):
    with pytest.raises(NotFittedError):
        HMF().save(path)


# --- the file ----------------------------------------------------------------------------------


def test_saving_twice_gives_the_same_bytes(models, path):
    for model in models.values():
        model.save(path)
        first = path.read_bytes()
        model.save(path)
        assert path.read_bytes() == first


def test_the_safetensors_library_reads_the_arrays(models, files):
    with safe_open(files["mmmf"], framework="numpy") as file:
        np.testing.assert_array_equal(
            file.get_tensor("user_factors_"), models["mmmf"].user_factors_
        )
        assert file.get_tensor("ratings_.codes").dtype == np.uint8
        assert set(file.metadata()) == {"checksum", "marginmf"}


def test_every_array_begins_at_a_multiple_of_its_width(parts, files):
    raw = files["als"].read_bytes()
    length = int.from_bytes(raw[:8], "little")
    assert length % 8 == 0
    tensors = parts("als")
    for name, entry in tensors.entries().items():
        assert entry["data_offsets"][0] % tensors.tensors[name].itemsize == 0


@pytest.mark.parametrize("kind", [str, os.fspath, lambda path: path])
def test_paths_of_every_kind(models, tmp_path, kind):
    path = kind(tmp_path / "m.marginmf")
    models["mmmf"].save(path)
    assert isinstance(marginmf.load(path), MMMF)


def test_a_folder_that_is_not_there_is_not_made(models, tmp_path):
    path = tmp_path / "new" / "folder" / "m.marginmf"
    # An unfinished model is not finished first: that may take as long as a fit.
    folded = MMMF(2, 1.0, calibrate=False).fit([(0, 0), (0, 1), (1, 0)], [1, 2, 2])
    folded = folded.fold_in([(7, 0)], [2])
    for model in (models["mmmf"], folded):
        with pytest.raises(FileNotFoundError, match=r"no folder .*new.folder for m\.marginmf"):
            model.save(path)
    assert folded._calibrator is None
    assert not (tmp_path / "new").exists()
    (tmp_path / "new").write_text("a file")
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        models["mmmf"].save(tmp_path / "new" / "m.marginmf")


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failed_save_leaves_the_old_file_as_it_was(models, path, monkeypatch, failing):
    models["mmmf"].save(path)
    before = path.read_bytes()

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(OSError, match=r"The disk is full: make room on it"):
        models["hmf"].save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_saving_onto_a_folder_gets_a_sentence(models, tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder: give the name of a file in it"):
        models["mmmf"].save(tmp_path)


# --- descriptions ------------------------------------------------------------------------------


def test_a_description_tells_what_is_in_the_file(models, files):
    about, model = describe(files["hmf"]), models["hmf"]
    assert about.class_name == "HMF"
    assert about.params == {**model.get_params(deep=False), "reg": "array of shape (4,)"}
    assert about.counts == Counts(30, 20, len(model.ratings_), 5)
    assert about.file_size == files["hmf"].stat().st_size
    assert about.marginmf_version == marginmf.__version__
    assert about.format_version == 1


def test_a_description_reads_the_header_alone(files, path):
    raw = bytearray(files["hmf"].read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    assert describe(path) == describe(files["hmf"])
    with pytest.raises(ValueError, match="checksum"):
        marginmf.load(path)
