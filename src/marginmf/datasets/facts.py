"""What a dataset must contain, and how a table is held against it.

A fact that is None is not known, and is not asked for.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

#: Published cardinalities are rounded to three digits, some of them downwards.
CARDINALITY_TOLERANCE = 1.1e-3
#: More levels than this are a scale, not a list.
MOST_LEVELS = 30


class _Counts:
    """Facts that are counts, by the names of their fields, and what is counted."""

    counted: ClassVar[dict[str, str]]

    def count_difference(self, found: Any, title: str) -> str | None:
        for field, what in self.counted.items():
            expected, there = getattr(self, field), getattr(found, field)
            if expected is not None and there != expected:
                return f"It has {there:,} {what} where {title} has {expected:,}."
        return None

    def count_words(self) -> list[str]:
        counts = ((getattr(self, field), what) for field, what in self.counted.items())
        return [f"{count:,} {what}" for count, what in counts if count is not None]


@dataclass(frozen=True)
class RatingsFacts(_Counts):
    """How many ratings there are, by whom, of what; at which levels, or between which bounds."""

    counted: ClassVar[dict[str, str]] = {
        "n_ratings": "ratings",
        "n_users": "users",
        "n_items": "items",
    }

    n_ratings: int | None = None
    n_users: int | None = None
    n_items: int | None = None
    levels: tuple[float, ...] | None = None
    bounds: tuple[float, float] | None = None

    @classmethod
    def of(cls, table: Any) -> Self:
        """Return what a table of ratings contains."""
        levels = tuple(table.levels.tolist())
        return cls(
            len(table),
            table.n_users,
            table.n_items,
            levels if len(levels) <= MOST_LEVELS else None,
            (levels[0], levels[-1]) if levels else None,
        )

    def difference(self, found: "RatingsFacts", title: str) -> str | None:
        """Say in a sentence what differs first, if anything does.

        >>> expected = RatingsFacts(3, levels=(1.0, 2.0))
        >>> expected.difference(RatingsFacts(2, levels=(1.0, 2.0)), "Films")
        'It has 2 ratings where Films has 3.'
        >>> expected.difference(RatingsFacts(3, levels=(1.0, 2.0)), "Films") is None
        True
        """
        counts = self.count_difference(found, title)
        if counts is not None:
            return counts
        if self.levels is not None and found.levels != self.levels:
            return f"It has the ratings {found.levels} where {title} has {self.levels}."
        if self.bounds is not None and found.bounds is not None:
            low, high = self.bounds
            outside = [one for one in found.bounds if not low <= one <= high]
            if outside:
                return (
                    f"It has the rating {outside[0]:g} where those of {title} are between {low:g} "
                    f"and {high:g}."
                )
        return None

    def words(self) -> str:
        """Return the facts in one line.

        >>> RatingsFacts(1000, 20, 30, (1.0, 2.0, 3.0)).words()
        '1,000 ratings, 20 users, 30 items, 3 levels from 1 to 3'
        """
        words = self.count_words()
        if self.levels:
            words.append(
                f"{len(self.levels)} levels from {self.levels[0]:g} to {self.levels[-1]:g}"
            )
        elif self.bounds:
            words.append(f"between {self.bounds[0]:g} and {self.bounds[1]:g}")
        return ", ".join(words)


@dataclass(frozen=True)
class LabelsFacts(_Counts):
    """How many rows, features and labels there are, and how many labels a row has on average."""

    counted: ClassVar[dict[str, str]] = {
        "n_samples": "rows",
        "n_features": "features",
        "n_labels": "labels",
    }

    n_samples: int | None = None
    n_features: int | None = None
    n_labels: int | None = None
    cardinality: float | None = None

    @classmethod
    def of(cls, table: Any) -> Self:
        """Return what a table of labels contains."""
        return cls(table.n_samples, table.n_features, table.n_labels, table.cardinality)

    def difference(self, found: "LabelsFacts", title: str) -> str | None:
        """Say in a sentence what differs first, if anything does.

        >>> LabelsFacts(5, 2, 3, 1.25).difference(LabelsFacts(5, 2, 3, 1.5), "Songs")
        'It has 1.500 labels a row where Songs has 1.250.'
        """
        counts = self.count_difference(found, title)
        if counts is not None:
            return counts
        expected, there = self.cardinality, found.cardinality
        if expected is None or there is None or abs(expected - there) < CARDINALITY_TOLERANCE:
            return None
        return f"It has {there:.3f} labels a row where {title} has {expected:.3f}."

    def words(self) -> str:
        """Return the facts in one line.

        >>> LabelsFacts(593, 72, 6, 1.869).words()
        '593 rows, 72 features, 6 labels, 1.869 a row'
        """
        words = self.count_words()
        if self.cardinality is not None:
            words.append(f"{self.cardinality:.3f} a row")
        return ", ".join(words)


Facts = RatingsFacts | LabelsFacts
