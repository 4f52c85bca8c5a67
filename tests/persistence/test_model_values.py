"""Every value that a model can hold comes back as it was: its type, its bits, its identity."""

import struct
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from marginmf._utils.tensor_files import Allowance, InvalidFileError, read_json, write_json
from marginmf.losses import REAL, TWO_LEVEL
from marginmf.persistence.codec import ModelDecoder, ModelEncoder
from marginmf.ratings.ids import IdIndex
from marginmf.solvers import LBFGS, ConjugateGradient, GradientDescent, Record


def round_trip(value):
    encoder = ModelEncoder()
    node = encoder.encode(value, "value")
    text = write_json(node)
    tensors = {name: tensor.copy() for name, tensor in encoder.tensors.items()}
    decoder = ModelDecoder(tensors, Allowance(0))
    restored = decoder.decode(read_json(text, "the value"))
    decoder.finish()
    return restored


def same(one, other):
    """Whether two values are alike in type and in every bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return struct.pack("d", one) == struct.pack("d", other)
    if isinstance(one, np.ndarray):
        order = [(a.flags.c_contiguous, a.flags.f_contiguous) for a in (one, other)]
        return (
            one.dtype.str == other.dtype.str
            and one.shape == other.shape
            and order[0] == order[1]
            and one.tobytes() == other.tobytes()
        )
    if isinstance(one, np.generic):
        return one.dtype.str == other.dtype.str and one.tobytes() == other.tobytes()
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return one == other


few = settings(deadline=None, max_examples=40)
numbers = st.one_of(
    npst.boolean_dtypes(),
    npst.integer_dtypes(endianness="?"),
    npst.unsigned_integer_dtypes(endianness="?"),
    npst.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
)
numpy_scalars = npst.arrays(numbers.map(lambda dtype: dtype.newbyteorder("=")), 1).map(
    lambda array: array[0]
)
texts = st.text(st.characters(exclude_characters="\0"))  # no id has one
possible_ids = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(),
        st.integers(2**62, 2**70),
        st.floats(allow_nan=False),
        texts,
        st.text(st.characters(categories=["Cs", "L"])),  # halves of surrogate pairs
    ),
    lambda parts: st.lists(parts, max_size=4).map(tuple),
    max_leaves=6,
)
atoms = st.one_of(st.none(), st.floats(), numpy_scalars, possible_ids)


@few
@given(st.lists(possible_ids, max_size=8))
def test_vocabularies_keep_their_ids_and_order(ids):
    index = IdIndex(ids, "user")
    restored = round_trip(index)
    assert restored.what == "user"
    assert restored.ids.dtype == index.ids.dtype
    assert same(restored.ids.tolist(), index.ids.tolist())
    np.testing.assert_array_equal(restored.encode(index.ids), np.arange(len(index)))


@few
@given(st.lists(st.one_of(numpy_scalars, texts.map(np.str_)), max_size=8))
def test_ids_of_numpy_are_found_again_as_those_of_python(ids):
    ids = [one for one in ids if one == one]
    index = IdIndex(ids, "user")
    restored = round_trip(index)
    assert {type(one) for one in restored.ids.tolist()} <= {int, float, bool, str}
    np.testing.assert_array_equal(restored.encode(index.ids), np.arange(len(index)))


dtypes = st.one_of(numbers, npst.unicode_string_dtypes(endianness="?"))
shapes = npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@few
@given(dtypes.flatmap(lambda dtype: npst.arrays(dtype, shapes)), st.sampled_from("CF"))
def test_arrays_of_every_type_shape_and_order(array, order):
    array = np.array(array, order=order)
    assert same(round_trip(array), array)


def test_arrays_with_gaps_come_back_without_them():
    array = np.arange(24).reshape(4, 6)[::2, ::-2]
    np.testing.assert_array_equal(round_trip(array), array)


@pytest.mark.parametrize(
    ("numbers", "width"),
    [
        ([0, 255], 1),
        ([0, 256], 2),
        ([-1, 127], 1),
        ([-1, 128], 2),
        ([0, 2**32 - 1], 4),
        ([-1, 2**63 - 1], 8),
    ],
)
def test_whole_numbers_take_as_few_bytes_as_they_need(numbers, width):
    encoder = ModelEncoder()
    encoder.encode(np.array(numbers), "codes")
    assert encoder.tensors["codes"].itemsize == width
    assert same(round_trip(np.array(numbers)), np.array(numbers))


containers = st.recursive(
    atoms.filter(lambda value: not _has_halves(value)),
    lambda parts: st.one_of(
        st.lists(parts, max_size=3),
        st.lists(parts, max_size=3).map(tuple),
        st.dictionaries(st.text(), parts, max_size=3),
    ),
    max_leaves=10,
)


def _has_halves(value):
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return True
    return False


@few
@given(containers)
def test_lists_tuples_and_dictionaries(value):
    assert same(round_trip(value), value)


@pytest.mark.parametrize(
    "value",
    [
        LBFGS(memory=9),
        ConjugateGradient(),
        GradientDescent(),
        Record(3, 1.5, float("inf"), 4, 0.25),
        [[Record(0, 2.0, 1.0, 1, 0.0)], []],
        np.dtype("float32"),
        np.dtype(">i4"),
        np.dtype(object),
        {0: 1.0, 1: 2.5, "balanced": None, (1, 2): [3]},
    ],
    ids=repr,
)
def test_objects_of_known_classes(value):
    restored = round_trip(value)
    assert type(restored) is type(value)
    assert restored == value


@pytest.mark.parametrize("loss", [*TWO_LEVEL.values(), *REAL.values()], ids=lambda loss: loss.name)
def test_losses_are_the_very_same_objects(loss):
    assert round_trip(loss) is loss


def test_what_is_shared_is_stored_once_and_shared_again():
    ids, array = IdIndex(["a", "b"]), np.arange(3.0)
    encoder = ModelEncoder()
    encoder.encode([ids, array, ids, {"again": array}], "parts")
    assert list(encoder.tensors) == ["parts.0", "parts.1"]
    one, two, three, four = round_trip([ids, array, ids, {"again": array}])
    assert three is one
    assert four["again"] is two


def test_equal_arrays_that_are_not_the_same_stay_apart():
    one, two = round_trip([np.zeros(3), np.zeros(3)])
    assert one is not two


def test_names_with_dots_do_not_collide():
    value = {"a.b": np.zeros(2), "a": {"b": np.ones(3)}}
    assert same(round_trip(value), value)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (object(), r"reg is <object .*>, of the type object, which a model file cannot hold"),
        (np.array([None]), r"reg is .* of the type array of object"),
        (np.ma.array([1]), r"reg is .* of the type MaskedArray"),
        (np.longdouble(1), r"of the type longdouble"),
        ({frozenset(): 2}, r"reg is a dictionary with the key frozenset\(\)"),
        ([print], r"reg\.0 is <built-in function print>"),
        (type("Mine", (LBFGS,), {})(), r"of the type Mine"),
        (3 + 4j, r"of the type complex"),
        (b"bytes", r"of the type bytes"),
        (date(2024, 2, 29), r"of the type date"),
        (np.array(["2024-02-29"], "M8[D]"), r"of the type array of datetime64"),
    ],
)
def test_what_cannot_be_stored_gets_a_sentence(value, sentence):
    with pytest.raises(ValueError, match=sentence):
        ModelEncoder().encode(value, "reg")


def test_what_holds_itself_gets_a_sentence():
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="nested too deeply for a model file, or holds itself"):
        ModelEncoder().encode(circle, "reg")


def test_generators_of_earlier_files_become_none():
    node = [{"generator": {"dict": {"state": 1}}}, {"array": {"tensor": "x"}}, {"same": 1}]
    none, one, two = ModelDecoder({"x": np.zeros(2)}, Allowance(0)).decode(node)
    assert none is None
    assert one is two


@pytest.mark.parametrize("node", [{"decimal": "1.5"}, {"date": "2024-02-29"}, {"bytes": "00"}])
def test_types_that_only_earlier_files_held_get_a_sentence(node):
    with pytest.raises(InvalidFileError, match="no longer hold: fit the model again"):
        ModelDecoder({}, Allowance(0)).decode(node)
