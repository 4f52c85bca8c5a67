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


#: How many different values the small numbers of a state have, by their names.
_LIMITS: dict[str, dict[str, int]] = {
    **{name: {"has_uint32": 2, "uinteger": 1 << 32} for name in ("PCG64", "PCG64DXSM", "SFC64")},
    "MT19937": {"pos": 625, "key": 1 << 32},
    "Philox": {"has_uint32": 2, "uinteger": 1 << 32, "buffer_pos": 5},
}


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
        """Return a generator that goes on from there.

        States come from files.  One that no generator has been in is refused with a ValueError:
        NumPy takes many of them, and some would be read beyond the end of an array.
        """
        try:
            bits = BIT_GENERATORS[self.kind](np.random.SeedSequence(**self.seeds))
            fresh = _plain(bits.state)
            bits.state = self.state
        except (TypeError, ValueError, LookupError, OverflowError, AttributeError) as error:
            raise ValueError(f"it is no state of a random generator: {error}") from None
        kept = (_plain(bits.state), _plain(bits.seed_seq.state)) == (self.state, self.seeds)
        even = self.kind.startswith("PCG64") and self.state["state"]["inc"] % 2 == 0
        if not kept or even or not _is_like(self.state, fresh, _LIMITS[self.kind]):
            raise ValueError(f"it is no state of a {self.kind} generator")
        return np.random.Generator(bits)


def _is_like(state: Any, fresh: Any, limits: Mapping[str, int], most: int = 1 << 128) -> bool:
    """Whether a state has the parts and lengths of a fresh one, and numbers that may be there."""
    if isinstance(fresh, dict):
        named = isinstance(state, dict) and state.keys() == fresh.keys()
        return named and all(
            _is_like(state[name], part, limits, limits.get(name, most))
            for name, part in fresh.items()
        )
    if isinstance(fresh, list):
        listed = isinstance(state, list) and len(state) == len(fresh)
        return listed and all(_is_like(one, fresh[0], limits, most) for one in state)
    if isinstance(fresh, int):
        return type(state) is int and 0 <= state < most
    return bool(state == fresh)


def _plain(value: Any) -> Any:
    """Return a state with lists for arrays and sequences, and Python's own numbers."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
