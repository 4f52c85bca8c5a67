"""Which points no other point beats: at most as slow and at most as wrong."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """A method: what it costs, how wrong it is, and whether it is ours."""

    name: str
    cost: float
    error: float
    ours: bool = False

    def answers(self, other: "Point") -> bool:
        """Return whether this point is at most as slow and at most as wrong as another."""
        return self.cost <= other.cost and self.error <= other.error


def envelope(points: Iterable[Point]) -> list[Point]:
    """Return the points that none other is as good as, from the cheapest to the most accurate.

    >>> [p.name for p in envelope([Point("a", 1, 5), Point("b", 2, 6), Point("c", 3, 4)])]
    ['a', 'c']
    """
    best: list[Point] = []
    for point in sorted(points, key=lambda p: (p.cost, p.error)):
        if not best or point.error < best[-1].error:
            best.append(point)
    return best


def unanswered(points: Sequence[Point]) -> list[Point]:
    """Return the points of others that lie below our curve, the cheapest first.

    >>> ours = Point("ours", 2, 0.5, ours=True)
    >>> [p.name for p in unanswered([ours, Point("quick", 1, 0.6), Point("slow", 3, 0.5)])]
    ['quick']
    """
    ours = [point for point in points if point.ours]
    others = [point for point in points if not point.ours]
    below = [point for point in others if not any(own.answers(point) for own in ours)]
    return sorted(below, key=lambda point: point.cost)
