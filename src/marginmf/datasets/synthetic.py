"""Ratings that are the rounded product of two thin matrices: the thesis's synthetic data."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from marginmf._utils.random import as_generator
from marginmf.datasets.table import RatingsTable

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class SyntheticMatrix:
    """A full matrix of ratings and the factors it is the rounded product of.

    ``ratings == clip(rint(user_factors @ item_factors.T), 1, n_levels)`` entry by entry.

    Parameters
    ----------
    ratings : array of int64, shape (n_users, n_items)
        Levels 1 to `n_levels`.
    user_factors : array of shape (n_users, n_factors)
        The matrix U.
    item_factors : array of shape (n_items, n_factors)
        The matrix V.
    n_rounds : int
        Rounds that were run.
    converged : bool
        Whether the last round changed nothing; else the cap on rounds was reached.
    """

    ratings: npt.NDArray[np.int64]
    user_factors: FloatArray
    item_factors: FloatArray
    n_rounds: int
    converged: bool

    def __repr__(self) -> str:
        n_users, n_items = self.ratings.shape
        state = "converged" if self.converged else "stopped by the cap"
        return (
            f"SyntheticMatrix({n_users} x {n_items}, {self.user_factors.shape[1]} factors, "
            f"{state} after {self.n_rounds} rounds)"
        )


def make_matrix(
    n_users: int = 200,
    n_items: int = 200,
    *,
    n_factors: int = 5,
    n_levels: int = 5,
    max_rounds: int = 100,
    random_state: Any = None,
) -> SyntheticMatrix:
    """Make a full matrix of ratings that a factorisation of a given rank explains.

    Random ratings and random factors are fitted to each other in turn, rounding to the nearest
    level each time, until a round changes nothing (chapter 3 of the thesis, with its update of U
    corrected to ``U = Y V (V^T V)^-1``).

    Parameters
    ----------
    n_users, n_items : int
        Shape of the matrix.
    n_factors : int
        Number of columns of both factors, at most the smaller side of the matrix.
    n_levels : int
        Ratings are 1 to `n_levels`.
    max_rounds : int
        Cap on the rounds.
    random_state : int, Generator or None
        Seed. The same seed gives the same matrix.

    Returns
    -------
    SyntheticMatrix
        The ratings and their factors.

    Raises
    ------
    ValueError
        If an argument is out of range, or a level is missing from the matrix that came out.

    Examples
    --------
    >>> matrix = make_matrix(60, 40, n_factors=2, random_state=0)
    >>> product = matrix.user_factors @ matrix.item_factors.T
    >>> bool((matrix.ratings == np.clip(np.rint(product), 1, 5)).all())
    True
    """
    for name, value, least in (
        ("n_users", n_users, 1),
        ("n_items", n_items, 1),
        ("n_factors", n_factors, 1),
        ("n_levels", n_levels, 2),
        ("max_rounds", max_rounds, 1),
    ):
        check_whole(name, value, least)
    if n_factors > min(n_users, n_items):
        raise ValueError(
            f"n_factors must be at most the smaller side of the matrix, "
            f"{min(n_users, n_items)}; got {n_factors}."
        )
    generator = as_generator(random_state)
    Y = generator.integers(1, n_levels, size=(n_users, n_items), endpoint=True).astype(np.float64)
    # Positive factors: their span nearly holds the constant vector, hence the mean rating. Factors
    # of both signs lose it, and all ratings shrink to level 1.
    U = generator.random((n_users, n_factors))
    converged = False
    n_rounds = 0
    while not converged and n_rounds < max_rounds:
        before = Y
        V = _least_squares(U, Y)
        Y = _nearest_levels(U, V, n_levels)
        U = _least_squares(V, Y.T)
        Y = _nearest_levels(U, V, n_levels)
        converged = np.array_equal(Y, before)
        n_rounds += 1
    ratings = Y.astype(np.int64)
    _check_levels(ratings, n_levels, "matrix", "fewer n_factors or n_levels")
    return SyntheticMatrix(ratings, U, V, n_rounds, converged)


def make_ratings(
    n_users: int = 200,
    n_items: int = 200,
    *,
    n_factors: int = 5,
    n_levels: int = 5,
    observed: float = 0.2,
    max_rounds: int = 100,
    random_state: Any = None,
) -> RatingsTable:
    """Make ratings by observing entries of a synthetic matrix, drawn evenly without replacement.

    The parameters are those of `make_matrix`, which makes the same matrix for the same seed, and:

    Parameters
    ----------
    n_users, n_items, n_factors, n_levels, max_rounds, random_state
        As for `make_matrix`.
    observed : float
        Share of the entries that are observed, above 0 and at most 1.

    Returns
    -------
    RatingsTable
        User and item ids are the 0-based row and column of the matrix. With few observed entries
        some users or items may have none.

    Raises
    ------
    ValueError
        If an argument is out of range, or a level is missing from the observed ratings.

    Examples
    --------
    >>> table = make_ratings(60, 40, n_factors=2, observed=0.5, random_state=0)
    >>> len(table), table.levels.tolist()
    (1200, [1.0, 2.0, 3.0, 4.0, 5.0])
    >>> matrix = make_matrix(60, 40, n_factors=2, random_state=0)
    >>> bool((matrix.ratings[table.users, table.items] == table.ratings).all())
    True
    """
    if not isinstance(observed, Real) or not 0 < observed <= 1:
        raise ValueError(f"observed must be a share above 0 and at most 1; got {observed!r}.")
    generator = as_generator(random_state)
    matrix = make_matrix(
        n_users,
        n_items,
        n_factors=n_factors,
        n_levels=n_levels,
        max_rounds=max_rounds,
        random_state=generator,
    )
    table = observed_part(matrix.ratings, observed, generator, f"{n_factors} factors")
    _check_levels(table.ratings.astype(np.int64), n_levels, "observed ratings", "a larger observed")
    return table


def observed_part(
    matrix: npt.NDArray[np.int64], observed: float, generator: np.random.Generator, made_of: str
) -> RatingsTable:
    """Return a share of the entries of a matrix, drawn evenly without replacement."""
    n_users, n_items = matrix.shape
    n_observed = max(1, round(observed * matrix.size))
    entries = np.sort(generator.choice(matrix.size, n_observed, replace=False))
    users, items = np.divmod(entries, n_items)
    source = f"made up: {n_observed:,} entries of a {n_users} x {n_items} matrix of {made_of}"
    ratings = matrix[users, items].astype(np.float64)
    return RatingsTable("synthetic", users, items, ratings, source=source)


def _least_squares(A: FloatArray, B: FloatArray) -> FloatArray:
    """X that makes ``A X^T`` nearest to B; the shortest one where A has lost rank."""
    smallest = max(A.shape) * float(np.finfo(A.dtype).eps)  # below it, relative, is rounding error
    return (np.linalg.pinv(A, rcond=smallest) @ B).T


def _nearest_levels(U: FloatArray, V: FloatArray, n_levels: int) -> FloatArray:
    return np.clip(np.rint(U @ V.T), 1, n_levels)


def check_whole(name: str, value: object, least: int) -> None:
    """Raise ValueError unless an argument is a whole number of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")


def _check_levels(ratings: npt.NDArray[np.int64], n_levels: int, where: str, remedy: str) -> None:
    missing = sorted(set(range(1, n_levels + 1)) - set(np.unique(ratings).tolist()))
    if missing:
        raise ValueError(
            f"No rating of the {where} is at level {', '.join(map(str, missing))}; "
            f"try another random_state, a larger matrix, or {remedy}."
        )
