"""Random generators survive being written down."""

import json

import numpy as np
import pytest

from marginmf._utils.random import GeneratorState

kinds = pytest.mark.parametrize(
    "kind",
    [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64],
)


@kinds
def test_every_kind_goes_on_as_it_would_have(kind):
    rng = np.random.Generator(kind(7))
    rng.standard_normal(5)
    rng.spawn(2)
    text = json.dumps(vars(GeneratorState.of(rng)))
    again = GeneratorState(**json.loads(text)).generator()
    np.testing.assert_array_equal(again.standard_normal(9), rng.standard_normal(9))
    for a, b in zip(again.spawn(3), rng.spawn(3), strict=True):
        np.testing.assert_array_equal(a.random(4), b.random(4))


def test_a_spawned_generator_goes_on_too():
    rng = np.random.default_rng().spawn(3)[2]
    again = GeneratorState.of(rng).generator()
    assert again.random() == rng.random()
    assert again.spawn(1)[0].random() == rng.spawn(1)[0].random()


def test_bits_that_are_not_from_numpy_are_refused():
    class Own(np.random.PCG64):
        pass

    with pytest.raises(ValueError, match=r"cannot be kept in a checkpoint: give a whole number"):
        GeneratorState.of(np.random.Generator(Own(1)))
