"""Gradient descent with backtracking: the simplest solver, as in the thesis's pseudo-code."""

from dataclasses import dataclass

from marginmf.solvers.descent import Descent, Directions, Taken, downhill
from marginmf.solvers.line_search import Backtracking
from marginmf.solvers.vector import Recycling, Vector


@dataclass(frozen=True)
class GradientDescent(Descent):
    """Steepest descent; each step is first tried at twice the length of the last one."""

    line_search = Backtracking()

    def directions(self, space: Recycling) -> "SteepestDirections":
        """Return a chooser of directions."""
        return SteepestDirections(space)


class SteepestDirections(Directions):
    """Minus the gradient."""

    def choose(self, gradient: Vector) -> Vector:
        """Return minus the gradient."""
        return downhill(self.space, gradient)

    def first_length(self, slope: float, last: Taken) -> float:
        """Return twice the last step's length."""
        return 2.0 * last.length
