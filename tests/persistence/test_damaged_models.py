"""Files that are damaged, foreign, or have a bad header: one clear sentence, and nothing else."""

import json
import os
import pickle

import numpy as np
import pytest
from safetensors.numpy import save_file

import marginmf
from marginmf.persistence import ModelFileError, describe
from tampering import ZEROS, sealed


def refused(path, sentence):
    with pytest.raises(ModelFileError, match=sentence) as caught:
        marginmf.load(path)
    message = str(caught.value)
    assert str(path) in message
    assert message.endswith(".")
    assert "\n" not in message


# --- damaged files -----------------------------------------------------------------------------


def test_a_changed_byte_anywhere_is_noticed(files, path):
    rng = np.random.default_rng(0)
    for name in ("als", "mmmf"):
        good = files[name].read_bytes()
        places = [*range(120), *rng.integers(len(good), size=100).tolist()]
        for place in places:
            raw = bytearray(good)
            raw[place] ^= 1 << int(rng.integers(8))
            path.write_bytes(raw)
            refused(path, "cannot be loaded")


def test_a_file_cut_short_anywhere_is_noticed(files, path):
    good = files["mmmf"].read_bytes()
    lengths = [*range(12), *np.linspace(12, len(good) - 1, 40).astype(int).tolist()]
    for length in lengths:
        path.write_bytes(good[:length])
        refused(path, "cut short|empty|no model file")


def test_bytes_that_are_added_inserted_or_swapped_are_noticed(files, path):
    good = files["mmmf"].read_bytes()
    path.write_bytes(good + b"\0" * 8)
    refused(path, "8 bytes after its arrays belong to nothing")
    path.write_bytes(good[:-100] + b"\0" + good[-100:-1])
    refused(path, "checksum is not that of its contents")
    path.write_bytes(good[:-20] + good[-10:] + good[-20:-10])
    refused(path, "checksum is not that of its contents")


# --- foreign files -----------------------------------------------------------------------------


def npz(path):
    with open(path, "wb") as file:
        np.savez(file, a=np.arange(5))


def npy(path):
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))


def foreign_tensors(path):
    save_file({"a": np.arange(5)}, path, {"format": "pt"})


FOREIGN = {
    "nothing": (lambda path: path.write_bytes(b""), "the file is empty"),
    "three bytes": (lambda path: path.write_bytes(b"abc"), "no model file, or damaged"),
    "text": (lambda path: path.write_text("user,item,rating\n1,2,3\n"), "no model file"),
    "npz": (npz, "a zip archive, as .npz files are"),
    "pickle": (lambda path: path.write_bytes(pickle.dumps(list(range(999)))), "a Python pickle"),
    "numpy": (npy, "a NumPy array file"),
    "gzip": (lambda path: path.write_bytes(b"\x1f\x8b" + b"x" * 20), "a gzip file"),
    "zeros": (lambda path: path.write_bytes(b"\0" * 100), "no model file"),
    "safetensors": (foreign_tensors, "it was not written by marginmf"),
    "folder": (lambda path: path.mkdir(), "is a folder, not a model file"),
    "pipe": (lambda path: os.mkfifo(path), "is a device or a pipe, not a model file"),
}


@pytest.mark.parametrize(("make", "sentence"), FOREIGN.values(), ids=FOREIGN)
def test_foreign_files_get_a_sentence(make, sentence, path):
    make(path)
    refused(path, sentence)
    with pytest.raises(ModelFileError, match=sentence):
        describe(path)


def test_a_file_that_is_not_there_is_an_error_of_the_system(path):
    with pytest.raises(FileNotFoundError):
        marginmf.load(path)


# --- the header --------------------------------------------------------------------------------

DEEP = b'{"__metadata__":' + b"[" * 100_000
TWICE = b'{"__metadata__":{"checksum":"x","checksum":"y"}}'
HEADERS = {
    "header longer than the file": ((10**6).to_bytes(8, "little") + b"{}", "cut short: the header"),
    "header too long": ((2**40).to_bytes(8, "little") + b"{}", "no model file"),
    "length that overflows": (b"\xff" * 8 + b"{}", "no model file"),
    "header that is not text": (sealed(b"\xff\xfe{}"), "its header is not text"),
    "header that is not JSON": (sealed(b"{'a': 1}"), "its header is not valid JSON"),
    "header that is a list": (sealed(b"[1, 2]"), "not written by marginmf"),
    "header nested deeply": (sealed(DEEP), "its header is nested too deeply"),
    "name that occurs twice": (sealed(TWICE), "its header has the same name twice"),
    "number that is not one": (sealed(b'{"a": NaN}'), "its header has the number NaN"),
    "number without end": (sealed(b'{"a": ' + b"9" * 9999 + b"}"), "not valid JSON"),
    "metadata that are a list": (sealed(b'{"__metadata__":[]}'), "not written by marginmf"),
    "no checksum": (sealed(b'{"__metadata__":{"marginmf":"{}"}}'), "it has no checksum"),
    "no document": (
        sealed(json.dumps({"__metadata__": {"checksum": ZEROS, "marginmf": "7"}}).encode()),
        "its description of the model is not an object",
    ),
}


@pytest.mark.parametrize(("raw", "sentence"), HEADERS.values(), ids=HEADERS)
def test_bad_headers_get_a_sentence(raw, sentence, path):
    path.write_bytes(raw)
    refused(path, sentence)


def shape(*numbers):
    return lambda entries: entries["user_factors_"].update(shape=list(numbers))


def offsets(start, stop):
    def change(entries):
        place = entries["user_factors_"]["data_offsets"]
        entries["user_factors_"]["data_offsets"] = [place[0] + start, place[1] + stop]

    return change


def entry(**fields):
    return lambda entries: entries["user_factors_"].update(fields)


def empty_with(*numbers):
    def change(entries):
        at = max(stop for _, stop in (one["data_offsets"] for one in entries.values()))
        entries["more"] = {"dtype": "F32", "shape": list(numbers), "data_offsets": [at, at]}

    return change


ENTRIES = {
    "huge shape": (shape(2**40, 3), "which does not fit its offsets"),
    "shape that overflows to the right size": (shape(2**62, 2**62, 90), "does not fit its offsets"),
    "negative shape": (
        shape(-30, -3),
        "offsets of the array 'user_factors_' are invalid",
    ),
    "shape of floats": (shape(30.0, 3), "are invalid"),
    "shape of booleans": (shape(True, 90), "are invalid"),
    "shape with many axes": (shape(30, 3, *[1] * 40), "does not fit its offsets"),
    "shape that is a number": (entry(shape=90), "are invalid"),
    "empty with endless axes": (empty_with(0, 2**61), "does not fit its offsets"),
    "empty of nothing": (empty_with(0, 5), "the array 'more' belongs to nothing"),
    "unknown type": (entry(dtype="F8_E5M2"), "is of the type 'F8_E5M2', not a known one"),
    "type that is a list": (entry(dtype=["F32"]), r"is of the type \['F32'\]"),
    "wider type": (entry(dtype="F64"), "does not fit its offsets"),
    "overlap": (offsets(-4, -4), "overlaps another or leaves a gap"),
    "gap": (offsets(4, 4), "overlaps another or leaves a gap"),
    "negative place": (offsets(-(10**9), -(10**9)), "are invalid"),
    "beyond the end": (offsets(0, 10**12), "does not fit its offsets"),
    "three offsets": (entry(data_offsets=[0, 4, 8]), "are invalid"),
    "strange field": (entry(extra=1), "entry of the array 'user_factors_' cannot be understood"),
    "missing field": (lambda entries: entries["user_factors_"].pop("shape"), "be understood"),
    "entry that is a number": (lambda entries: entries.update(levels_=7), "be understood"),
    "no entry": (lambda entries: entries.popitem(), "overlaps|belong to nothing"),
}


@pytest.mark.parametrize(("change", "sentence"), ENTRIES.values(), ids=ENTRIES)
def test_bad_entries_of_arrays_get_a_sentence(change, sentence, parts, path):
    parts().write(path, change)
    refused(path, sentence)


def test_a_checksum_in_capitals_is_another_one(files, path):
    raw = files["mmmf"].read_bytes()
    checksum = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])["__metadata__"][
        "checksum"
    ]
    path.write_bytes(raw.replace(checksum.encode(), checksum.upper().encode()))
    refused(path, "it has no checksum")


def test_a_document_nested_deeply_gets_a_sentence(parts, path):
    parts().write(path, document_text="[" * 100_000)
    refused(path, "its description of the model is nested too deeply")
    deep = parts()
    node: list[object] = []
    for _ in range(100):
        node = [node]
    deep.params["reg"] = node
    deep.write(path)
    refused(path, "its contents are nested too deeply")
