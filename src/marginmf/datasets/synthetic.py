"""Synthetic data: ratings that are the rounded product of two factors, and label sets."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from marginmf._utils.random import as_generator
from marginmf.datasets.table import RatingsTable

if TYPE_CHECKING:
    from marginmf.datasets.labels.table import LabelsTable

#: Rows made at once, which bounds the memory that scores of all labels take.
BATCH_ROWS = 1 << 13
#: The most frequent label has at most this share of the samples.
MOST_FREQUENT = 0.5
#: How sharply a sample keeps to its own topics, where features are words.
SHARPNESS = 2.0

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class SyntheticMatrix:
    """A full matrix of ratings and the factors that it is the rounded product of.

    ``ratings == clip(rint(user_factors @ item_factors.T), 1, n_levels)`` entry by entry.

    Parameters
    ----------
    ratings : array of int64, shape (n_users, n_items)
        Levels 1 to `n_levels`.
    user_factors, item_factors : array of shape (n, n_factors)
        The matrices U and V.
    n_rounds : int
        Rounds that were run.
    converged : bool
        Whether the last round changed nothing; else the cap was reached.
    """

    ratings: npt.NDArray[np.int64]
    user_factors: FloatArray
    item_factors: FloatArray
    n_rounds: int
    converged: bool

    def __repr__(self) -> str:
        n_users, n_items = self.ratings.shape
        state = "converged" if self.converged else "stopped by the cap"
        sizes = f"{n_users} x {n_items}, {self.user_factors.shape[1]} factors"
        return f"SyntheticMatrix({sizes}, {state} after {self.n_rounds} rounds)"


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
    level each time, until a round changes nothing (chapter 3 of Kumar's thesis, with its update of
    U corrected to ``U = Y V (V^T V)^-1``).

    Parameters
    ----------
    n_users, n_items : int
        Shape of the matrix.
    n_factors : int
        Number of columns of both factors, at most the smaller side of the matrix.
    n_levels, max_rounds : int
        Ratings are 1 to `n_levels`; cap on the rounds.
    random_state : int, Generator or None
        Seed. The same seed gives the same matrix.

    Returns
    -------
    SyntheticMatrix
        The ratings and their factors. It is a ValueError if a level is missing from the ratings.

    Examples
    --------
    >>> matrix = make_matrix(60, 40, n_factors=2, random_state=0)
    >>> product = matrix.user_factors @ matrix.item_factors.T
    >>> bool((matrix.ratings == np.clip(np.rint(product), 1, 5)).all())
    True
    """
    _check_whole(1, n_users=n_users, n_items=n_items, n_factors=n_factors, max_rounds=max_rounds)
    _check_whole(2, n_levels=n_levels)
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
    converged, n_rounds = False, 0
    while not converged and n_rounds < max_rounds:
        before = Y
        V = _least_squares(U, Y)
        Y = np.clip(np.rint(U @ V.T), 1, n_levels)
        U = _least_squares(V, Y.T)
        Y = np.clip(np.rint(U @ V.T), 1, n_levels)
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

    Parameters
    ----------
    n_users, n_items, n_factors, n_levels, max_rounds, random_state
        As for `make_matrix`, which makes the same matrix for the same seed.
    observed : float
        Share of the entries that are observed, above 0 and at most 1.

    Returns
    -------
    RatingsTable
        User and item ids are the 0-based row and column of the matrix. With few observed entries
        some users or items may have none. It is a ValueError if a level is not observed.

    Examples
    --------
    >>> table = make_ratings(60, 40, n_factors=2, observed=0.5, random_state=0)
    >>> len(table), table.levels.tolist()
    (1200, [1.0, 2.0, 3.0, 4.0, 5.0])
    """
    if not isinstance(observed, Real) or not 0 < observed <= 1:
        raise ValueError(f"observed must be a share above 0 and at most 1; got {observed!r}.")
    generator = as_generator(random_state)
    sizes: dict[str, Any] = {"n_factors": n_factors, "n_levels": n_levels, "max_rounds": max_rounds}
    matrix = make_matrix(n_users, n_items, **sizes, random_state=generator)
    n_observed = max(1, round(observed * matrix.ratings.size))
    entries = np.sort(generator.choice(matrix.ratings.size, n_observed, replace=False))
    users, items = np.divmod(entries, n_items)
    ratings = matrix.ratings[users, items]
    _check_levels(ratings, n_levels, "observed ratings", "a larger observed")
    source = f"{n_observed:,} entries of a {n_users} x {n_items} matrix of {n_factors} factors"
    return RatingsTable("synthetic", users, items, ratings, source=f"made up: {source}")


def _least_squares(A: FloatArray, B: FloatArray) -> FloatArray:
    """X that makes ``A X^T`` nearest to B; the shortest one where A has lost rank."""
    smallest = max(A.shape) * float(np.finfo(A.dtype).eps)  # below it, relative, is rounding error
    return (np.linalg.pinv(A, rcond=smallest) @ B).T


def _check_whole(least: int, **arguments: object) -> None:
    for name, value in arguments.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}.")


def _check_levels(ratings: npt.NDArray[np.int64], n_levels: int, where: str, remedy: str) -> None:
    missing = sorted(set(range(1, n_levels + 1)) - set(np.unique(ratings).tolist()))
    if missing:
        raise ValueError(
            f"No rating of the {where} is at level {', '.join(map(str, missing))}; "
            f"try another random_state, a larger matrix, or {remedy}."
        )


def make_labels(
    n_samples: int = 1000,
    n_features: int = 100,
    n_labels: int = 20,
    *,
    n_factors: int = 10,
    cardinality: float | None = None,
    noise: float = 0.3,
    features_per_sample: int | None = None,
    random_state: Any = None,
) -> "LabelsTable":
    """Make samples whose features and labels both come of a few hidden factors.

    A sample has normal factors u, and label l where ``u . v_l``, disturbed by the noise, is above a
    threshold that gives the label its frequency; frequencies fall as one over the rank. Dense
    features are a linear mixture of the factors with noise. Sparse features are words: each factor
    is a topic with its own frequent words, and a sample draws most of its words from the topics
    whose factors are large; a value is the logarithm of one plus how often a word was drawn.

    Parameters
    ----------
    n_samples, n_features, n_labels : int
        Size of the dataset.
    n_factors : int
        Number of hidden factors.
    cardinality : float, optional
        Mean number of labels of a sample, up to half of `n_labels`; by default 3, or a quarter of
        `n_labels` where that is less.
    noise : float
        Share of the variance that features and labels do not have in common, from 0 to 1.
    features_per_sample : int, optional
        Words that a sample draws; by default features are dense.
    random_state : int, Generator or None
        Seed. The same seed gives the same dataset.

    Returns
    -------
    LabelsTable
        Labels are ordered from the most frequent to the rarest, which may have no sample.

    Examples
    --------
    >>> make_labels(200, 30, 10, random_state=0)
    LabelsTable('synthetic': 200 samples, 30 features (dense), 10 labels, ... a sample; ...)
    """
    # Here, because ratings do without SciPy.
    from scipy import sparse
    from scipy.special import ndtri

    from marginmf.datasets.labels.table import LabelsTable

    words_drawn = 1 if features_per_sample is None else features_per_sample
    _check_whole(1, n_samples=n_samples, n_features=n_features, n_labels=n_labels)
    _check_whole(1, n_factors=n_factors, features_per_sample=words_drawn)
    if not isinstance(noise, Real) or not 0 <= noise <= 1:
        raise ValueError(f"noise must be a share from 0 to 1; got {noise!r}.")
    most = MOST_FREQUENT * n_labels
    cardinality = min(3.0, n_labels / 4) if cardinality is None else cardinality
    if not isinstance(cardinality, Real) or not 0 < cardinality <= most:
        raise ValueError(
            f"cardinality must be above 0 and at most {most:g}, half of n_labels; "
            f"got {cardinality!r}."
        )
    generator = as_generator(random_state)
    thresholds = ndtri(1 - _frequencies(n_labels, float(cardinality)))
    V = generator.standard_normal((n_factors, n_labels))
    V /= np.linalg.norm(V, axis=0)
    if features_per_sample is None:
        W = generator.standard_normal((n_factors, n_features)) / np.sqrt(n_factors)
    else:
        # The words of each topic, from its most frequent to its rarest.
        words = np.array([generator.permutation(n_features) for _ in range(n_factors)], np.int32)
    X, Y = [], []
    for start in range(0, n_samples, BATCH_ROWS):
        U = generator.standard_normal((min(BATCH_ROWS, n_samples - start), n_factors))
        disturbed = _add_noise(U, float(noise), generator)
        Y.append(sparse.csr_array((disturbed @ V > thresholds).astype(np.int8)))
        if features_per_sample is None:
            X.append(_add_noise(U @ W, float(noise), generator))
        else:
            X.append(_draw_words(U, words, int(features_per_sample), generator))
    stack = sparse.vstack if features_per_sample is not None else np.concatenate
    source = f"made up of {n_factors} factors"
    return LabelsTable("synthetic", stack(X), sparse.vstack(Y), source=source)


def _frequencies(n_labels: int, cardinality: float) -> FloatArray:
    """Return shares that fall as one over the rank, none above the cap, and sum to the mean."""
    shape = 1.0 / np.arange(1, n_labels + 1)
    low, high = 0.0, MOST_FREQUENT * n_labels  # at the upper end every label is at the cap
    for _ in range(60):
        middle = (low + high) / 2
        if np.minimum(middle * shape, MOST_FREQUENT).sum() < cardinality:
            low = middle
        else:
            high = middle
    return np.minimum(high * shape, MOST_FREQUENT)


def _add_noise(values: FloatArray, noise: float, generator: np.random.Generator) -> FloatArray:
    """Add noise, and keep the variance at one."""
    normal = generator.standard_normal(values.shape)
    return np.sqrt(1 - noise) * values + np.sqrt(noise) * normal


def _draw_words(U: FloatArray, words: Any, length: int, generator: np.random.Generator) -> Any:
    """Draw the words of some samples: for each a topic, then a word by its rank in the topic."""
    from scipy import sparse

    n_rows, n_features = len(U), words.shape[1]
    cumulated = np.cumsum(np.exp(SHARPNESS * U), axis=1)
    cumulated /= cumulated[:, -1:]
    rows = np.repeat(np.arange(n_rows), length)
    # One search for all rows: row i looks between i and i + 1.
    flat = (cumulated + np.arange(n_rows)[:, None]).ravel()
    topics = np.searchsorted(flat, rows + generator.random(len(rows))) - rows * U.shape[1]
    topics = np.clip(topics, 0, U.shape[1] - 1)  # where the sum was rounded
    # A logarithm that is even makes the frequency one over the rank.
    ranks = (n_features + 1.0) ** generator.random(len(rows)) - 1
    drawn = words[topics, np.minimum(ranks, n_features - 1).astype(np.int32)]
    starts = np.arange(0, len(rows) + 1, length, dtype=np.int32)
    counts = sparse.csr_array((np.ones(len(rows)), drawn, starts), shape=(n_rows, n_features))
    counts.sum_duplicates()
    counts.data = np.log1p(counts.data)
    return counts
