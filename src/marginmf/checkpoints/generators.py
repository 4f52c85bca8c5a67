"""Random generators as plain data, and back."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from marginmf.checkpoints.fingerprint import plain


@dataclass(frozen=True)
class Snapshot:
    """A random generator as it was at a moment, in numbers and words only.

    The seed sequence is a part of it, because generators that are spawned come from there.

    Examples
    --------
    >>> rng = np.random.default_rng()
    >>> again = Snapshot.of(rng).generator()
    >>> rng.random() == again.random(), rng.spawn(1)[0].random() == again.spawn(1)[0].random()
    (True, True)
    """

    kind: str
    state: Any
    seeds: Any

    @classmethod
    def of(cls, generator: np.random.Generator) -> "Snapshot":
        """Return a generator's state; only those whose bits NumPy makes can be stored."""
        bits = generator.bit_generator
        kind, seeds = type(bits).__name__, bits.seed_seq
        if getattr(np.random, kind, None) is not type(bits) or not hasattr(seeds, "state"):
            raise ValueError(
                f"random_state={generator!r} cannot be kept in a checkpoint: give a whole number, "
                "or a generator of NumPy's own."
            )
        return cls(kind, plain(bits.state), plain(seeds.state))

    def generator(self) -> np.random.Generator:
        """Return a generator that goes on from there."""
        bits = getattr(np.random, self.kind)(np.random.SeedSequence(**self.seeds))
        bits.state = self.state
        return np.random.Generator(bits)
