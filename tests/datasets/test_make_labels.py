import numpy as np
import pytest
from scipy import sparse

from marginmf.datasets import make_labels, synthetic_labels


def test_sizes_and_form_are_as_asked() -> None:
    dense = make_labels(300, 40, 12, random_state=0)
    assert (dense.n_samples, dense.n_features, dense.n_labels) == (300, 40, 12)
    assert isinstance(dense.X, np.ndarray)
    words = make_labels(300, 400, 12, features_per_sample=25, random_state=0)
    assert sparse.issparse(words.X)
    assert words.X.shape == (300, 400)
    # Each of the words drawn counts; a value is log(1 + count).
    np.testing.assert_allclose(np.expm1(words.X).sum(axis=1), 25)


def test_labels_are_as_many_as_asked_and_most_are_rare() -> None:
    table = make_labels(20_000, 5, 50, cardinality=4.0, random_state=1)
    assert table.cardinality == pytest.approx(4.0, rel=0.05)
    shares = table.Y.mean(axis=0)
    assert shares.max() < 0.5 + 0.02
    expected = synthetic_labels._frequencies(50, 4.0)
    assert expected.sum() == pytest.approx(4.0)
    np.testing.assert_allclose(shares, expected, atol=5 * np.sqrt(0.25 / 20_000))
    assert shares[:5].mean() > 5 * shares[-5:].mean()


@pytest.mark.parametrize("words", [None, 40])
def test_features_say_something_of_the_labels(words: int | None) -> None:
    table = make_labels(
        2000, 60, 8, n_factors=4, noise=0.1, features_per_sample=words, random_state=2
    )
    X = table.X if words is None else table.X.toarray()
    X = np.column_stack([X, np.ones(len(X))])
    Y = table.Y.toarray()
    train, test = slice(0, 1500), slice(1500, 2000)
    weights = np.linalg.lstsq(X[train], Y[train], rcond=None)[0]
    missed = ((X[test] @ weights > 0.5) != Y[test]).mean()
    guessed = (Y[test] != (Y[train].mean(axis=0) > 0.5)).mean()
    assert missed < 0.8 * guessed


def test_without_noise_labels_are_a_function_of_few_factors() -> None:
    table = make_labels(500, 30, 10, n_factors=3, noise=0.0, random_state=3)
    assert np.linalg.matrix_rank(table.X) == 3


def test_blocks_do_not_change_what_rows_are(monkeypatch) -> None:
    monkeypatch.setattr(synthetic_labels, "BLOCK_ROWS", 64)
    table = make_labels(150, 30, 5, features_per_sample=7, random_state=0)
    np.testing.assert_allclose(np.expm1(table.X).sum(axis=1), 7)
    assert table.X.indices.max() < 30


def test_the_same_seed_gives_the_same_dataset() -> None:
    for words in (None, 10):
        first, again, other = (
            make_labels(100, 50, 6, features_per_sample=words, random_state=seed)
            for seed in (7, np.random.default_rng(7), 8)
        )
        assert (first.Y != again.Y).nnz == 0
        assert abs(first.X - again.X).max() == 0
        assert (first.Y != other.Y).nnz > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples must be a whole number of at least 1; got 0"),
        ({"n_labels": 2.5}, "n_labels must be a whole number"),
        ({"n_features": True}, "n_features must be a whole number"),
        ({"n_factors": 0}, "n_factors must be a whole number"),
        ({"features_per_sample": 0}, "features_per_sample must be a whole number"),
        ({"cardinality": 0}, "cardinality must be above 0 and at most 10, half of n_labels; got 0"),
        ({"cardinality": 11}, "cardinality must be above 0 and at most 10"),
        ({"noise": -0.1}, "noise must be a share from 0 to 1; got -0.1"),
        ({"noise": "much"}, "noise must be a share from 0 to 1; got 'much'"),
        ({"random_state": "seed"}, "random_state='seed' cannot seed"),
    ],
)
def test_arguments_out_of_range_are_named(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        make_labels(**arguments)
