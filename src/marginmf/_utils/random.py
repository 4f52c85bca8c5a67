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
        """Return a generator that goes on from there."""
        bits = BIT_GENERATORS[self.kind](np.random.SeedSequence(**self.seeds))
        bits.state = self.state
        return np.random.Generator(bits)


def _plain(value: Any) -> Any:
    """Return a state with lists for arrays and sequences, and Python's own numbers."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
