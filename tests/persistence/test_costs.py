"""Loading costs in proportion to the file, whatever it holds."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import marginmf
from marginmf._utils import tensor_files
from marginmf.persistence import ModelFileError, describe
from marginmf.ratings import BiasOnly, MostPopular
from tampering import ModelParts

FOLDER = Path(__file__).resolve().parents[1] / "fixtures"
#: What loading may take beyond the file: this many times its size, and this many bytes more.
TIMES, MORE = 4, 50_000_000
#: All multiples of this have the same hash.
ALIKE = 2**61 - 1


def in_document(text):
    """Put JSON in the place of a parameter."""

    def write(path, model):
        model.params["reg"] = "@"
        written = json.dumps(model.document, ensure_ascii=False)
        model.write(path, document_text=written.replace('"@"', text))

    return write


def in_ids(text):
    """Put JSON in the place of the ids of users."""

    def write(path, model):
        model.tensors["users_"] = np.frombuffer(text.encode(), np.uint8)
        model.write(path)

    return write


def with_entries(path, model):
    model.tensors |= {f"t{k}": np.zeros(0, np.uint8) for k in range(60_000)}
    model.write(path)


def with_wide_numbers(path, model):
    model.tensors["wide"] = np.zeros(12_000_000, np.uint8)
    model.fitted["history_"] = [{"array": {"tensor": "wide", "dtype": "<i8"}}]
    model.write(path)


def with_scattered_ids(path, model):
    model.tensors["users_"] = np.arange(500_000, dtype=np.uint32) * 63
    model.fitted["users_"]["ids"]["array"]["dtype"] = "<i8"
    model.write(path)


def with_references(path, model):
    model.params["reg"] = [{"object": ["LBFGS", {}]}]
    model.params["reg"] += [{"object": ["HMF", {"reg": [{"same": k}] * 2}, {}]} for k in range(25)]
    model.write(path)


def with_many_uses_of_an_array(path, model):
    model.tensors["long"] = np.zeros(300_000)
    uses = [{"same": 0}] * 5000
    model.params["reg"] = [{"array": {"tensor": "long"}}, *uses]
    model.write(path)


def listed(node, n):
    return "[" + ",".join([node] * n) + "]"


def written(values):
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False)


MEMORY, VALUES = "it would take more memory than [0-9,]+ bytes may", "it holds more values than"
HOSTILE = {
    "empty lists": (in_document(listed("[]", 1_000_000)), MEMORY),
    "objects of JSON": (in_document(listed('{"":1}', 300_000)), MEMORY),
    "numbers": (in_document(listed("1e9", 700_000)), MEMORY),
    "texts": (in_document(listed('"ab"', 600_000)), VALUES),
    "solvers": (in_document(listed('{"object":["LBFGS",{}]}', 90_000)), VALUES),
    "wide text": (in_document(f'["{"a" * 8_000_000}😀"]'), MEMORY),
    "arrays without elements": (with_entries, MEMORY),
    "numbers that were narrow": (with_wide_numbers, MEMORY),
    "references to references": (with_references, VALUES),
    "references to a long array": (with_many_uses_of_an_array, VALUES),
    "digits": (in_document(f'{{"int":"0x{"f" * 100_000}"}}'), "is not of the type 'int'"),
    "keys that are alike": (
        in_document(f'{{"pairs":{written([[k * ALIKE, 1] for k in range(5000)])}}}'),
        "over 1000 keys that are not text",
    ),
    "scattered numbers for ids": (with_scattered_ids, r"indptr has the shape"),
    "short ids": (in_ids(written([f"{k:x}" for k in range(800_000)])), MEMORY),
    "ids that are lists": (in_ids(listed("[]", 500_000)), MEMORY),
    "ids that are tuples": (in_ids(written([{"tuple": [k]} for k in range(200_000)])), MEMORY),
    "ids that are alike": (
        in_ids(written([k * ALIKE for k in range(2000)])),
        "ids were made to be looked up slowly",
    ),
    "one long id": (in_ids(f'["{"a" * 9_000_000}😀"]'), "takes more memory|indptr|more memory"),
    "ids that are nothing": (in_ids(listed("null", 1000)), "are not all text, numbers or tuples"),
    "ids that are no numbers": (
        in_ids('[{"float":"7ff8000000000000"}]'),
        "are not all text, numbers or tuples",
    ),
}


def peak(function, path):
    """Return the most memory that a call took, of NumPy's too, and what it raised."""
    tracemalloc.start()
    try:
        function(path)
        error = None
    except ModelFileError as caught:
        error = caught
    finally:
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return most, error


@pytest.mark.parametrize(("write", "sentence"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_cost_in_proportion_and_are_refused_in_a_line(write, sentence, path):
    write(path, ModelParts(FOLDER / "bias-v1.marginmf"))
    limit = TIMES * path.stat().st_size + MORE
    for function in (marginmf.load, describe):
        most, error = peak(function, path)
        assert most < limit
        assert error is not None or function is describe
        if error is not None:
            assert len(str(error).replace(str(path), "")) < 350
    with pytest.raises(ModelFileError, match=sentence):
        marginmf.load(path)


def test_refusals_quote_the_beginning_and_the_end_of_what_they_refuse(parts, path):
    made = parts()
    made.params["reg"] = ["strong"] * 1000
    made.write(path)
    with pytest.raises(ModelFileError, match=r"cannot be used .*'strong', 'stro.*\.\.\.") as caught:
        marginmf.load(path)
    assert len(str(caught.value).replace(str(path), "")) < 350


@pytest.mark.parametrize("kind", [MostPopular, BiasOnly])
def test_honest_files_of_ids_in_words_load_and_cost_no_more(kind, path):
    rng = np.random.default_rng(0)
    n_users, n_items = 60_000, 500
    users = [f"user {k} of {n_users}, {'ä' * (k % 3)}" for k in range(n_users)]
    items = rng.integers(n_items, size=n_users)
    pairs = [(user, f"item {item}") for user, item in zip(users, items.tolist(), strict=True)]
    model = kind().set_params(**{"calibrate": False} if kind is BiasOnly else {})
    model.fit(pairs, rng.integers(1, 6, n_users)).save(path)
    most, error = peak(marginmf.load, path)
    assert error is None
    # What is added to any file is left out, so that a small one shows what each id costs.
    assert most < 2.5 * TIMES * path.stat().st_size
    assert marginmf.load(path).users_.ids.tolist() == sorted(users)


def test_a_model_whose_file_could_not_be_read_is_not_saved(models, path):
    model = models["mmmf"]
    history = model.history_
    try:
        model.history_ = [0] * 600_000
        with pytest.raises(
            ValueError,
            match="more beside the arrays of numbers than",
        ):
            model.save(path)
    finally:
        model.history_ = history
    assert not path.exists()


def test_lookups_are_made_when_they_are_needed():
    from marginmf.ratings.ids import IdIndex

    for ids in (np.arange(10) * 30, ["a", "b"]):
        index = IdIndex(ids)
        assert set(vars(index)) == {"ids", "what"}
        assert index.encode(ids).tolist() == list(range(len(ids)))


def test_ids_that_take_too_much_of_a_file_are_refused_when_it_is_written(path, monkeypatch):
    model = MostPopular().fit([(f"{k:x}", 1) for k in range(50_000)], np.ones(50_000))
    monkeypatch.setattr(tensor_files, "BYTES_MORE", 1_000_000)
    with pytest.raises(ValueError, match="millions of ids whole numbers"):
        model.save(path)
    monkeypatch.undo()
    model.save(path)
    assert len(marginmf.load(path).users_) == 50_000
