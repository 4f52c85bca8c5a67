"""Random generators: one rule for ``random_state``, and generators as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

#: NumPy's own bit generators by name.
BIT_GENERATORS: dict[str, Any] = {
    name: getattr(np.random, name) for name in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
}


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a random generator from an int, a generator of either NumPy kind, or None.

    The same int always gives the same stream.

    >>> int(as_generator(0).integers(100)) == int(as_generator(0).integers(100))
    True
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state={random_state!r} cannot seed a generator. "
            "Give a whole number >= 0, a NumPy Generator, or None."
        ) from None


@dataclass(frozen=True)
class GeneratorState:
    """A random generator at one moment as plain data, with the seed sequence that it spawns from.

    >>> rng = np.random.default_rng()
    >>> again = GeneratorState.of(rng).generator()
    >>> rng.random() == again.random(), rng.spawn(1)[0].random() == again.spawn(1)[0].random()
    (True, True)
    """

    kind: str
    state: Any
    seeds: Any

    @classmethod
    def of(cls, generator: np.random.Generator) -> "GeneratorState":
        """Return a generator's state; only NumPy's own bit generators can be stored."""
        bits = generator.bit_generator
        kind, seeds = type(bits).__name__, bits.seed_seq
        if BIT_GENERATORS.get(kind) is not type(bits) or not hasattr(seeds, "state"):
            raise ValueError(
                f"random_state={generator!r} cannot be kept in a checkpoint: give a whole number, "
                "or a generator of NumPy's own."
            )
        return cls(kind, _plain(bits.state), _plain(seeds.state))

    def generator(self) -> np.random.Generator:
        """Return a generator that goes on from there; a state that none can have is a ValueError.

        NumPy believes what it is told, and would read beyond the end of a forged state.
        """
        if self.kind not in BIT_GENERATORS:
            raise ValueError(f"there is no random generator {self.kind!r:.60}")
        if not _are_seeds(self.seeds):
            raise ValueError("a random generator cannot have these seeds")
        bits = BIT_GENERATORS[self.kind](np.random.SeedSequence(**self.seeds))
        # An even increment would make PCG64 repeat itself.
        if not _is_like(self.state, bits.state) or self.state["state"].get("inc", 1) % 2 == 0:
            raise ValueError(f"a random generator {self.kind} cannot have this state")
        bits.state = self.state
        return np.random.Generator(bits)


#: The largest of the numbers in states; those that are not here have 128 bits.
MOST_IN_STATE = {"pos": 624, "buffer_pos": 4, "has_uint32": 1, "uinteger": 2**32 - 1}
#: The largest of the numbers in seeds; the entropy may have a thousand digits.
MOST_IN_SEEDS = {"pool_size": 64, "n_children_spawned": 2**32 - 1}


def _is_like(given: Any, state: Any, most: int = 2**128 - 1) -> bool:
    """Whether plain data could be the state of the generator that has this one."""
    if isinstance(state, Mapping):
        return (
            isinstance(given, dict)
            and given.keys() == state.keys()
            and all(_is_like(given[k], state[k], MOST_IN_STATE.get(k, most)) for k in state)
        )
    if isinstance(state, np.ndarray):
        most = int(np.iinfo(state.dtype).max)
        return _are_whole(given, most) and len(given) == len(state)
    return given == state if isinstance(state, str) else _are_whole([given], most)


def _are_seeds(given: Any) -> bool:
    """Whether plain data could be the state of a `SeedSequence`."""
    if not isinstance(given, dict) or given.keys() != {"entropy", "spawn_key", *MOST_IN_SEEDS}:
        return False
    entropy = given["entropy"]
    counts = all(_are_whole([given[name]], most) for name, most in MOST_IN_SEEDS.items())
    known = _are_whole(entropy if isinstance(entropy, list) else [entropy], 10**1000)
    return counts and given["pool_size"] >= 4 and known and _are_whole(given["spawn_key"], 2**32)


def _are_whole(given: Any, most: int) -> bool:
    """Whether this is a list of a thousand whole numbers at most, none above the largest."""
    return (
        isinstance(given, list)
        and len(given) <= 1000
        and all(type(n) is int and 0 <= n <= most for n in given)
    )


def _plain(value: Any) -> Any:
    """Return a state with lists for arrays and sequences, and Python's own numbers."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
