"""Checkpoints whose checksums are right and whose contents are not those of the fit."""

import json
import re
from copy import deepcopy

import numpy as np
import pytest

from fuzz.checkpoint_files import interrupted, unfitted
from fuzz.corpus import PAIRS, STARS
from marginmf._utils.random import BIT_GENERATORS, GeneratorState
from tampering import ModelParts

RUNS = ("hmf", "mmmf", "pmmmf", "als", "svd", "ipmmmf", "gibbs", "gibbs infinite")


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """Return a folder with a checkpoint of each kind of solver."""
    folder = tmp_path_factory.mktemp("checkpoints")
    for name in RUNS:
        interrupted(name, 3, folder / name)
    return folder


def unfinished(folder):
    """Return the file of the minimisation that was interrupted."""
    kinds = {file: ModelParts(file).document["kind"] for file in folder.iterdir()}
    return next(file for file, kind in kinds.items() if kind == "run")


@pytest.mark.parametrize("name", RUNS)
def test_no_vector_may_have_another_shape_or_type(name, checkpoints):
    """Compiled kernels would read beyond the end of the shorter ones."""
    file = unfinished(checkpoints / name)
    honest, raw = ModelParts(file), file.read_bytes()
    vectors = [key for key in honest.tensors if key.startswith("vector ")]
    assert vectors
    changes = (
        lambda array: array.reshape(-1)[:-1],
        lambda array: np.append(array.reshape(-1), 0).astype(array.dtype),
        lambda array: array.astype({4: np.float64, 8: np.float32}[array.itemsize]),
    )
    try:
        for key in vectors:
            for change in changes:
                parts = honest.copy()
                parts.tensors[key] = change(parts.tensors[key])
                parts.write(file)
                with pytest.raises(ValueError, match=r"Remove (its|the) folder and fit anew"):
                    unfitted()[name].fit(PAIRS, STARS, checkpoint=checkpoints / name)
    finally:
        file.write_bytes(raw)


@pytest.mark.parametrize("name", RUNS)
def test_whatever_is_missing_gets_a_sentence(name, checkpoints):
    file = unfinished(checkpoints / name)
    honest, raw = ModelParts(file), file.read_bytes()
    try:
        for key in honest.tensors:
            parts = honest.copy()
            del parts.tensors[key]
            parts.write(file)
            with pytest.raises(ValueError, match=r"Remove (its|the) folder and fit anew"):
                unfitted()[name].fit(PAIRS, STARS, checkpoint=checkpoints / name)
    finally:
        file.write_bytes(raw)


def test_a_fingerprint_of_other_types_gets_a_sentence(checkpoints):
    folder = checkpoints / "hmf"
    file = next(one for one in folder.iterdir() if ModelParts(one).document["kind"] == "fit")
    honest, raw = ModelParts(file), file.read_bytes()
    try:
        for key in honest.document["details"]:
            for value in (None, 7, "x" * 100_000, [], {}):
                parts = honest.copy()
                parts.document["details"][key] = value
                parts.write(file)
                with pytest.raises(ValueError, match="was written by a fit with") as caught:
                    unfitted()["hmf"].fit(PAIRS, STARS, checkpoint=folder)
                assert len(str(caught.value)) < 1_000
    finally:
        file.write_bytes(raw)


def places(node, found):
    """List the container and the key of every part of a state."""
    for key in range(len(node)) if isinstance(node, list) else node:
        found.append((node, key))
        if isinstance(node[key], list | dict):
            places(node[key], found)
    return found


@pytest.mark.parametrize("kind", BIT_GENERATORS)
def test_states_that_no_generator_was_in_are_refused(kind):
    """NumPy takes a position beyond the end of MT19937's key, and reads there."""
    generator = np.random.Generator(BIT_GENERATORS[kind](7))
    generator.integers(5, size=3, dtype=np.int32)
    honest = GeneratorState.of(generator)
    again = GeneratorState(**json.loads(json.dumps(vars(honest)))).generator()
    assert again.random() == generator.random()
    for k in range(len(places(honest.state, []))):
        for bad in (-1, 10**40, 2**64 + 1, 2.5, "x", None, [], {}):
            state = deepcopy(honest.state)
            container, key = places(state, [])[k]
            if bad == 2**64 + 1 and re.search("PCG", kind) and key in ("state", "inc"):
                continue  # theirs are numbers of 128 bits
            container[key] = bad
            with pytest.raises(ValueError, match="a random generator"):
                GeneratorState(kind, state, honest.seeds).generator()


@pytest.mark.parametrize(
    ("kind", "place", "number"),
    [
        ("MT19937", ("state", "pos"), 625),
        ("PCG64", ("state", "inc"), 8),
        ("Philox", ("buffer_pos",), 5),
    ],
)
def test_numbers_just_beyond_a_state_are_refused(kind, place, number):
    honest = GeneratorState.of(np.random.Generator(BIT_GENERATORS[kind](7)))
    state = deepcopy(honest.state)
    part = state
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = number
    with pytest.raises(ValueError, match="a random generator"):
        GeneratorState(kind, state, honest.seeds).generator()
