"""Label sets with the structure of real ones: few factors behind many labels, most labels rare."""

from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from marginmf._utils.random import as_generator
from marginmf._utils.types import Float64Array
from marginmf.datasets.labels.table import LabelsTable
from marginmf.datasets.synthetic import check_whole

#: Rows made at once, which bounds the memory that scores of all labels take.
BLOCK_ROWS = 1 << 13
#: The most frequent label has at most this share of the samples.
MOST_FREQUENT = 0.5
#: How sharply a sample keeps to its own topics, where features are words.
SHARPNESS = 2.0


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
) -> LabelsTable:
    """Make samples whose features and labels both come of a few hidden factors.

    A sample has normal factors u. It has label l where ``u . v_l``, disturbed by the noise, is
    above a threshold that gives the label its frequency; frequencies fall as one over the rank, as
    those of real labels do. Dense features are a linear mixture of the factors with noise on top.
    Sparse features are words: each factor is a topic with its own frequent words, and a sample
    draws most of its words from the topics whose factors are large; a value is the logarithm of
    one more than how often a word was drawn.

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

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> make_labels(200, 30, 10, random_state=0)
    LabelsTable('synthetic': 200 samples, 30 features (dense), 10 labels, ... a sample; ...)
    >>> table = make_labels(500, 2000, 50, features_per_sample=40, random_state=0)
    >>> bool(table.X.nnz <= 500 * 40)
    True
    """
    for name, value in (
        ("n_samples", n_samples),
        ("n_features", n_features),
        ("n_labels", n_labels),
        ("n_factors", n_factors),
        ("features_per_sample", 1 if features_per_sample is None else features_per_sample),
    ):
        check_whole(name, value, 1)
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
        words = _topics(generator, n_factors, n_features)
    X: list[Any] = []
    Y: list[Any] = []
    for start in range(0, n_samples, BLOCK_ROWS):
        U = generator.standard_normal((min(BLOCK_ROWS, n_samples - start), n_factors))
        disturbed = _disturbed(U, float(noise), generator)
        Y.append(sparse.csr_array((disturbed @ V > thresholds).astype(np.int8)))
        if features_per_sample is None:
            X.append(_disturbed(U @ W, float(noise), generator))
        else:
            X.append(_drawn(U, words, int(features_per_sample), generator))
    joined = np.concatenate(X) if features_per_sample is None else _stacked(X)
    return LabelsTable(
        "synthetic",
        joined,
        _stacked(Y),
        source=f"made up of {n_factors} factors",
    )


def _frequencies(n_labels: int, cardinality: float) -> Float64Array:
    """Return shares that fall as one over the rank, none above the cap, and sum to the mean."""
    shape = 1.0 / np.arange(1, n_labels + 1)
    low, high = 0.0, MOST_FREQUENT * n_labels  # at the upper end every label is at the cap
    for _ in range(60):
        middle = (low + high) / 2
        if np.minimum(middle * shape, MOST_FREQUENT).sum() < cardinality:
            low = middle
        else:
            high = middle
    shares: Float64Array = np.minimum(high * shape, MOST_FREQUENT)
    return shares


def _disturbed(values: Float64Array, noise: float, generator: np.random.Generator) -> Float64Array:
    """Add noise, and keep the variance at one."""
    normal = generator.standard_normal(values.shape)
    disturbed: Float64Array = np.sqrt(1 - noise) * values + np.sqrt(noise) * normal
    return disturbed


def _topics(
    generator: np.random.Generator, n_factors: int, n_features: int
) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return for each topic all words, from its most frequent to its rarest."""
    return np.array([generator.permutation(n_features) for _ in range(n_factors)], dtype=np.int32)


def _drawn(U: Float64Array, words: Any, length: int, generator: np.random.Generator) -> Any:
    """Draw the words of some samples: for each a topic, then a word by its rank in the topic."""
    n_rows, n_features = len(U), words.shape[1]
    weights = np.exp(SHARPNESS * U)
    cumulated = np.cumsum(weights, axis=1)
    cumulated /= cumulated[:, -1:]
    rows = np.repeat(np.arange(n_rows), length)
    # One search for all rows: row i looks between i and i + 1.
    flat = (cumulated + np.arange(n_rows)[:, None]).ravel()
    topics = np.searchsorted(flat, rows + generator.random(len(rows))) - rows * U.shape[1]
    topics = np.clip(topics, 0, U.shape[1] - 1)  # where the sum was rounded
    # A logarithm that is even makes the frequency one over the rank.
    ranks = np.minimum(
        (n_features + 1.0) ** generator.random(len(rows)) - 1, n_features - 1
    ).astype(np.int32)
    counts = sparse.csr_array(
        (
            np.ones(len(rows)),
            words[topics, ranks],
            np.arange(0, len(rows) + 1, length, dtype=np.int32),
        ),
        shape=(n_rows, n_features),
    )
    counts.sum_duplicates()
    counts.data = np.log1p(counts.data)
    return counts


def _stacked(blocks: list[Any]) -> Any:
    return sparse.vstack(blocks, format="csr")
