"""Nonlinear conjugate gradients: the thesis's solver, with automatic restarts."""

from dataclasses import dataclass

from marginmf.solvers.descent import Descent, Directions, Memory, downhill
from marginmf.solvers.line_search import Step, StrongWolfe
from marginmf.solvers.vector import Recycling, Vector


@dataclass(frozen=True)
class ConjugateGradient(Descent):
    """Polak-Ribiere+ conjugate gradients with a strong-Wolfe line search."""

    line_search = StrongWolfe(curvature=0.1)

    def directions(self, space: Recycling) -> "ConjugateDirections":
        """Return a fresh chooser of directions."""
        return ConjugateDirections(space)


class ConjugateDirections(Directions):
    """Steepest descent bent towards the last direction by ``beta = max(0, g.(g - g')/|g'|^2)``."""

    def __init__(self, space: Recycling) -> None:
        super().__init__(space)
        self.last: tuple[Vector, Vector] | None = None

    def choose(self, gradient: Vector) -> Vector:
        """Return the next conjugate direction; beta = 0 is a restart."""
        direction = downhill(self.space, gradient)
        if self.last is None:
            return direction
        last_direction, last_gradient = self.last
        squared = self.space.dot(gradient, gradient)
        overlap = self.space.dot(gradient, last_gradient)
        beta = max(0.0, (squared - overlap) / self.space.dot(last_gradient, last_gradient))
        self.space.axpy(beta, last_direction, direction)
        return direction

    def learn(self, direction: Vector, here: Step, step: Step) -> None:
        """Remember the direction and the gradient where it began."""
        self.last = (direction, here.gradient)

    def forget(self) -> bool:
        """Go back to steepest descent; return whether there was anything to forget."""
        knew_something = self.last is not None
        self.last = None
        return knew_something

    def memory(self) -> Memory:
        """Return the last direction and the gradient where it began."""
        return Memory({"last direction and gradient": self.last or ()}, {})

    def recall(self, memory: Memory) -> None:
        """Go on from that direction and gradient."""
        vectors = memory.vectors["last direction and gradient"]
        self.last = (vectors[0], vectors[1]) if vectors else None
