"""Random generators: those of ``numpy.random.default_rng``, in the state that they are in.

The state of a PCG64 is five numbers, and any numbers in it are safe.  That is not so for every
kind of generator: a Mersenne Twister whose position is out of range reads foreign memory.
"""

from typing import Any

import numpy as np

from marginmf.persistence.errors import ModelFileError

Generator = np.random.Generator


def generator_state(generator: Any) -> dict[str, Any] | None:
    """Return what restores a generator, or None if it is of another kind.

    >>> sorted(generator_state(np.random.default_rng(3))["seed"].items())[0]
    ('entropy', 3)
    """
    if type(generator) is not Generator or type(generator.bit_generator) is not np.random.PCG64:
        return None
    seed: Any = generator.bit_generator.seed_seq
    if type(seed) is not np.random.SeedSequence or type(seed.entropy) is not int:
        return None
    state: Any = generator.bit_generator.state
    return {
        "state": state["state"]["state"],
        "increment": state["state"]["inc"],
        "has_half": state["has_uint32"],
        "half": state["uinteger"],
        # Children are spawned from the seed: the stages of HMF each get one.
        "seed": {
            "entropy": seed.entropy,
            "spawn_key": list(seed.spawn_key),
            "n_children_spawned": seed.n_children_spawned,
        },
    }


def generator_from(node: Any) -> Generator:
    """Return the generator in that state."""
    try:
        seed = node["seed"]
        _check_range(node["state"], node["increment"], bits=128)
        _check_range(node["has_half"], bits=1)
        _check_range(node["half"], bits=32)
        _check_range(seed["entropy"], bits=4096)
        _check_range(seed["n_children_spawned"], *seed["spawn_key"], bits=32)
        bits = np.random.PCG64(
            np.random.SeedSequence(
                seed["entropy"],
                spawn_key=tuple(seed["spawn_key"]),
                n_children_spawned=seed["n_children_spawned"],
            )
        )
        bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": node["state"], "inc": node["increment"]},
            "has_uint32": node["has_half"],
            "uinteger": node["half"],
        }
    except (KeyError, TypeError, ValueError):
        raise ModelFileError("the state of the random generator cannot be understood") from None
    return Generator(bits)


def _check_range(*numbers: Any, bits: int) -> None:
    for number in numbers:
        if type(number) is not int or not 0 <= number < 2**bits:
            raise ValueError
