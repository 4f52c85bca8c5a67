"""Names of columns: each must be one column's own, for columns are found by their names."""

from collections.abc import Iterable


def refuse_alike(named: Iterable[tuple[int, str]], where: str, what: str) -> None:
    """Raise an error if two names are alike; numbers and `what` say where each of them stands.

    >>> refuse_alike([(1, "a"), (2, "b")], "f.csv", "columns")
    >>> refuse_alike([(1, "a"), (3, "a")], "f.csv", "columns")
    Traceback (most recent call last):
    ValueError: f.csv: the columns 1 and 3 are both called 'a'; give each a name of its own.
    """
    first: dict[str, int] = {}
    for number, name in named:
        if name in first:
            raise ValueError(
                f"{where}: the {what} {first[name]} and {number} are both called {name!r}; give "
                f"each a name of its own."
            )
        first[name] = number


def distinct(names: Iterable[str]) -> list[str]:
    """Return names no two of which are alike, with a number after those that come again.

    >>> distinct(["row", "a", "row", "row (2)", "row"])
    ['row', 'a', 'row (3)', 'row (2)', 'row (4)']
    """
    given = list(names)
    taken, seen, made = set(given), set[str](), []
    for name in given:
        new, number = name, 2
        while new in seen or (new != name and new in taken):
            new, number = f"{name} ({number})", number + 1
        seen.add(new)
        made.append(new)
    return made
